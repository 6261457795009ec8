"""The page of keys, written from the key table; `python -m tests.support.key_page` writes it."""

import textwrap
from pathlib import Path

from tui.keys import ACTIONS, PLAYING, SCREENS, Action, default_keymap, shown
from tui.keys.file import FIXED, SIGNS
from tui.keys.ideas import PALETTE_ONLY
from tui.keys.table import actions_on
from tui.words.reasons import ELSEWHERE
from tui.words.sentences import with_keys

KEYMAP = default_keymap()
_PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
_HEAD = """# Keys

A key has the same role on every screen: `a` says yes, `x` says no, `n` goes to the next, `L` lands.
`x` asks before it stops an agent, kills it or rejects a change. `u` undoes what you did last, if it
can be undone.

- `?` lists the keys of your screen, and says why a gray one does nothing now.
- `:` finds an action by its name.
- [Your own key file](#your-own-keys) binds other keys to the names in the right column.

plait writes this page from its key table.

## The mouse

| do | what happens |
|---|---|
| click a worker or its mark in the run line, a tab, file, hunk or name | moves the cursor there |
| click a key that is shown | presses that key |
| double-click | opens what is under the mouse |
| turn the wheel | scrolls the pane under the mouse |
| drag over text | selects it, also while a log streams; `y` copies it, `esc` ends the selection |
| drag the edge of a pane or of a column | sets its width, which plait keeps for this repository |
| double-click such an edge | resets the width |
"""
_OWN = """## Your own keys

`plait/keys.toml` in your configuration folder (`~/.config`, or `$XDG_CONFIG_HOME`) binds other keys
to a name of this page. A name without a screen applies to every screen. plait reads the file when
it starts. A file with a mistake has no effect, and plait names the line.

```toml
fleet.zoom = "Q, percent"               # two keys for one name
land = "ctrl+g"                         # on every screen
everywhere.go_stats = "g left_bracket"  # a chord
```

"""
_MORE = {
    "worker": ("| `tab` `shift+tab` | next and previous tab | `everywhere.pane` |",),
    "stats": (
        "| `h` `l` | choose what the rows are: agents, models, … (or `tab`) | `everywhere.left` |",
        "| `J` `K` | choose whose attempts: this repository, all, … | `everywhere.unit_down` |",
    ),
}
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
    parts += [_own_keys()]
    seldom = [f"- `everywhere.{idea.name}`: {idea.meaning}" for idea in PALETTE_ONLY]
    parts += ["## Only in the palette\n", "\n".join(seldom) + "\n"]
    return "\n".join(parts)


def _table(screen: str) -> str:
    bound = default_keymap()
    rows = [
        f"| {_code(bound.of(action.id))} | {action.told} | `{action.id}` |"
        for action in ACTIONS.values()
        if action.screen == screen and bound.of(action.id) and action.id not in ELSEWHERE
    ]
    missing = [
        f"{_code(bound.of(action))} ({with_keys(reason, KEYMAP.shown_by_idea.__getitem__)})"
        for action, reason in ELSEWHERE.items()
        if action.startswith(f"{screen}.") and screen != "everywhere"
    ]
    table = "\n".join(["| keys | do | name |", "|---|---|---|", *rows, *_MORE.get(screen, ())])
    return table + (f"\n\nWithout effect here: {'; '.join(missing)}.\n" if missing else "\n")


def _own_keys() -> str:
    signs = ", ".join(f"`{name}`" for name in SIGNS)
    fixed = ", ".join(f"`{key}`" for key in FIXED)
    names = (
        f"Write a key as its character, or by name: {signs}, `space`, `tab`, `up` and so on. "
        f"Two keys that begin with `g`, `,`, `]` or `[` are a chord. You cannot rebind {fixed}."
    )
    return _OWN + textwrap.fill(names, 100) + "\n"


def _code(keys: tuple[str, ...]) -> str:
    return " ".join(f"`{shown(key)}`" for key in keys)


if __name__ == "__main__":
    _PAGE.write_text(key_page())
