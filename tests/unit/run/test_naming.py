"""A run is meant by its id or its title, and a title of several means none of them."""

import pytest

from engine.errors import NoSuchRun
from engine.ids import RunId
from engine.messages.questions import RunSummary, Standing
from engine.run.past import run_named

RUNS = tuple(
    RunSummary(id=RunId(run), started=0.0, standing=next(iter(Standing)), name=name)
    for run, name in (("c3", "Fix it"), ("b2", "Twice"), ("a1", "Twice"), ("Fix", "c3"))
)


@pytest.mark.parametrize(
    ("name", "run"),
    [("", "c3"), ("b2", "b2"), ("fix it", "c3"), ("c3", "c3"), ("nothing", "nothing")],
)
def test_a_run_is_meant_by_its_id_before_any_title(name: str, run: str):
    assert run_named(name, RUNS) == run


def test_a_title_of_several_runs_is_refused_with_their_ids():
    with pytest.raises(NoSuchRun) as refused:
        run_named("Twice", RUNS)
    assert refused.value.several == ("b2", "a1")
    assert "b2, a1" in refused.value.hint


def test_without_runs_nothing_is_meant():
    assert run_named("", ()) == ""
