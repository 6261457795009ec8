"""Share between sub-commands: finding the module, exit codes, errors as sentences."""

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tui.commands import streams
from tui.commands.shells import HEARING, is_unicode
from tui.commands.streams import leave_unread

if TYPE_CHECKING:
    from engine.messages.commands import Seen
    from engine.messages.results import WorkerView
    from tui.app import PlaitApp

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_WAITS, EXIT_MISSING, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130


class Command(Protocol):
    """One sub-command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Say what it takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code."""


_HINTS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT),
        "Free some space where plait keeps its state, or set PLAIT_STATE_HOME to a folder "
        "with space.",
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "plait keeps its state in `.git/plait`, and you must be able to write there.",
    ),
}
_FULL_NAME = re.compile(
    r"(?:(?P<run>[^/]+)/(?=[^/]+/))?(?P<worker>(?:[^/]+/)?(?:worker_\d+|woven))(?:@(?P<attempt>\d+))?"
)
_WRONG_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<known>.*)\)")
_SHARED = {
    **dict.fromkeys(("cancel", "retry", "pause", "answer", "steer"), "acting"),
    **dict.fromkeys(("choose", "approve", "reject", "land"), "deciding"),
    **dict.fromkeys(("attach", "console"), "console"),
    **dict.fromkeys(("status", "runs"), "status"),
    **dict.fromkeys(("history", "stats"), "history"),
    **dict.fromkeys(("validate", "plan"), "manifest"),
    **dict.fromkeys(("clean", "restore"), "cleaning"),
    **dict.fromkeys(("sites", "site"), "sites"),
    **dict.fromkeys(("completions", "man"), "pages"),
    "try": "trying",
    "open": "opening",
}


class Parser(argparse.ArgumentParser):
    """A parser that names the nearest right word where one is wrong."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and what was probably meant."""
        super().error(f"{message}{self._guess(message)}")

    def _guess(self, message: str) -> str:
        from engine.spec.nearest import nearest  # noqa: PLC0415  only a slip pays for it

        if found := _WRONG_CHOICE.search(message):
            guess = nearest(found["word"], re.findall(r"[^\s',]+", found["known"]))
        else:
            _, _, words = message.partition("unrecognized arguments: ")
            known = [name for name in self._option_string_actions if name.startswith("--")]
            wrong = (word for word in words.split() if word.startswith("-"))
            guess = next(filter(None, (nearest(w.partition("=")[0], known) for w in wrong)), None)
        return f"; did you mean {guess}?" if guess else ""


def dispatch(name: str, words: list[str]) -> int:
    """Parse one sub-command's words and run it."""
    module, parser = parser_of(name)
    args = parser.parse_args(words)
    try:
        return int(module.run(args))
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        leave_unread()
        return EXIT_INTERRUPTED if name in {"run", "resume"} else EXIT_OK
    except Exception as error:  # noqa: BLE001  the outermost place: an error is a sentence
        return failed(error)


