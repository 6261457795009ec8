"""The known word that a mistyped one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 60
_MOST = 200


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest known word, or None where none is close; long lists are looked at in part."""
    if len(word) > _LONGEST:
        return None
    lowered = {name.lower(): name for name in islice(known, _MOST)}
    found = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None
