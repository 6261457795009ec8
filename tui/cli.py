"""The command `plait`: finds the sub-command and hands over; nothing heavy is imported before that.

Exit codes: 0 all succeeded · 1 a step failed or the run was cancelled · 2 bad usage or manifest ·
3 a human is awaited · 4 a required mechanism is missing · 130 interrupted.
"""

import sys

COMMANDS = {
    "run": "start a plan or prompts, here or in the console",
    "demo": "a guided sample with scripted agents: no key, no network",
    "validate": "every problem of a manifest, with file:line:column",
    "plan": "what would run: workers, prompts, limits and their levels",
    "status": "how a run stands",
    "logs": "what a worker wrote",
    "diff": "what a worker changed",
    "cancel": "stop workers; their work is kept",
    "retry": "another attempt, with feedback and other limits",
    "pause": "start nothing new, or freeze workers",
    "resume": "go on: after a pause, or a run that was interrupted",
    "answer": "answer what a worker asks",
    "steer": "say something to a running agent",
    "choose": "choose one of a step's candidates",
    "approve": "mark a change as good",
    "reject": "give a change up; it stays on its ref",
    "drop": "leave hunks or files out of a change before it lands",
    "preview": "the conflicts of a merge, in memory, nothing written",
    "check": "run the check again, on the exact tree that would land",
    "shell": "a shell inside a worker's sandbox",
    "review": "decide the conflicts of a worker, or of your own merge or rebase",
    "mergetool": "the same for one file, for `git mergetool`",
    "resolve": "decide the conflicts of a worker, without the console",
    "land": "move changes onto their target branch, one after another",
    "undo": "take the last landing back",
    "pr": "push a branch and open a pull request, or say how",
    "runs": "every run of this repository",
    "attach": "the console on the living engine",
    "replay": "a run as it went, at any speed, in the console",
    "export": "a run as plain files: report, events, logs, patches",
    "serve": "an engine without a console, until it is asked to leave",
    "doctor": "what this machine can enforce, and which agents are there",
    "clean": "what can be removed safely, and why the rest cannot",
    "restore": "bring back what was cleaned",
    "init": "write a commented plait.yaml fitted to the repository",
}
_USAGE = "usage: plait [REPO] | plait COMMAND …"
_CONSOLE = "console"


def main(argv: list[str] | None = None) -> int:
    """Run one command and say how it went."""
    words = sys.argv[1:] if argv is None else argv
    first = words[0] if words else ""
    if first in {"-h", "--help", "help"}:
        sys.stdout.write(help_text())
        return 0
    if first in {"-V", "--version"}:
        from importlib.metadata import version  # noqa: PLC0415  only here, it costs 20 ms

        sys.stdout.write(f"plait {version('plait')}\n")
        return 0
    name, rest = (first, words[1:]) if first in COMMANDS else (_CONSOLE, words)
    from tui.commands.base import dispatch  # noqa: PLC0415  help must not pay for it

    return dispatch(name, rest)


def help_text() -> str:
    """What `plait --help` prints."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return (
        f"{_USAGE}\n\n"
        "Runs many coding agents at once in one git repository, each in its own worktree,\n"
        "shows them live and lands their reviewed work.\n\n"
        f"{rows}\n\n"
        "`plait COMMAND --help` says more. Without a command the console opens.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
