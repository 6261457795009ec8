"""What all sub-commands share: finding the module, exit codes, errors as sentences."""

import argparse
import errno
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Protocol

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
        "Make room where plait keeps its state, or set PLAIT_STATE_HOME to a folder that has some.",
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS),
        "plait keeps what it knows in `.git/plait`: you must be allowed to write there.",
    ),
}
_FULL_NAME = re.compile(
    r"(?:(?P<run>[^/]+)/(?=[^/]+/))?(?P<worker>(?:[^/]+/)?(?:worker_\d+|woven))(?:@(?P<attempt>\d+))?"
)
_SHARED = {
    **dict.fromkeys(("cancel", "retry", "pause", "answer", "steer"), "acting"),
    **dict.fromkeys(("choose", "approve", "reject", "land"), "deciding"),
    **dict.fromkeys(("attach", "console"), "console"),
    **dict.fromkeys(("status", "runs"), "status"),
    **dict.fromkeys(("validate", "plan"), "manifest"),
    **dict.fromkeys(("clean", "restore"), "cleaning"),
}


def dispatch(name: str, words: list[str]) -> int:
    """Parse one sub-command's words and run it."""
    module = import_module(f"tui.commands.{_SHARED.get(name, name)}")
    prog = "plait" if name == "console" else f"plait {name}"
    parser = argparse.ArgumentParser(prog=prog, allow_abbrev=False)
    parser.set_defaults(command=name)
    module.add_arguments(parser)
    args = parser.parse_args(words)
    try:
        return int(module.run(args))
    except KeyboardInterrupt:
        say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED if name in {"run", "resume"} else EXIT_OK
    except Exception as error:  # noqa: BLE001  the outermost place: an error is a sentence
        return _tell(error)


def _tell(error: Exception) -> int:
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
    """Talk, on stderr."""
    sys.stderr.write(f"{text}\n")


def put(text: str) -> None:
    """Data, on stdout."""
    sys.stdout.write(f"{text}\n")


def put_json(value: Any) -> None:
    """One JSON document, on stdout."""
    put(json.dumps(value, ensure_ascii=False, indent=2))


def in_loop(act: Callable[[], Awaitable[int]]) -> int:
    """Run an async command."""
    import anyio  # noqa: PLC0415  commands that need no loop need not load it

    return anyio.run(act)


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


def add_repo(parser: argparse.ArgumentParser) -> None:
    """The option that every command on a repository has."""
    parser.add_argument("-C", dest="repo", metavar="REPO", default=".", help="the repository")
