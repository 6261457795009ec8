"""The user's key file: what may be rebound, and everything that can be wrong with it.

A wrong file changes nothing: the defaults stay, and every problem is named with its line.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from tui.keys.table import ACTIONS, CHORD_STARTS, SCREENS, Keymap, actions_on, default_keymap

FIXED = ("escape", "enter", "ctrl+c")
"""Keys that nobody may rebind: the ways out and in must be where fingers expect them."""

SIGNS = {
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "equals": "=",
    "slash": "/",
    "colon": ":",
    "question": "?",
    "exclamation": "!",
    "dot": ".",
    "less": "<",
    "greater": ">",
    "left_bracket": "[",
    "right_bracket": "]",
    "semicolon": ";",
    "star": "*",
    "hash": "#",
    "percent": "%",
    "ampersand": "&",
    "underscore": "_",
    "esc": "escape",
    "pgdn": "pagedown",
    "pgup": "pageup",
}
"""Names of keys that a file may write instead of the characters or of longer names."""
_NAMED = frozenset(
    {
        "space",
        "enter",
        "escape",
        "tab",
        "shift+tab",
        "up",
        "down",
        "left",
        "right",
        "home",
        "end",
        "pageup",
        "pagedown",
        "shift+left",
        "shift+right",
        "backspace",
        "delete",
        "insert",
    }
)
UNSENT = frozenset(
    {
        "ctrl+i",
        "ctrl+m",
        "ctrl+h",
        "ctrl+b",
        "ctrl+a",
        "ctrl+s",
        "ctrl+w",
        "ctrl+t",
        "ctrl+n",
        "shift+enter",
        "alt+enter",
        "shift+space",
        "ctrl+left_square_bracket",
        "ctrl+up",
        "ctrl+down",
        "ctrl+left",
        "ctrl+right",
    }
)
"""Keys that terminals cannot tell from others, or that something in between keeps for itself."""
_CTRL = re.compile(r"ctrl\+[a-z]")


class KeyProblem(NamedTuple):
    """One thing wrong with a key file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def read_key_file(text: str, file: str = "keys.toml") -> tuple[Keymap, list[KeyProblem]]:
    """The keymap a key file asks for; the default one where anything in it is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        return default_keymap(), [
            KeyProblem(file, int(line[1]) if line else 1, f"not TOML: {error}")
        ]
    problems: list[KeyProblem] = []
    keys = dict(default_keymap().keys)
    for name, value in _flat(data):
        line_no = _line_of(text, name)
        message = _name_problem(name) or _value_problem(value)
        if message:
            problems.append(KeyProblem(file, line_no, message))
            continue
        for action_id in _meant(name):
            keys[action_id] = tuple(_key(part) for part in str(value).split(",") if part.strip())
    keymap = Keymap(keys)
    problems += [KeyProblem(file, _line_of(text, name), said) for name, said in clashes(keymap)]
    return (default_keymap(), problems) if problems else (keymap, [])


def clashes(keymap: Keymap) -> Iterator[tuple[str, str]]:
    """Every key that would mean two things on one screen, or begin a chord and act as well."""
    for screen in SCREENS:
        taken: dict[str, str] = {}
        for action in actions_on(screen):
            for key in keymap.of(action.id):
                if key in taken:
                    yield action.id, f"{key!r} on {screen} means both {taken[key]} and {action.id}"
                taken[key] = action.id
                if key in CHORD_STARTS:
                    yield action.id, f"{key!r} starts chords, so it cannot act alone"


def _flat(data: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _line_of(text: str, name: str) -> int:
    """The line on which a name is given a value: its last part, after its table if it has one."""
    last = re.escape(name.rpartition(".")[2])
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf'\s*"?(?:[\w."]*\.)?{last}"?\s*=', line):
            return number
    return 1


def _meant(name: str) -> list[str]:
    """The actions a name stands for: one, or an idea's on every screen."""
    if name in ACTIONS:
        return [name]
    return [action.id for action in ACTIONS.values() if action.idea == name]


def _name_problem(name: str) -> str:
    meant = _meant(name)
    if not meant:
        known = [*ACTIONS, *{action.idea for action in ACTIONS.values()}]
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        return f"unknown action {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    fixed = set(default_keymap().of(meant[0])) & set(FIXED)
    return f"{name}: {', '.join(sorted(fixed))} cannot be rebound" if fixed else ""


def _value_problem(value: object) -> str:
    if not isinstance(value, str):
        return f"{value!r} is not a key; write a string, with commas between alternatives"
    for part in value.split(","):
        key = _key(part)
        if part.strip() and not _is_known(key):
            near = get_close_matches(part.strip(), [*SIGNS, *_NAMED], n=1)
            return f"unknown key {part.strip()!r}" + (
                f"; did you mean {near[0]!r}?" if near else ""
            )
        if key in FIXED:
            return f"{key!r} is reserved"
        if key in UNSENT:
            return f"some terminals send another key for {key!r}"
    return ""


def _key(part: str) -> str:
    part = part.strip()
    first, _, second = part.partition(" ")
    if second:
        return SIGNS.get(first, first) + SIGNS.get(second.strip(), second.strip())
    return SIGNS.get(part, part)


def _is_known(key: str) -> bool:
    if key in _NAMED or key in UNSENT or _CTRL.fullmatch(key):
        return True
    if len(key) == 2:  # noqa: PLR2004 - a chord is two keys
        return key[0] in CHORD_STARTS and key[1].isprintable() and key[1] != " "
    return len(key) == 1 and key.isprintable() and key != " "
