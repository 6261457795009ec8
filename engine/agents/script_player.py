# ruff: noqa: TID251, S603, S607
# This file is a program of its own: it runs where an agent runs, with the standard library alone,
# so the bans that keep the engine's rooms apart do not speak of it.
"""Plays a script as if it were a coding agent, speaking the engine's line protocol.

Knows steps already chosen, checked and written as JSON by `engine.agents.script`; it is copied to
where it runs and imports nothing of the engine. `docs/scripted.md` describes every step.
"""

import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

Args = Any
_READ = 65536


class BrokenOff(Exception):
    """Somebody interrupted the step that was being played."""


class Player:
    """One play of one script."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.values: dict[str, str] = dict(script["values"])
        self.pace = float(script["pace"])
        self.chance = random.Random(script["seed"])  # noqa: S311 - repeatable, not secret
        self.spent = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}
        self.last_said = ""
        self.calls = 0
        self.questions = 0
        self.heard = b""
        self.answers: dict[str, str] = {}
        self.is_deaf = False
        self.ballast: list[bytearray] = []

    # -------------------------------------------------------------- speaking and listening

    def tell(self, kind: str, **fields: object) -> None:
        """One record of the protocol, written at once."""
        line = json.dumps({"plait": kind, **fields}, ensure_ascii=False)
        sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()

    def listen(self, seconds: float | None, *, until: str = "") -> None:
        """Let time pass while hearing what is said; ends early once `until` is answered."""
        end = None if seconds is None else time.monotonic() + seconds
        while until not in self.answers:
            if self.is_deaf and end is None:
                return  # nobody is left who could say anything
            left = None if end is None else max(0.0, end - time.monotonic())
            if select.select([] if self.is_deaf else [0], [], [], left)[0]:
                self.hear(os.read(0, _READ))
            elif left is not None:
                return

    def hear(self, data: bytes) -> None:
        """Take in what came: keep answers, acknowledge words, break off at an interrupt."""
        if not data:
            self.is_deaf = True
            return
        *lines, self.heard = (self.heard + data).split(b"\n")
        for line in lines:
            try:
                record = json.loads(line)
                kind = record["plait"]
            except (ValueError, KeyError, TypeError):
                continue
            if kind == "answer":
                self.answers[str(record.get("id"))] = str(record.get("answer", ""))
                self.values["reason"] = str(record.get("reason", ""))
            elif kind == "steer":
                self.values["steered"] = str(record.get("text", ""))
                self.say(f"Understood: {self.values['steered']}")
            elif kind == "interrupt":
                raise BrokenOff

    def fill(self, text: object) -> str:
        """The text with the values that are known put into their places."""
        return re.sub(
            r"\{(\w+)\}",
            lambda m: self.values.get(m[1], m[0]),
            text if isinstance(text, str) else str(text),
        )

    def say(self, text: str) -> None:
        """A whole message."""
        self.last_said = text
        self.tell("say", text=text)

    def use(self, name: str, title: str, paths: tuple[str, ...] = ()) -> Callable[..., None]:
        """A tool call begins; what is returned ends it."""
        self.calls += 1
        identity = f"call-{self.calls}"
        self.tell("tool", id=identity, name=name, title=title, state="started", paths=list(paths))

        def end(state: str = "done", output: str = "") -> None:
            self.tell("tool", id=identity, name=name, state=state, output=output)

        return end

    # -------------------------------------------------------------- playing

    def play(self, steps: list[dict[str, Any]]) -> None:
        """Each step in turn; an interrupt breaks off the one that is being played."""
        for step in steps:
            for name, args in step.items():
                try:
                    self.listen(0)
                    getattr(self, f"do_{name}")(args)
                except BrokenOff:
                    self.say("Interrupted.")

    def do_say(self, args: Args) -> None:
        """Say something, whole or word by word."""
        args = args if isinstance(args, dict) else {"text": args}
        text = self.fill(args["text"])
        if not args.get("stream"):
            self.say(text)
            return
        self.last_said = text
        for word in re.findall(r"\s*\S+", text):
            self.tell("say", text=word, delta=True)
            self.listen(0.03 * self.pace)

    def do_think(self, args: Args) -> None:
        """Think aloud."""
        self.tell("think", text=self.fill(args))

    def do_tool(self, args: Args) -> None:
        """Pretend to use a tool."""
        end = self.use(args["name"], self.fill(args.get("title", "")), tuple(args.get("paths", ())))
        self.do_sleep(args.get("for", 0))
        end(args.get("state", "done"), self.fill(args.get("output", "")))

    def do_read(self, args: Args) -> None:
        """Read a file."""
        end = self.use("Read", self.fill(args), (self.fill(args),))
        path = Path(self.fill(args))
        end(
            *(
                ("done", path.read_text(errors="replace"))
                if path.is_file()
                else ("failed", "no such file")
            )
        )

    def do_write(self, args: Args) -> None:
        """Write a whole file."""
        self.edit("Write", args["path"], lambda _: self.fill(args["text"]))

    def do_append(self, args: Args) -> None:
        """Put text at a file's end."""
        self.edit("Edit", args["path"], lambda old: old + self.fill(args["text"]))

    def do_replace(self, args: Args) -> None:
        """Put one text into the place of another."""
        old, new = self.fill(args["old"]), self.fill(args["new"])
        self.edit("Edit", args["path"], lambda text: text.replace(old, new, args.get("count", -1)))

    def do_delete(self, args: Args) -> None:
        """Remove a file."""
        end = self.use("Delete", self.fill(args), (self.fill(args),))
        Path(self.fill(args)).unlink(missing_ok=True)
        end()

    def edit(self, tool: str, name: str, change: Callable[[str], str]) -> None:
        """Change a file's text, under the name of a tool."""
        path = Path(self.fill(name))
        end = self.use(tool, str(path), (str(path),))
        old = path.read_text(errors="replace") if path.is_file() else ""
        new = change(old)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new)
        if new == old:
            end("failed", "nothing changed")
        else:
            lines = len(new.splitlines())
            end("done", f"{path}: {lines} {'line' if lines == 1 else 'lines'}")

    def do_shell(self, args: Args) -> None:
        """Run a command; a failure is reported, and ends the play only where it `must` succeed."""
        args = args if isinstance(args, dict) else {"command": args}
        command = self.fill(args["command"])
        code, output = self.run(["/bin/sh", "-c", command], title=command)
        if code and args.get("must"):
            self.do_fail({"text": f"`{command}` ended with {code}: {output[-200:].strip()}"})

    def run(self, argv: list[str], *, title: str) -> tuple[int, str]:
        """Run a program as a tool, its output shown when it has ended."""
        end = self.use("Bash", title)
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        output = done.stdout.decode("utf-8", "replace")
        end("failed" if done.returncode else "done", output[-4000:])
        return done.returncode, output

    def do_commit(self, args: Args) -> None:
        """Commit everything, with an identity of its own where there is none."""
        self.run(["git", "add", "-A"], title="git add -A")
        known = subprocess.run(["git", "config", "user.email"], capture_output=True, check=False)
        who = (
            []
            if known.returncode == 0
            else ["-c", "user.name=Scripted agent", "-c", "user.email=scripted@plait.invalid"]
        )
        message = self.fill(args)
        self.run(["git", *who, "commit", "-q", "-m", message], title=f"git commit -m {message!r}")

    def do_sleep(self, args: Args) -> None:
        """Let time pass: seconds, or a range to choose from."""
        seconds = self.chance.uniform(*args) if isinstance(args, list) else float(args)
        self.listen(seconds * self.pace)

    def do_ask(self, args: Args) -> None:
        """Ask and wait; then play what belongs to the answer."""
        args = args if isinstance(args, dict) else {"text": args}
        self.questions += 1
        identity = f"question-{self.questions}"
        about = {key: self.fill(args[key]) for key in ("tool", "detail") if key in args}
        self.tell(
            "ask",
            id=identity,
            text=self.fill(args["text"]),
            choices=[self.fill(choice) for choice in args.get("choices", ())],
            permission=bool(args.get("permission")),
            **about,
        )
        self.listen(None, until=identity)
        answer = self.answers.pop(identity, "deny")
        self.values["answer"] = answer
        others = args.get("on", {})
        self.play(others.get(answer, others.get("else", [])))

    def do_usage(self, args: Args) -> None:
        """Spend tokens and money; what is reported are the totals."""
        for key, value in args.items():
            self.spent[key] += value
        self.tell("usage", **self.spent)

    def do_progress(self, args: Args) -> None:
        """Say how far it is."""
        args = args if isinstance(args, dict) else {"fraction": args}
        self.tell("progress", fraction=args.get("fraction"), note=self.fill(args.get("note", "")))

    def do_agents(self, args: Args) -> None:
        """Say how many sub-agents have been started."""
        self.tell("agents", count=args)

    def do_retrying(self, args: Args) -> None:
        """Say that the model is asked again."""
        self.tell("retry", **args)

    def do_rate_limit(self, args: Args) -> None:
        """Say that the allowance is used up; end with it where `ends` says so."""
        self.tell("rate_limit", **{k: v for k, v in args.items() if k != "ends"})
        if args.get("ends"):
            self.do_fail({"text": "The rate limit is reached."})

    def do_stdout(self, args: Args) -> None:
        """Print a line that is no record."""
        sys.stdout.buffer.write(self.fill(args).encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()

    def do_stderr(self, args: Args) -> None:
        """Print a line to standard error."""
        sys.stderr.buffer.write(self.fill(args).encode("utf-8", "replace") + b"\n")
        sys.stderr.buffer.flush()

    def do_flood(self, args: Args) -> None:
        """Print many lines as fast as they are taken."""
        args = args if isinstance(args, dict) else {"lines": args}
        out = sys.stderr.buffer if args.get("stream") == "err" else sys.stdout.buffer
        text = self.fill(args.get("text", "line {n} of the flood"))
        for n in range(1, args["lines"] + 1):
            out.write(text.replace("{n}", str(n)).encode("utf-8", "replace") + b"\n")
        out.flush()

    def do_memory(self, args: Args) -> None:
        """Take memory, touch every page of it, and keep it."""
        args = args if isinstance(args, dict) else {"mb": args}
        for _ in range(args["mb"]):
            self.ballast.append(bytearray(os.urandom(4096)) * 256)
        self.do_sleep(args.get("for", 0))

    def do_cpu(self, args: Args) -> None:
        """Burn a processor for so many seconds of its time."""
        end = time.process_time() + float(args)
        while time.process_time() < end:
            pass

    def do_disk(self, args: Args) -> None:
        """Write so many megabytes that cannot be compressed."""
        with Path(self.fill(args.get("path", "ballast.bin"))).open("ab") as file:
            file.writelines(os.urandom(1 << 20) for _ in range(args["mb"]))

    def do_spawn(self, args: Args) -> None:
        """Start children that outlive their tool call; detached ones leave session and parent."""
        args = args if isinstance(args, dict) else {"count": args}
        command = ["sleep", str(args.get("for", 600))]
        if args.get("detached"):
            command = ["/bin/sh", "-c", f"setsid {' '.join(command)} >/dev/null 2>&1 </dev/null &"]
        for _ in range(args.get("count", 1)):
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def do_ignore_term(self, _args: Args) -> None:
        """Ignore the polite signals from here on."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def do_hang(self, _args: Args) -> None:
        """Do nothing more, until interrupted or ended."""
        self.listen(None, until="\0")
        while True:
            signal.pause()

    def do_repeat(self, args: Args) -> None:
        """Play steps several times; `{i}` counts from 1."""
        for i in range(1, args["times"] + 1):
            self.values["i"] = str(i)
            self.play(args["steps"])

    def do_fail(self, args: Args) -> NoReturn:
        """Say honestly that it failed, and end."""
        args = args if isinstance(args, dict) else {"text": args}
        self.tell("result", text=self.fill(args["text"]), ok=False)
        leave(args.get("exit", 1))

    def do_crash(self, args: Args) -> NoReturn:
        """End without a closing record: by exit code, or by a signal's name."""
        if isinstance(args, str):
            os.kill(os.getpid(), signal.Signals[args])
            signal.pause()
        leave(int(args))

    def do_result(self, args: Args) -> NoReturn:
        """End well, with these words."""
        self.tell("result", text=self.fill(args), ok=True)
        leave(0)


def leave(code: int) -> NoReturn:
    """End at once: children that hold the output are none of an agent's worries."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


STEPS = tuple(sorted(name[3:] for name in vars(Player) if name.startswith("do_")))


def main() -> NoReturn:
    """Play the script whose file is named as the only argument."""
    script = json.loads(Path(sys.argv[1]).read_bytes())
    player = Player(script)
    try:
        if script["session"]:
            player.tell("session", id=script["session"])
        player.play(script["steps"])
        player.do_result(player.last_said or "Done.")
    except KeyboardInterrupt:
        leave(130)
    except BrokenPipeError:
        leave(141)


if __name__ == "__main__":
    main()
