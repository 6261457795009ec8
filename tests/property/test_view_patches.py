"""An observer who applies every patch sees what one sees who asks for everything."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents import agent_events as a
from engine.core import facts as f
from engine.core.state import RunState, Worker
from engine.ids import RunId, WorkerId
from engine.limits import Usage
from engine.messages.events import Told
from engine.messages.logs import LogKind
from engine.messages.patches import ViewPatch, patched
from engine.messages.results import Clash, EngineView, HistoryDelay, LoginView, Trouble
from engine.messages.served import Served
from engine.review.radar import Radar
from engine.run.journal import Journal
from engine.run.view import Views, run_view
from engine.store.codec import dump, load
from engine.store.sqlite.run_store import RunStore
from engine.testing.manual_clock import ManualClock
from engine.testing.simulator import Story
from engine.work.logbook import Logbook
from tests.frozen import kept
from tests.support.plans import random_plan

FROZEN = sorted(kept.FOLDER.glob("*.jsonl"))
_STORIES = 12


class Kept(Story):
    """A story that keeps every state it went through."""

    def feed(self, fact: f.Fact) -> None:
        super().feed(fact)
        vars(self).setdefault("states", []).append(self.state)


@cache
def told_by(seed: int) -> list[RunState]:
    """Return every state of a simulated run."""
    story = Kept(random_plan(seed), seed)
    story.run(meddling=40)
    return [replace(state, run=RunId(f"run{seed}")) for state in vars(story)["states"]]


@cache
def frozen(path: Path) -> list[RunState]:
    """Return every state of a frozen run."""
    with TemporaryDirectory() as folder:
        journal = kept.restore(kept.load(path), Path(folder))
        with RunStore.open(journal, read_only=True) as store:
            return [state for _, state in Journal(RunId(journal.parent.name), store).states()]


@dataclass
class Live:
    """The part of a living run that is shown, and a radar of it."""

    states: list[RunState]
    at: int = 0
    seq: int = 0
    logbooks: dict[tuple[WorkerId, int], Logbook] = field(default_factory=dict)
    logins: tuple[LoginView, ...] = ()
    troubles: Any = field(default_factory=lambda: SimpleNamespace(told=None))
    is_stopping: bool = False
    history: HistoryDelay | None = None
    radar: Radar = field(default_factory=lambda: Radar.__new__(Radar))
    served: Mapping[WorkerId, Served] = field(default_factory=dict)

    def __post_init__(self) -> None:
        vars(self.radar).update(clashes={}, behind={}, share=0.0, _kept={})

    @property
    def state(self) -> RunState:
        return self.states[self.at]

    @property
    def run(self) -> RunId:
        return self.state.run

    def login_views(self) -> tuple[LoginView, ...]:
        return self.logins

    def worker(self, pick: int) -> Worker:
        workers = list(self.state.workers.values())
        return workers[pick % len(workers)]

    def logbook(self, pick: int) -> Logbook:
        w = self.worker(pick)
        return self.logbooks.setdefault((w.id, w.attempt.number), Logbook(w.attempt.number))


def fact(live: Live, pick: int) -> None:
    live.at = min(live.at + 1 + pick % 3, len(live.states) - 1)
    live.seq += pick % 2


def delta(live: Live, pick: int) -> None:
    live.logbook(pick).note(a.Said(text=f"word{pick}", is_delta=True), 1.0)


def line(live: Live, pick: int) -> None:
    live.logbook(pick).write(LogKind.OUTPUT, f"line {pick}\nand more", 1.0)


def tool(live: Live, pick: int) -> None:
    event = a.ToolCalled("t", f"edit {pick}") if pick % 3 else a.ToolEnded("t", "done")
    live.logbook(pick).note(event, float(pick))


def usage(live: Live, pick: int) -> None:
    live.logbook(pick).sample(Usage(memory_mb=pick, cpu_seconds=pick / 7))


def heard(live: Live, pick: int) -> None:
    live.logbook(pick).hears = ("now", "no", "after_turn")[pick % 3]


def wrote(live: Live, pick: int) -> None:
    live.logbook(pick).last_output_at = float(pick)


def went_on(live: Live, pick: int) -> None:
    live.logbook(pick).progress = pick / 100


def ended(live: Live, pick: int) -> None:
    live.logbook(pick).is_ended = True


def radar(live: Live, pick: int) -> None:
    name = str(live.worker(pick).id)
    clash = Clash(other="you", paths=("code",), hunks=pick)
    live.radar.clashes = {**live.radar.clashes, name: (clash,)}
    live.radar.behind = {**live.radar.behind, name: pick}
    live.radar.share = pick / 1000


def outside(live: Live, pick: int) -> None:
    live.logins = (LoginView(agents=("one",), budget_usd=float(pick)),)
    live.troubles.told = Trouble(what="full", help="", since=1.0) if pick % 2 else None
    live.is_stopping = pick % 5 == 0


MOVES: tuple[Callable[[Live, int], None], ...] = (
    *(fact, delta, line, tool, usage, heard, wrote, went_on, ended, radar, outside),
)
Move = tuple[int, int, int]
"""The number of a move, of a run, and of one of its workers."""
COMES_OR_GOES, LOST = len(MOVES), len(MOVES) + 1


class Observer:
    """A view that is kept by patches; after a lost one, everything is asked for."""

    def __init__(self, ask: Callable[[], EngineView]) -> None:
        self.ask = ask
        self.next = 0
        self.asked = 0
        self.view = EngineView(repository="here")

    def take(self, patch: ViewPatch) -> None:
        if patch.number == self.next:
            self.view = patched(self.view, patch)
        else:
            self.view = self.ask()
            self.asked += 1
        self.next = patch.number + 1


def as_sent(patch: ViewPatch) -> ViewPatch:
    """Return a patch as it comes out of the socket."""
    found: ViewPatch = load(Told | ViewPatch, json.loads(json.dumps(dump(patch))))
    return found


class Engine:
    """Some runs, the patches of their views, and an observer who gets them."""

    def __init__(
        self, runs: list[Live], damage: Callable[[ViewPatch], ViewPatch] = as_sent
    ) -> None:
        self.runs = runs
        self.living: dict[RunId, Any] = {runs[0].run: runs[0]}
        self.radars = {run.run: run.radar for run in runs}
        self.clock = ManualClock()
        self.views = Views(self.living, self.radars, self.clock)
        self.damage = damage
        self.observer = Observer(self.ask)

    def ask(self) -> EngineView:
        seen = tuple(run_view(live, self.radars[live.run]) for live in self.living.values())
        return EngineView(repository="here", runs=seen, at=self.clock.now())

    def move(self, kind: int, live: Live, pick: int) -> None:
        if kind < len(MOVES):
            MOVES[kind](live, pick)
        elif kind == COMES_OR_GOES and self.living.pop(live.run, None) is None:
            self.living[live.run] = live
        elif kind == LOST:
            fact(live, pick)
            self.views.news()  # it gets nowhere
            for run in self.runs:  # the next one heals
                run.seq += 1
        if (patch := self.views.news()) is not None:
            self.observer.take(self.damage(patch))

    def differences(self, moves: list[Move]) -> Iterator[str]:
        """Yield the moves after which the kept view is not the one that is asked for."""
        for kind, which, pick in [(LOST + 1, 0, 0), *moves]:
            self.move(kind, self.runs[which % len(self.runs)], pick)
            if self.observer.view.runs != self.ask().runs:
                yield f"{kind} of {which}, {pick}"


some_moves = st.lists(
    st.tuples(st.integers(0, LOST + 1), st.integers(0, 2), st.integers(0, 40)), max_size=50
)


@given(seed=st.integers(0, _STORIES - 1), moves=some_moves)
def test_a_patched_view_is_the_view_after_every_move_of_simulated_runs(
    seed: int, moves: list[Move]
):
    runs = [Live(told_by(seed + n)) for n in range(3)]
    assert not list(Engine(runs).differences(moves))


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_a_patched_view_is_the_view_after_every_fact_of_a_frozen_run(path: Path):
    live = Live(frozen(path))
    moves = [(n % len(MOVES) if n % 2 else 0, 0, n) for n in range(len(live.states) * 2)]
    assert not list(Engine([live]).differences(moves))


DAMAGES: Mapping[str, Callable[[ViewPatch], ViewPatch]] = {
    "no heads": lambda patch: replace(
        patch, runs=tuple(r if r.is_whole else replace(r, view=None) for r in patch.runs)
    ),
    "no workers": lambda patch: replace(
        patch, runs=tuple(r if r.is_whole else replace(r, workers=()) for r in patch.runs)
    ),
    "no whole runs": lambda patch: replace(
        patch, runs=tuple(replace(r, is_whole=False) for r in patch.runs if patch.number == 0)
    ),
    "no runs that come or go": lambda patch: replace(patch, order=("run0",)),
    "no patch of output": lambda patch: replace(
        patch,
        runs=tuple(
            replace(r, workers=tuple(w for w in r.workers if not w.last_lines or r.is_whole))
            for r in patch.runs
        ),
    ),
    "no patch of the radar": lambda patch: replace(
        patch,
        runs=tuple(
            replace(r, workers=tuple(w for w in r.workers if not w.is_radar_seen or r.is_whole))
            for r in patch.runs
        ),
    ),
}
"""Observers who do not apply one kind of patch."""


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_view_that_misses_one_kind_of_patch_is_found_out(
    damage: Callable[[ViewPatch], ViewPatch],
):
    moves = [(n % (LOST + 1), (n // 3) % 3, n) for n in range(120)]
    assert not list(Engine([Live(told_by(n)) for n in range(3)]).differences(moves))
    assert list(Engine([Live(told_by(n)) for n in range(3)], damage).differences(moves))


def test_what_has_not_moved_is_not_told_again():
    live = Live(told_by(0), at=5)
    views = Views({live.run: live}, {}, ManualClock())  # type: ignore[dict-item]
    first = views.news()
    assert first is not None
    assert first.runs[0].workers
    assert views.news() is None
    line(live, 1)
    second = views.news()
    assert second is not None
    (news,) = second.runs
    assert news.view is None
    assert [worker.worker for worker in news.workers] == [str(live.worker(1).id)]
