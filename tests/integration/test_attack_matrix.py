"""The attack matrix, row by row: every attack on every rung, as root and as an ordinary user."""

import os

import pytest

from tests.support.attack_matrix import BEGIN, END, PAGE, measure_all
from tests.support.attacks import ATTACKS, ROOT_ONLY
from tests.support.matrix import NOT_HERE, ROWS, RUNGS, Measured, Row, table

pytestmark = pytest.mark.long
USERS = ("root", "ordinary") if os.getuid() == 0 else ("ordinary",)


@pytest.fixture(scope="module")
def found() -> dict[str, Measured]:
    return measure_all()


def cases() -> list[tuple[str, str, Row]]:
    return [
        (user, rung, row)
        for user in USERS
        for rung in RUNGS
        for row in ROWS
        if row.expected(rung, is_root=user == "root") != NOT_HERE
    ]


@pytest.mark.parametrize(
    ("user", "rung", "row"),
    [pytest.param(*case, id=f"{case[2].name}-{case[1]}-{case[0]}") for case in cases()],
)
def test_an_attack_gets_what_the_page_says(
    found: dict[str, Measured], user: str, rung: str, row: Row
):
    got = found[user].rungs.get(rung, {}).get(row.name)
    # What this machine cannot show is left out of the results, by `unmeasured`.
    assert got in (None, row.expected(rung, is_root=user == "root"))


@pytest.mark.parametrize("user", USERS)
def test_every_attack_gets_through_where_nothing_guards(found: dict[str, Measured], user: str):
    assert found[user].uncontrolled == []


def test_most_rows_are_measured_and_not_only_told(found: dict[str, Measured]):
    measured = sum(len(rung) for each in found.values() for rung in each.rungs.values())
    rungs = sum(len([rung for rung in each.rungs.values() if rung]) for each in found.values())
    assert measured >= 40 * rungs
    assert len(cases()) >= 120


def test_the_page_on_security_is_the_matrix(found: dict[str, Measured]):
    page = PAGE.read_text()
    told = page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip()
    assert told == table({user: each.rungs for user, each in found.items()}).strip()


def test_every_attack_is_a_row():
    assert {row.attack for row in ROWS if row.limits is None and not row.after} == set(ATTACKS)
    assert set(ATTACKS) >= ROOT_ONLY
