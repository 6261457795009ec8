"""Name the key that helps where fingers from lazygit, vim, k9s or tmux try one that has no meaning.

Every such key of theirs, and the idea that they mean with it. Keys that do have a meaning here say
by themselves what they did.
"""

from collections.abc import Callable

from tui.keys.table import Action

_MEANT = {
    "no": "D delete ctrl+k",
    "leave": "ctrl+g",
    "back": "Q backspace",
    "help": "f1",
    "steer": "i I",
    "start": "ctrl+n ctrl+t insert",
    "pick": "ctrl+b ctrl+w ; '",
    "terminal": "t $ ~",
    "search": "ctrl+f f3 *",
    "select": "V ctrl+space",
    "palette": "ctrl+a ctrl+x",
    "less": "_",
    "more": "| % {",
    "page_down": "ctrl+e }",
    "page_up": "ctrl+y",
    "first": "<",
    "last": ">",
    "go_plan": "6",
    "go_runs": "7 8 9",
    "redraw": "f5",
    "open": "ctrl+o f4",
    "try": "b B",
    "undo": "ctrl+underscore",
}
GUESSED = {key: idea for idea, keys in _MEANT.items() for key in keys.split()}


def said_of_unbound(
    key: str, sign: str, key_of: Callable[[str], str], action: Callable[[str], Action | None]
) -> tuple[str, str, str]:
    """Return what is said of a key without a meaning: its sign, why not, and what helps."""
    if sign.isalpha() and not sign.isascii():
        return sign, "this keyboard layout is not Latin", "arrows, enter, space and digits work"
    shown = sign if sign.isprintable() and sign else key
    for idea in filter(None, (GUESSED.get(sign), GUESSED.get(key))):
        if (named := key_of(idea)) and (known := action(idea)):
            return shown, "this key does nothing here", f"{named}: {known.told}"
    return shown, "this key does nothing here", f"{key_of('help')} lists the keys"
