"""Journals of before lead to the same views, events and reports; new fields may come on top."""

from pathlib import Path

import pytest

from engine.ids import RunId
from engine.run.journal import Journal
from engine.store.sqlite.run_store import RunStore
from tests.frozen.kept import FOLDER, Flat, last_report, load, restore, views
from tests.frozen.scenarios import SCENARIOS

KEPT = sorted(FOLDER.glob("*.jsonl"))


def differences(frozen: Flat, now: Flat) -> list[str]:
    """Return where the values of before are not there any more, or are others."""
    return [
        f"{path}: {value!r} is {now.get(path, 'gone')!r} now"
        for path, value in frozen.items()
        if path not in now or now[path] != value
    ]


def test_every_scenario_is_kept():
    assert [path.stem for path in KEPT] == sorted(SCENARIOS)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_frozen_run_replays_to_the_views_and_the_report_of_its_day(kept: Path, tmp_path: Path):
    rows = load(kept)
    path = restore(rows, tmp_path)
    journal = Journal(RunId(path.parent.name), RunStore.open(path, read_only=True))
    frozen: dict[str, object] = {}
    steps = [row for row in rows if "fact" in row]
    for row, now in zip(steps, views(journal), strict=True):
        frozen = {k: v for k, v in frozen.items() if k not in row["gone"]} | row["view"]
        assert not differences(frozen, now), row["fact"][1]
    assert not differences(rows[-1]["report"], last_report(journal.replay()))
    journal.close()


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_the_events_of_a_frozen_run_can_still_be_read(kept: Path, tmp_path: Path):
    rows = load(kept)
    path = restore(rows, tmp_path)
    journal = Journal(RunId(path.parent.name), RunStore.open(path, read_only=True))
    told = [type(each.event).__name__ for each in journal.events()]
    assert told == [row["event"][1] for row in rows if "event" in row]
    journal.close()


def test_a_value_that_changed_is_seen(tmp_path: Path):
    del tmp_path
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == ["b: 2 is 3 now"]
    assert differences({"a": 1}, {}) == ["a: 1 is 'gone' now"]
