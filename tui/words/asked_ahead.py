"""Words for an agent that is asked ahead about a merge: its answers, their cost, why it stopped."""

from engine.messages.merging import AssistView
from tui.words.figures import some


def answers(one: AssistView) -> str:
    """Return how often it answered, and what that cost as far as it says so."""
    if not one.requests:
        return "no question yet"
    priced = one.requests - one.unpriced
    cost = f"${one.usd:.2f}" if priced else "cost not reported"
    more = f", {one.unpriced} without a price" if priced and one.unpriced else ""
    return f"{some(one.answers, 'answer')} to {some(one.requests, 'question')}, {cost}{more}"


def stopped(one: AssistView) -> str:
    """Return why it is not asked any more; empty where it is."""
    return f"no longer asked: {one.spent}" if one.spent else ""
