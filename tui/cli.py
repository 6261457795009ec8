"""Find the sub-command of `plait` and run it; import nothing heavy before that.

Exit codes:
    0    all succeeded
    1    a step failed, or the run was cancelled
    2    the call or the manifest is wrong
    3    plait waits for a human
    4    a required mechanism is missing
    130  interrupted
"""

import os
import sys

from tui.commands.names import COMMANDS

_USAGE = "usage: plait [REPO] | plait COMMAND …"
_CONSOLE = "console"
_LEADS_ASTRAY = ("GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
"""Set by a git that runs plait, as in a hook: they would name another place's objects."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    from tui.commands.streams import usable_streams  # noqa: PLC0415  imports of this file cost all

    for name in _LEADS_ASTRAY:
        os.environ.pop(name, None)
    try:
        with usable_streams():
            return _command(sys.argv[1:] if argv is None else argv)
    except OSError as error:  # the command itself has told its own: this is of the stream
        sys.stderr.write(f"stdout: {error.strerror}\n")
        return 1


def _command(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in {"-h", "--help", "help"}:
        sys.stdout.write(help_text())
        return 0
    if first in {"-V", "--version"}:
        from importlib.metadata import version  # noqa: PLC0415  only here, it costs 20 ms

        sys.stdout.write(f"plait {version('plait')}\n")
        return 0
    name, rest = (first, words[1:]) if first in COMMANDS else (_CONSOLE, words)
    if name == _CONSOLE and first and not first.startswith("-") and not os.path.exists(first):  # noqa: PTH110  pathlib costs 5 ms
        return _unknown(first)
    from tui.commands.quick import quick_answer  # noqa: PLC0415  help must not pay for it

    code = quick_answer(name, rest)
    if code is not None:
        return code
    from tui.commands.base import dispatch  # noqa: PLC0415  only what no engine has answered

    return dispatch(name, rest)


def _unknown(word: str) -> int:
    from engine.spec.nearest import nearest  # noqa: PLC0415  only a slip pays for it

    guess = nearest(word, COMMANDS)
    sys.stderr.write(
        f"plait: {word!r} is neither a command nor a folder"
        + (f"; did you mean `plait {guess}`?\n" if guess else "; `plait --help` lists them\n")
    )
    return 2


def help_text() -> str:
    """Return the text of `plait --help`."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return (
        f"{_USAGE}\n\n"
        "Runs many coding agents at once in one git repository, each in its own worktree.\n"
        "Watch them live, then land the work that you have reviewed.\n\n"
        f"{rows}\n\n"
        "`plait COMMAND --help` says more. Without a command, the console opens.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
