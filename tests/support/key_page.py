"""The page of keys, written from the key table; `python -m tests.support.key_page` writes it."""

from pathlib import Path

from tui.keys import ACTIONS, PLAYING, SCREENS, Action, default_keymap, shown
from tui.keys.ideas import PALETTE_ONLY
from tui.keys.table import actions_on
from tui.words.reasons import ELSEWHERE
from tui.words.sentences import with_keys

_PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
_HEAD = """# Keys

A key means the same on every screen. A screen may leave a key out, but never gives it another
meaning. Lower-case letters do no harm: you can undo what they do, or they ask first.

- `?` lists the keys of your screen, and says why a gray one does nothing now.
- `:` finds an action by its name.
- Your own key file, `plait/keys.toml` in your configuration folder, binds other keys to the names
  in the right column.

plait writes this page from its key table.

## The mouse

| do | what happens |
|---|---|
| click a worker or its mark in the run line, a tab, file, hunk or name | the cursor goes there |
| click a key that is shown | plait presses that key |
| double-click | it opens |
| turn the wheel | the pane under the mouse scrolls |
| drag over text | it is selected, also while a log goes on; `y` copies it, `esc` ends it |
| drag the edge of a pane or of a column | it keeps that width in this repository |
| double-click such an edge | it gets its usual width back |
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
    reason = with_keys(ELSEWHERE.get(action.id, ""), KEYMAP.shown_by_idea.__getitem__)
    return f"{action.told} (not here: {reason})" if reason else action.told


def _code(keys: tuple[str, ...]) -> str:
    return " ".join(f"`{shown(key)}`" for key in keys)


if __name__ == "__main__":
    _PAGE.write_text(key_page())
