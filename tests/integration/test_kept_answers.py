"""An answer that is kept is the one that the journals give now, or none."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from engine.ids import RunId
from engine.messages.events import RunFinished, RunStarted
from engine.messages.results import Outcome, RunReport
from engine.port import kept
from engine.port.kept import Look, kept_answer
from engine.store.codec import to_json
from engine.store.layout import Layout
from engine.store.sqlite import SqliteStore
from tui.commands.base import dispatch
from tui.commands.quick import quick_answer

ABOUT = {"a": 1}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The state of a repository, and a run in it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    made = Layout(tmp_path / ".git")
    made.make()
    begin(made, "aa")
    return made


def begin(layout: Layout, name: str, title: str = "fix") -> None:
    with SqliteStore(layout).create(
        RunId(name), plan_json="{}", core_version=1, meta={}
    ) as journal:
        started = RunStarted(name=title, steps=("a",), workers=("a/worker_1",), cap=1)
        journal.append([], [("RunStarted", to_json(started))], at=time.time())


def finish(layout: Layout, name: str, outcome: Outcome = Outcome.SUCCESS) -> None:
    report = RunReport(run=name, name="fix", outcome=outcome, steps={})
    with SqliteStore(layout).run(RunId(name)) as journal:
        journal.append([], [("RunFinished", to_json(RunFinished(report=report)))], at=time.time())


def keep(layout: Layout, text: str = "well\n") -> None:
    look = Look.begin(str(layout.root))
    assert look is not None
    look.keep("runs", ABOUT, [(True, text)])


def answer(layout: Layout) -> object:
    return kept_answer(str(layout.root), "runs", ABOUT)


def drafts(layout: Layout) -> list[str]:
    said = layout.root / "said"
    return [one.name for one in said.iterdir() if one.name.startswith(".")] if said.is_dir() else []


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_between_two_looks_they_say_what_the_journals_say(
    layout: Layout, capsys: pytest.CaptureFixture[str], seed: int
):
    dice, names, kept_ones = random.Random(seed), ["aa", "bb", "cc"], 0
    where = ["-C", str(layout.common_dir.parent)]
    for _ in range(60):
        name = dice.choice(names)
        is_there = name in SqliteStore(layout).names()
        match dice.randrange(8):
            case 0 if is_there:
                layout.run(RunId(name)).rename(layout.trash / f"{name}{time.time_ns()}")
            case 1 if not is_there:
                begin(layout, name, str(dice.random()))
            case 2 if is_there:
                finish(layout, name, dice.choice(list(Outcome)))
        more = dice.choice([[], ["--json"]])
        quick = quick_answer("runs", [*where, *more])
        said = capsys.readouterr().out
        assert dispatch("runs", [*where, *more]) == 0
        told = capsys.readouterr().out
        kept_ones += quick is not None
        assert quick is None or said == told
    assert kept_ones > 10
    assert drafts(layout) == []


def test_it_is_said_until_a_journal_is_written(layout: Layout):
    keep(layout)
    assert answer(layout) == answer(layout) == [(True, "well\n")]
    finish(layout, "aa")
    assert answer(layout) is None


def test_a_new_run_and_one_that_went_are_seen(layout: Layout):
    keep(layout)
    begin(layout, "bb")
    assert answer(layout) is None
    keep(layout)
    layout.run(RunId("bb")).rename(layout.trash / "bb")
    assert answer(layout) is None


def test_a_journal_that_is_written_while_it_is_read_is_not_told(layout: Layout):
    look = Look.begin(str(layout.root))
    assert look is not None
    finish(layout, "aa")
    look.keep("runs", ABOUT, [(True, "old\n")])
    assert answer(layout) is None


def test_a_time_that_is_not_past_proves_nothing(layout: Layout, monkeypatch: pytest.MonkeyPatch):
    """Within one tick of its clock, a file system gives two writes the same time."""
    monkeypatch.setattr(kept, "stamp_of", lambda _: (1, 1, 1 << 62))
    assert Look.begin(str(layout.root)) is None
    assert drafts(layout) == []


def test_a_run_without_a_journal_is_looked_at_each_time(layout: Layout):
    layout.run(RunId("bb")).mkdir()
    assert Look.begin(str(layout.root)) is None
    assert drafts(layout) == []


def test_it_begins_behind_the_tick_of_the_newest_journal(layout: Layout):
    for number in range(20):
        finish(layout, "aa")
        at = layout.run_db(RunId("aa")).stat().st_ctime_ns
        keep(layout, f"{number}\n")
        assert answer(layout) == [(True, f"{number}\n")]
        finish(layout, "aa")
        assert layout.run_db(RunId("aa")).stat().st_ctime_ns > at
        assert answer(layout) is None


def test_other_code_or_surroundings_have_no_answer(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    code = tmp_path / "code.py"
    code.write_text("one")
    monkeypatch.setattr(kept, "_code", lambda: [str(code)])
    keep(layout)
    assert kept_answer(str(layout.root), "runs", {"a": 2}) is None
    assert kept_answer(str(layout.root), "status", ABOUT) is None
    assert answer(layout) is not None
    code.write_text("other")
    assert answer(layout) is None
    keep(layout)
    code.unlink()
    assert answer(layout) is None


def test_another_time_zone_is_asked_anew(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    where = ["-C", str(layout.common_dir.parent)]
    assert dispatch("runs", where) == 0
    assert quick_answer("runs", where) == 0
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert quick_answer("runs", where) is None
    capsys.readouterr()


def test_the_next_day_is_asked_anew(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    where = ["-C", str(layout.common_dir.parent)]
    assert dispatch("runs", where) == 0
    assert quick_answer("runs", where) == 0
    tomorrow = time.localtime(time.time() + 86_400)
    monkeypatch.setattr(time, "localtime", lambda *_: tomorrow)
    assert quick_answer("runs", where) is None  # a time of today is a date tomorrow
    capsys.readouterr()


def test_a_try_and_words_that_must_be_parsed_go_the_ordinary_way(
    layout: Layout, capsys: pytest.CaptureFixture[str]
):
    where = ["-C", str(layout.common_dir.parent)]
    assert dispatch("runs", where) == 0
    assert quick_answer("runs", where) == 0
    for words in (["--jsn"], ["--json", "--json"], ["aa"], ["--"], ["-Cx"], ["-h"]):
        assert quick_answer("runs", [*where, *words]) is None
    layout.try_note.write_text("{}")
    assert quick_answer("runs", where) is None
    capsys.readouterr()


def test_a_run_that_cannot_be_read_is_looked_at_each_time(
    layout: Layout, capsys: pytest.CaptureFixture[str]
):
    where = ["-C", str(layout.common_dir.parent)]
    layout.run_db(RunId("aa")).write_bytes(b"rubbish" * 100)
    assert dispatch("runs", where) == 0
    assert quick_answer("runs", where) is None
    assert drafts(layout) == []
    capsys.readouterr()


def test_what_acts_on_a_terminal_is_not_kept(layout: Layout):
    keep(layout, "\x1b]2;mine\x07")
    assert answer(layout) is None
    keep(layout)
    note = layout.root / "said" / "runs.json"
    note.write_text(note.read_text().replace("well", "\\u001b[2J"))
    assert answer(layout) is None
    assert drafts(layout) == []


@pytest.mark.parametrize("said", ["", "{", "[]", "null", '{"form": 1}', '{"form": 1, "about": {}}'])
def test_a_damaged_note_is_none(layout: Layout, said: str):
    keep(layout)
    (layout.root / "said" / "runs.json").write_text(said)
    assert answer(layout) is None


def test_a_state_that_takes_no_note_is_no_failure(
    layout: Layout, capsys: pytest.CaptureFixture[str]
):
    (layout.root / "said").write_text("")
    where = ["-C", str(layout.common_dir.parent)]
    assert dispatch("runs", where) == 0
    assert "fix" in capsys.readouterr().out
    assert quick_answer("runs", where) is None


def test_a_repository_without_runs_gets_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert dispatch("status", ["-C", str(tmp_path)]) == 0
    assert [one.name for one in (tmp_path / ".git").iterdir()] == ["HEAD"]
    assert "no run here yet" in capsys.readouterr().err


def test_a_draft_of_a_killed_look_is_removed_and_one_of_now_is_not(layout: Layout):
    keep(layout)
    old, new = layout.root / "said/.1.old", layout.root / "said/.2.new"
    old.touch()
    os.utime(old, (1, 1))
    new.touch()
    keep(layout)
    assert drafts(layout) == [new.name]


def test_its_notes_are_for_their_owner_alone(layout: Layout):
    keep(layout)
    note = layout.root / "said" / "runs.json"
    assert note.stat().st_mode & 0o077 == note.parent.stat().st_mode & 0o077 == 0
    assert json.loads(note.read_text())["said"] == [[True, "well\n"]]
