"""The account of an agent that is asked ahead: what ends it, and that it survives on disk."""

import json

import pytest

from engine.limits import Usage
from engine.merge import HunkKey
from engine.plan.model import AgentChoice, AssistRule
from engine.review.assisting import Assisted, Spent

RULE = AssistRule(
    agent=AgentChoice(name="helper", adapter="scripted"), requests=3, usd=0.5, seconds=60
)


def asked(*costs: float | None, seconds: float = 1.0) -> Assisted:
    account = Assisted()
    for number, usd in enumerate(costs):
        spent = Spent(Usage(usd=usd), seconds)
        account = account.begun(HunkKey(str(number))).ended(spent, is_answer=True)
    return account


@pytest.mark.parametrize(
    ("account", "spent"),
    [
        (asked(0.1, 0.1), ""),
        (asked(None, None), ""),
        (asked(0.1, 0.1, 0.1), "all 3 requests are used"),
        (asked(0.5), "$0.5 is spent"),
        (asked(None, seconds=60), "its 1 minutes are over"),
    ],
)
def test_whichever_part_of_the_budget_is_used_up_first_ends_it(account: Assisted, spent: str):
    assert account.spent(RULE) == spent


def test_a_question_counts_when_it_begins():
    begun = Assisted().begun(HunkKey("a"))
    assert (begun.requests, begun.answers, begun.hunks) == (1, 0, {"a"})


def test_what_has_no_price_is_told_apart():
    view = asked(0.25, None).view(RULE)
    assert (view.by, view.usd, view.unpriced, view.answers) == ("helper", 0.25, 1, 2)


def test_it_is_written_down_and_read_again():
    account = asked(0.25, None)
    assert Assisted.from_json(json.loads(json.dumps(account.to_json()))) == account
    assert Assisted.from_json({}) == Assisted()
