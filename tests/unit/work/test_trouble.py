"""Tests of the reasons why a run stands still."""

import itertools

from engine.messages.results import Trouble
from engine.work.trouble import Troubles


def trouble(since: float) -> Trouble:
    return Trouble(what="/disk is full", help="Free some space there.", since=since)


def test_the_time_that_was_told_stays_whatever_order_activities_are_noted_in():
    for order in itertools.permutations((1.0, 2.0, 3.0)):
        told: list[Trouble | None] = []
        troubles = Troubles(told.append)
        for since in order:
            troubles.met(since, trouble(since))
        assert [one and one.since for one in told] == [order[0]], order


def test_it_goes_on_from_the_next_known_time_once_the_first_activity_goes_on():
    told: list[Trouble | None] = []
    troubles = Troubles(told.append)
    troubles.met("first", trouble(1.0))
    troubles.met("second", trouble(5.0))
    troubles.passed("first")
    troubles.passed("second")
    assert [one and one.since for one in told] == [1.0, 5.0, None]
