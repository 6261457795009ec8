"""Make bindings of the key table, in the names that Textual has for keys, and find what they do."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from textual.binding import ActiveBinding, Binding, BindingType
from textual.keys import key_to_character

from tui.ink import BOLD, KEY, MUTED, Row, Span
from tui.keys import PLAYING, Keymap, actions_on, default_keymap, key_of, shown
from tui.keys.ideas import PAIRS
from tui.kit.private import name_of_sign


def as_textual(key: str) -> str:
    """Return a key of the table as Textual writes it; the keys of a chord stand apart."""
    is_chord = len(key) == 2  # noqa: PLR2004 - the name of a key is longer
    return " ".join(map(name_of_sign, key)) if is_chord else name_of_sign(key)


def keys_as_textual(keys: Iterable[str]) -> str:
    """Return alternative keys as one text of a binding or a keymap."""
    return ",".join(map(as_textual, keys))


def bindings_of(screen: str) -> list[BindingType]:
    """Return a binding for every action of a screen that has a key, and for the player's keys."""
    keymap = default_keymap()
    bound: list[BindingType] = [
        Binding(keys_as_textual(keys), f"idea('{action.idea}')", action.label, id=action.id)
        for action in actions_on(screen)
        if (keys := keymap.of(action.id))
    ]
    return bound + [
        Binding(keys_as_textual(idea.keys), f"play('{idea.name}')", idea.meaning, priority=True)
        for idea in PLAYING
    ]


def as_keymap(keymap: Keymap) -> dict[str, str]:
    """Return what a key file changed, for `App.set_keymap`."""
    usual = default_keymap().keys
    return {
        action: keys_as_textual(keys)
        for action, keys in keymap.keys.items()
        if keys != usual[action]
    }


def sign_of(key: str) -> str:
    """Return a key as it is written on screen."""
    return shown(key_to_character(key) or key)


def pressed_by(sign: str) -> Sequence[str]:
    """Return the keys that a click on a sign presses, in Textual's names; of several the first."""
    key = key_of(next(iter(sign.split()), ""))
    return as_textual(key).split() if key else ()


def chord_row(begun: str, follow: Iterable[ActiveBinding]) -> Row:
    """Return the keys that can follow a first one, with what each does."""
    row = [Span(f"{sign_of(begun)}  ", BOLD)]
    for active in follow:
        row += [Span(sign_of(active.binding.key.rpartition(" ")[2]), KEY)]
        row += [Span(f" {active.binding.description}  ", MUTED)]
    return tuple(row)


def doer_of(holder: object, idea: str) -> Callable[[], None] | None:
    """Return what does an idea: `do_<idea>`, or of one of two ways `by_<name>`, and which way."""
    do: Callable[[], None] | None = getattr(holder, f"do_{idea}", None)
    name, way = PAIRS.get(idea, ("", 0))
    by = getattr(holder, f"by_{name}", None)
    return do or (partial(by, way) if by else None)
