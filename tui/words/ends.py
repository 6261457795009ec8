"""Say why a key that goes to the next of some things goes no further: one rule for all screens."""

from collections.abc import Collection

from tui.keys.ideas import PAIRS

_IDEAS = {way: idea for idea, way in PAIRS.items()}


def idea_of(name: str, by: int) -> str:
    """Return the idea that goes one way: `idea_of("next", -1)` is `previous`."""
    return _IDEAS[name, by]


def no_further(
    what: str, by: int, among: Collection[object], here: object, *, plural: str = ""
) -> str:
    """Return why a key goes no further.

    Args:
        what: The name of one thing.
        by: 1 for the next one, -1 for the one before.
        among: All the things that the key goes to.
        here: The one under the cursor; anything else if none is there.
        plural: The name of several, if it is not the name of one with an `s`.
    """
    if any(one != here for one in among):
        return f"no more {plural or f'{what}s'} {'down' if by > 0 else 'up'}"
    return f"this is the only {what}" if among else f"there is no {what}"
