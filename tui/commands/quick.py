"""Let the engine that lives run a command that only looks, and print what it says.

Most of what a short command costs is its imports, and the engine has them all. It runs the same
code. If it does not answer, this process runs the command itself: these commands change nothing.
Without an engine, some of them say what was said before if nothing has changed since.
"""

from __future__ import annotations

import os
import time

from tui.commands.streams import is_colored, is_unicode, leave_unread, put, say

TYPE_CHECKING = False  # `typing` costs as much as all that this module does
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LOOKING = ("diff", "logs", "preview", "runs", "status")
"""The commands that change nothing, so that it is no harm to begin one twice."""
KEPT = ("runs", "status")
"""Those that read journals alone: without an engine, they say the same until one is written."""
_SEEN = ("HOME", "LANG", "LANGUAGE", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
"""Other variables of the desktop, such as `XDG_SESSION_ID`, differ with every login."""
_SEEN_PREFIXES = ("GIT_", "LC_", "PLAIT_")
_OK, _INTERRUPTED = 0, 130


def quick_answer(name: str, words: list[str]) -> int | None:
    """Run a command in the engine of its repository; None where it must be run here."""
    folder, rest = _parted(words) if name in LOOKING else (None, [])
    if folder is None:
        return None
    from engine.port.finding import state_around  # noqa: PLC0415  help needs no engine

    state = state_around(folder)
    if state is None:
        return None
    try:
        if not os.path.exists(f"{state}/engine.json"):
            return _kept(name, rest, state)
        return _answered(name, words, state, folder)
    except KeyboardInterrupt:
        say("interrupted\n")
        return _INTERRUPTED
    except BrokenPipeError:
        leave_unread()
        return _OK
    except OSError as error:
        from tui.commands.base import failed  # noqa: PLC0415  only when something went wrong

        return failed(error)


def _answered(name: str, words: list[str], state: str, folder: str) -> int | None:
    """Print what the engine that lives says; None where it does not answer."""
    from engine.port.direct import answer_of  # noqa: PLC0415  only where one may live

    request = _request([name, *words], folder)
    answer = answer_of(state, request) if request else None
    if answer is None:
        return None
    _print(answer["said"])
    return int(answer["code"])


def _kept(name: str, rest: list[str], state: str) -> int | None:
    """Print what the same command said before; None where it must be asked anew."""
    if name not in KEPT or rest not in ([], ["--json"]) or has_try(state):
        return None
    from engine.port.kept import kept_answer  # noqa: PLC0415  only where no engine lives

    said = kept_answer(state, kept_name(name, is_json=bool(rest)), surroundings())
    if said is None:
        return None
    _print(said)
    return _OK


def _print(said: Iterable[tuple[bool, str]]) -> None:
    for is_data, text in said:
        put(text) if is_data else say(text)


def _request(words: list[str], folder: str) -> dict[str, object] | None:
    """Return what an engine is sent; None where this process itself is about to change."""
    try:
        here, code = os.getcwd(), code_mark()
    except OSError:  # the folder we are in is gone, or an upgrade replaces plait right now
        return None
    return {
        "do": "run",
        "words": words,
        "cwd": here,
        "folder": folder,
        "environment": environment_seen(os.environ),
        "code": code,
        "is_unicode": is_unicode(),
        "is_colored": is_colored(),
    }


def _parted(words: list[str]) -> tuple[str | None, list[str]]:
    """Return the folder that a command line names, and its other words.

    The folder is None where the words must be parsed for that.
    """
    named, others = ".", list[str]()
    rest = iter(words)
    for word in rest:
        if word == "-C":
            named = next(rest, "")
        elif word == "--" or word.startswith("-C"):
            return None, []
        else:
            others.append(word)
    try:
        return (os.path.join(os.getcwd(), named) if named else None), others
    except OSError:  # the folder we are in is gone
        return None, []


def kept_name(command: str, *, is_json: bool) -> str:
    """Return the name under which a command's answer is kept."""
    return f"{command}-json" if is_json else command


def surroundings() -> dict[str, object]:
    """Return what changes the words of a command that only reads journals, but journals and code.

    It is plain data, as JSON gives it back.
    """
    try:
        zone = os.stat("/etc/localtime")
        clock = [zone.st_ino, zone.st_mtime_ns]
    except OSError:
        clock = []
    seen, day = environment_seen(os.environ), list(time.localtime()[:3])
    return {"environment": seen, "clock": clock, "day": day, "is_unicode": is_unicode()}


def has_try(state: str) -> bool:
    """Return True if a result is tried in the repository: that is said too."""
    return os.path.lexists(f"{state}/try.json")


def environment_seen(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment changes what a command says: an engine's may differ."""
    return {
        name: value
        for name, value in environ.items()
        if name in _SEEN or name.startswith(_SEEN_PREFIXES)
    }


def code_mark() -> list[str | int]:
    """Return a mark of this plait: another installation, or an upgrade, has another one.

    The path counts too: stores of packages share the files that two versions have alike.
    """
    found = os.stat(__file__)
    return [__file__, found.st_dev, found.st_ino, found.st_mtime_ns]
