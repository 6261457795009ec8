"""Find the known word that a mistyped one was probably meant to be."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

_LONGEST = 60
_MOST = 200


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the closest known word, or None; of long lists only a part is searched."""
    if len(word) > _LONGEST:
        return None
    lowered = {name.lower(): name for name in islice(known, _MOST)}
    found = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def unmeant(name: str, found: Sequence[object], known: Iterable[object]) -> tuple[str, str]:
    """Say why a name means no single worker, and which names it could be.

    Args:
        name: What was said.
        found: The workers that it can mean: none, or several.
        known: Every worker of the run.
    """
    names = [str(worker) for worker in found or known]
    hint = f"Name one of: {', '.join(names[:8])}"
    if found:
        return f"{name!r} matches several workers", hint
    guess = nearest(name, names)
    return f"{name!r} is not a worker of this run" + (
        f"; did you mean {guess}?" if guess else ""
    ), hint
