"""Say how a program that is served for you is, in a sentence."""

from engine.messages.served import Served, ServedState
from tui.words.clean import clean


def served_text(served: Served) -> str:
    """Return how it is: where to look, what it waits for, or how it ended."""
    match served.state:
        case ServedState.PREPARING:
            return "is getting a fresh copy of its files"
        case ServedState.STARTING:
            return clean(served.note) or "is starting"
        case ServedState.READY:
            return f"is at {served.url}{_of_what(served)}"
        case ServedState.ENDED:
            return clean(served.note)


def _of_what(served: Served) -> str:
    return f" (attempt {served.attempt}, in a fresh copy)" if served.is_own_tree else ""