def parser_of(name: str, kind: type[Parser] = Parser) -> tuple[Command, Parser]:
    """The module of a sub-command and the parser of its words."""
    module: Command = import_module(f"tui.commands.{_SHARED.get(name, name)}")
    prog = "plait" if name == "console" else f"plait {name}"
    parser = kind(prog=prog, allow_abbrev=False, formatter_class=_formatter)
    parser.set_defaults(command=name)
    module.add_arguments(parser)
    return module, parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return what argparse makes for each option; to find the width, it would load `shutil`."""
    return argparse.HelpFormatter(prog, width=_columns() - 2)


def _columns() -> int:
    """Return the width of the terminal as `shutil.get_terminal_size` does."""
    said = os.environ.get("COLUMNS", "").strip()
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def failed(error: Exception) -> int:
    """Say what went wrong; the exit code. What plait does not know is raised."""
    from engine import errors  # noqa: PLC0415  only when something went wrong

    if isinstance(error, errors.EngineBug) or not isinstance(error, errors.EngineError | OSError):
        raise error
    say(_sentence(error))
    if hint := getattr(error, "hint", "") or _HINTS.get(getattr(error, "errno", 0)):
        say(hint)
    if isinstance(error, errors.MechanismMissing):
        return EXIT_MISSING
    usage = (
        errors.SpecError,
        errors.PlanError,
        errors.WorkspaceError,
        errors.AgentNotFound,
        errors.NoSuchRun,
        FileNotFoundError,
        IsADirectoryError,
        NotADirectoryError,
    )
    return EXIT_USAGE if isinstance(error, usage) else EXIT_FAILED


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(getattr(error, "strerror", None) or error)


def say(text: str) -> None:
    """Talk, on stderr; where its terminal has been closed nobody hears it."""
    shell, line = HEARING.get(), f"{text}\n"
    streams.say(line) if shell is None else shell.hear(line, is_data=False)


def put(text: str) -> None:
    """Data, on stdout."""
    shell, line = HEARING.get(), f"{text}\n"
    streams.put(line) if shell is None else shell.hear(line, is_data=True)


def put_json(value: Any) -> None:
    """One JSON document, on stdout."""
    put(json_text(value, indent=2))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON that stdout can write whole: escaped where it has no Unicode, or a name is none."""
    text = json.dumps(value, ensure_ascii=not is_unicode(), indent=indent)
    if any("\ud800" <= char <= "\udfff" for char in text):  # bytes of a name that are no UTF-8
        text = json.dumps(value, indent=indent)
    return text


def in_loop(act: Callable[[], Awaitable[int]]) -> int:
    """Run an async command."""
    import anyio  # noqa: PLC0415  commands that need no loop need not load it

    return anyio.run(act)


async def run_console(app: "PlaitApp") -> None:
    """Run a console until it is left; then say what went wrong inside it."""
    await app.run_async()
    if said := app.failures.parting():
        say(said)


def part_name(args: argparse.Namespace) -> None:
    """Take the run and the attempt out of a worker's full name: `RUN/STEP/worker_1@2`.

    What an option says goes first. Any other name, such as a label, stays as it is.
    """
    found = _FULL_NAME.fullmatch(args.worker or "")
    if found is None:
        return
    args.worker = found["worker"]
    args.run = args.run or found["run"] or ""
    if found["attempt"] and getattr(args, "attempt", None) is None:
        args.attempt = int(found["attempt"])


def add_seen(parser: argparse.ArgumentParser) -> None:
    """Add the option that names what was looked at."""
    parser.add_argument(
        "--seen",
        type=_tree,
        metavar="TREE",
        help="the tree that you looked at; plait refuses any other with exit code 2",
    )


def _tree(text: str) -> str:
    if re.fullmatch(r"[0-9a-f]{7,64}", text) is None:
        raise argparse.ArgumentTypeError("expected a tree id of at least 7 hexadecimal digits")
    return text


def seen_of(args: argparse.Namespace) -> "Seen | None":
    """Return what `--seen` names."""
    from engine.messages.commands import Seen  # noqa: PLC0415  commands that only look need not load it

    return Seen(tree=args.seen) if args.seen is not None else None


def require_seen(args: argparse.Namespace, worker: "WorkerView", *trees: str | None) -> None:
    """Refuse to act on a change that is not the one that `--seen` names.

    Raises:
        ChangeMoved: It is another one, and so is each of these trees.
    """
    from engine.errors import ChangeMoved  # noqa: PLC0415  commands that only look need not load it

    known = (worker.change.tree if worker.change else None, *trees)
    if args.seen is not None and not any((tree or "").startswith(args.seen) for tree in known):
        hint = "Look at it again, then decide."
        raise ChangeMoved(f"{worker.worker} has changed since you looked", hint=hint)


def add_repo(parser: argparse.ArgumentParser) -> None:
    """The option that every command on a repository has."""
    parser.add_argument("-C", dest="repo", metavar="REPO", default=".", help="the repository")
