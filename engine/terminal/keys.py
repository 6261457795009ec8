"""Word keys, pastes and the mouse as a program in a terminal expects them."""

from collections.abc import Mapping
from enum import IntEnum

from engine.terminal.modes import Modes

_ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_NAMED: Mapping[str, bytes] = {
    "enter": b"\r",
    "escape": b"\x1b",
    "tab": b"\t",
    "shift+tab": b"\x1b[Z",
    "space": b" ",
    "ctrl+space": b"\x00",
    "ctrl+@": b"\x00",
    "ctrl+backslash": b"\x1c",
    "ctrl+right_square_bracket": b"\x1d",
    "ctrl+circumflex_accent": b"\x1e",
    "ctrl+underscore": b"\x1f",
    "ctrl+slash": b"\x1f",
    "backspace": b"\x7f",
    "ctrl+backspace": b"\x08",
    "shift+enter": b"\r",
    "ctrl+enter": b"\r",
    "f1": b"\x1bOP",
    "f2": b"\x1bOQ",
    "f3": b"\x1bOR",
    "f4": b"\x1bOS",
}
_TILDES = {
    "insert": 2,
    "delete": 3,
    "pageup": 5,
    "pagedown": 6,
    "f5": 15,
    "f6": 17,
    "f7": 18,
    "f8": 19,
    "f9": 20,
    "f10": 21,
    "f11": 23,
    "f12": 24,
}
_HELD = {"shift": 1, "alt": 2, "ctrl": 4}
_FARTHEST = 223
_SHORT, _LONG, _DRAG, _ANY = 9, 1000, 1002, 1003
_MOVES = 32
BEGINS_PASTE, ENDS_PASTE = b"\x1b[200~", b"\x1b[201~"


class Button(IntEnum):
    """Name what a mouse does, by the numbers of the terminals."""

    LEFT = 0
    MIDDLE = 1
    RIGHT = 2
    NONE = 3
    WHEEL_UP = 64
    WHEEL_DOWN = 65


def key_bytes(name: str, character: str | None, modes: Modes) -> bytes:
    """Return what a key sends; nothing for a key that has no bytes.

    Args:
        name: The key with what was held, such as `ctrl+left` or `a`.
        character: The sign that it types, if it types one.
        modes: What the program has switched on.
    """
    if name in _NAMED:
        return _NAMED[name]
    *held, key = name.split("+")
    bits = sum(_HELD.get(one, 0) for one in held)
    if key in _ARROWS:
        if bits:
            return f"\x1b[1;{bits + 1}{_ARROWS[key]}".encode()
        return f"\x1b{'O' if modes.has_application_cursor else '['}{_ARROWS[key]}".encode()
    if key in _TILDES:
        return f"\x1b[{_TILDES[key]}{f';{bits + 1}' if bits else ''}~".encode()
    if "alt" in held:
        rest = "+".join([one for one in held if one != "alt"] + [key])
        plain = key_bytes(rest, character, modes) or (key.encode() if len(key) == 1 else b"")
        return b"\x1b" + plain if plain else b""
    if "ctrl" in held and len(key) == 1 and key.isalpha() and key.isascii():
        return bytes([ord(key.lower()) & 0x1F])
    return character.encode("utf-8", "ignore") if character and "ctrl" not in held else b""


def paste_bytes(text: str, modes: Modes) -> bytes:
    """Return what a paste sends: it can end neither itself nor a line that was not in it."""
    kept = "".join(char for char in text if char in "\n\r\t" or char.isprintable())
    data = kept.replace("\r\n", "\r").replace("\n", "\r").encode("utf-8", "ignore")
    return BEGINS_PASTE + data + ENDS_PASTE if modes.takes_paste else data


def mouse_bytes(
    button: Button, x: int, y: int, modes: Modes, *, is_down: bool = True, is_move: bool = False
) -> bytes:
    """Return what the mouse sends; nothing where the program does not want to hear it."""
    if not _hears(button, modes.mouse, is_down=is_down, is_move=is_move):
        return b""
    code = button + (_MOVES if is_move else 0)
    if modes.has_long_mouse:
        return f"\x1b[<{code};{x + 1};{y + 1}{'M' if is_down else 'm'}".encode()
    if max(x, y) >= _FARTHEST:
        return b""
    short = code if is_down else Button.NONE
    return b"\x1b[M" + bytes([short + 32, x + 33, y + 33])


def _hears(button: Button, mode: int, *, is_down: bool, is_move: bool) -> bool:
    if is_move:
        return mode == _ANY or (mode == _DRAG and button is not Button.NONE)
    return mode >= _LONG or (mode == _SHORT and is_down)
