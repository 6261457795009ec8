"""Read a JSON object from a line that may hold anything, and values from shapes that may be wrong.

An agent's stream is foreign text: nothing in it may raise past this room, become a string that
cannot be written down (a lone surrogate), or a number that is none.
"""

import json
from collections.abc import Mapping
from shlex import join
from typing import Any

from pydantic_core import from_json

type_error = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""The errors of reading a record of an unexpected shape."""

Record = dict[str, Any]


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


_DEEPEST = 201  # as deep as the quick reader goes
_scan = json.JSONDecoder(parse_constant=_no_constant).raw_decode


def read_record(line: bytes) -> Record | None:
    """The JSON object that this line is, or None if it is none."""
    if not line.startswith(b"{") and not line.lstrip().startswith(b"{"):
        return None
    try:
        # Twice to five times as quick as the standard library's, and as strict; what it refuses is
        # looked at again below, since some of that (half a character) can be borne.
        value = from_json(line, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        value = _read_patiently(line)
    return value if isinstance(value, dict) else None


def _read_patiently(line: bytes) -> object:
    text = line.decode("utf-8", "replace").strip()
    try:
        value, end = _scan(text)
        if "\\ud" in text or "\\uD" in text:
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) and not _is_deep(value) else None


def _is_deep(value: object) -> bool:
    """Return True for what the quick reader finds too deep: those who look into it recurse."""
    level = [value]
    for _ in range(_DEEPEST):
        inner = (
            one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
            for one in level
        )
        level = [part for parts in inner for part in parts if isinstance(part, (dict, list))]
    return bool(level)


def line_of(record: Mapping[str, object]) -> bytes:
    """The record as one line, its end included."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


_HUGE = 2**53
_NUMBERS = (int, float)


def table_of(value: object) -> Record:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """The value if it is text, a number as text, else nothing."""
    if isinstance(value, str):
        return value
    if value is not None and isinstance(value, _NUMBERS) and not isinstance(value, bool):
        return str(value)
    return ""


def plain_words(message: str) -> str:
    """Return the words of an error that came as its server's JSON; else the message itself."""
    found = read_record(message.encode("utf-8", "replace"))
    return text_of(at(found, "error", "message")) or message.strip()


def count_of(value: object) -> int | None:
    """The value as a count, or None where it is none."""
    if type(value) is int and 0 <= value < _HUGE:  # nearly always
        return value
    number = None if value is None else number_of(value)
    return None if number is None else int(number)


def number_of(value: object) -> float | None:
    """The value as a number that is neither negative nor absurd, or None where it is none."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if 0 <= number < _HUGE else None


def at(record: object, *keys: str) -> Any:
    """The value that lies at this path of keys, or None."""
    for key in keys:
        if not isinstance(record, dict):
            return None
        record = record.get(key)
    return record


def content_text(content: object) -> str:
    """The text of a message's content: text itself, or a list of blocks some of which have text."""
    if isinstance(content, str):  # nearly always
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (content_text(block) for block in content)))
    if isinstance(content, dict):
        return text_of(content.get("text")) or content_text(content.get("content"))
    return text_of(content)


_PATH_KEYS = ("file_path", "path", "filePath", "filepath", "notebook_path", "absolute_path")
_NAMES_PATH = frozenset(_PATH_KEYS)
_TITLE_KEYS = ("command", "cmd", *_PATH_KEYS, "pattern", "query", "url", "description", "prompt")


def paths_of(given: object) -> tuple[str, ...]:
    """The files that a tool's input names."""
    if not isinstance(given, dict):
        return ()
    return tuple([v for k, v in given.items() if k in _NAMES_PATH and isinstance(v, str) and v])


def subject_of(given: object) -> str:
    """Return the whole of what a tool's input is about: its command, its file, its question."""
    if not isinstance(given, dict):
        return ""
    if isinstance(several := given.get("commands"), list) and several:
        given = {"command": several[0], **given}
    values = (given.get(key) for key in _TITLE_KEYS)
    return next((v.strip() for v in values if isinstance(v, str) and v.strip()), "")


def title_of(given: object) -> str:
    """Return a title for a tool's input: the begin of what it is about, in one line."""
    return next(iter(subject_of(given).splitlines()), "")[:200]


def commands_of(given: object) -> tuple[str, ...]:
    """Return every command that a tool's input names, whole and each once.

    A command that is given word by word is quoted, so that its words do not run together.
    """
    several = at(given, "commands")
    named = (at(given, "command"), *(several if isinstance(several, list) else ()))
    return tuple(dict.fromkeys(filter(None, map(_command, named))))


def _command(words: object) -> str:
    return join(map(text_of, words)) if isinstance(words, list) else text_of(words).strip()


def input_of(given: object) -> str:
    """Return the whole input of a tool that is about neither a command nor a file.

    It is empty where the subject says all of it.
    """
    if not isinstance(given, dict) or commands_of(given) or paths_of(given):
        return ""
    if list(given.values()) == [subject_of(given)]:
        return ""
    return "\n".join(f"{key}: {_value(value)}" for key, value in given.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_EDITS = (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"))
"""The names that tools of agents give the text that an edit replaces, and the new text."""


def edit_of(given: object) -> tuple[int, int] | None:
    """Return how many lines an edit adds and removes; None where its input does not say so."""
    several = at(given, "edits")
    counts = [
        _lines_of(old, new)
        for edit in (given, *(several if isinstance(several, list) else ()))
        for before, after in _EDITS
        if isinstance(old := at(edit, before), str) and isinstance(new := at(edit, after), str)
    ]
    return (sum(n for n, _ in counts), sum(n for _, n in counts)) if counts else None


def _lines_of(old: str, new: str) -> tuple[int, int]:
    """Return the lines of a new text and an old one between what both begin and end with."""
    before, after = old.splitlines(), new.splitlines()
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    most = shorter - head
    tail = next((n for n in range(most) if before[-1 - n] != after[-1 - n]), most)
    return len(after) - head - tail, len(before) - head - tail


LONGEST_TAIL = 4096


def tail_of(text: str) -> str:
    """The end of a tool's output, short enough to be kept."""
    return text if len(text) <= LONGEST_TAIL else "…" + text[-LONGEST_TAIL:]
