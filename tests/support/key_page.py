"""The page of keys, written from the key table; `python -m tests.support.key_page` writes it."""

from pathlib import Path

from tui.keys import ACTIONS, PLAYING, SCREENS, Action, default_keymap, shown
from tui.keys.ideas import PALETTE_ONLY
from tui.keys.table import actions_on
from tui.words.reasons import ELSEWHERE

_PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
_HEAD = """# Keys

One key has one idea everywhere; a screen may leave a key out, but never gives it another idea.
`?` shows those of the screen you are on, and why a grey one is grey; `:` finds them by name. Small
letters are harmless, undoable or ask first. A key file of your own, `keys.toml` in the folder
`plait` of your configuration, binds any of the names below anew.

This page is written from the key table.
"""
KEYMAP = default_keymap()


def keys_on(screen: str) -> dict[str, Action]:
    """Return every key that means something on a screen, and what it means."""
    return {key: action for action in actions_on(screen) for key in KEYMAP.keys[action.id]}


def key_page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Everywhere\n", _table("everywhere")]
    for screen in SCREENS:
        parts += [f"## {screen.capitalize()}\n", _table(screen)]
    played = [f"| {_code(idea.keys)} | {idea.meaning} | |" for idea in PLAYING]
    parts += ["## In a replay\n", "\n".join(["| keys | do | |", "|---|---|---|", *played]) + "\n"]
    seldom = [f"- `everywhere.{idea.name}`: {idea.meaning}" for idea in PALETTE_ONLY]
    parts += ["## Only in the palette\n", "\n".join(seldom) + "\n"]
    return "\n".join(parts)


def _table(screen: str) -> str:
    bound = default_keymap()
    rows = [
        f"| {_code(bound.of(action.id))} | {_told(action)} | `{action.id}` |"
        for action in ACTIONS.values()
        if action.screen == screen and bound.of(action.id)
    ]
    return "\n".join(["| keys | do | name |", "|---|---|---|", *rows]) + "\n"


def _told(action: Action) -> str:
    reason = ELSEWHERE.get(action.id)
    return f"{action.told}: not here, {reason}" if reason else action.told


def _code(keys: tuple[str, ...]) -> str:
    return " ".join(f"`{shown(key)}`" for key in keys)


if __name__ == "__main__":
    _PAGE.write_text(key_page())
