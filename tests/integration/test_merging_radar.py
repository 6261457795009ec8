"""The radar on real runs: clashes while agents work, with the target, and with the user."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.api import Engine, Run, open_replay
from engine.git.merge3 import Sides
from engine.ids import WorkerId
from engine.messages.commands import Reject
from engine.messages.events import ChangeSeen, ClashPredicted, Told
from engine.messages.questions import ReadRun
from engine.messages.results import Change, WorkerView
from engine.phases import Phase
from engine.review import radar
from tests.support.engine_runs import scripted, wait_view, wait_worker
from tests.support.merging_runs import SOURCE, MergingPlace, changed, reviewed

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MergingPlace:
    monkeypatch.setattr(radar, "EVERY_S", 0.1)
    monkeypatch.setattr(radar, "_SHARE", 0.1)
    monkeypatch.setattr(radar, "_AT_LEAST_EVERY_S", 0.5)
    return MergingPlace(tmp_path)


def working(place: MergingPlace, path: str, text: str, gate: str = "go"):
    """An agent that writes, and then goes on working until a gate is opened."""
    return scripted(
        {"write": {"path": path, "text": text}},
        {"say": "written"},
        {"shell": place.waits_at(gate)},
        {"result": "done"},
    )


def told(worker: WorkerView) -> dict[str, tuple[tuple[str, ...], int]]:
    return {clash.other: (clash.paths, clash.hunks) for clash in worker.clashes}


async def started(place: MergingPlace, engine: Engine, *agents: object, **more: object) -> Run:
    steps = [{"name": f"s{n}", "agent": agent, **more} for n, agent in enumerate(agents, 1)]
    return await engine.start(place.manifest(*steps, isolation_strategy="worktree"))


async def test_two_who_edit_one_place_are_told_of_each_other_while_they_work(place: MergingPlace):
    texts = [changed(9, f"{who} 9", changed(3, f"{who} 3")) for who in ("mine", "theirs")]
    agents = [working(place, "code", text) for text in texts]
    agents.append(working(place, "other", changed(1, "elsewhere")))
    seen: list[ClashPredicted] = []

    async def listen(engine: Engine, run: Run) -> None:
        async for one in engine.events(run=run.id):
            seen.extend([one.event] if isinstance(one.event, ClashPredicted) else [])

    async with place.engine() as engine, anyio.create_task_group() as tasks:
        run = await started(place, engine, *agents)
        tasks.start_soon(listen, engine, run)
        first = await wait_worker(engine, run, "s1/worker_1", lambda w: w.clashes)
        assert first.phase is Phase.RUNNING
        assert told(first) == {"s2/worker_1": (("code",), 2)}
        view = await wait_view(engine, run, lambda view: view.radar_share)
        assert told(view.worker("s2/worker_1")) == {"s1/worker_1": (("code",), 2)}
        assert view.worker("s3/worker_1").clashes == ()
        blob = place.built.git("hash-object", "--stdin", stdin=texts[0].encode())
        assert place.built.try_git("cat-file", "-e", blob).returncode, "it is not the user's yet"
        place.open_gate("go")
        await run.wait()
        tasks.cancel_scope.cancel()
    assert {event.worker for event in seen} == {"s1/worker_1", "s2/worker_1"}
    kept = place.project / ".git/plait/runs" / run.id / ".radar"
    assert sorted(entry.name for entry in kept.iterdir()) == ["moments", "objects"]


async def test_the_users_own_edits_and_the_target_are_on_the_radar(place: MergingPlace):
    agents = [working(place, "code", changed(3, "theirs"))]
    async with place.engine() as engine:
        run = await started(place, engine, *agents)
        await wait_worker(engine, run, "s1/worker_1", lambda w: w.phase is Phase.RUNNING)
        place.built.write("code", changed(3, "not committed"))
        status = place.built.status()
        view = await wait_worker(engine, run, "s1/worker_1", lambda w: w.clashes)
        assert told(view) == {"you": (("code",), 1)}
        assert place.built.status() == status
        place.built.commit(say="now it is")
        # A look in this very moment may have met both.
        view = await wait_worker(engine, run, "s1/worker_1", lambda w: set(told(w)) == {"main"})
        assert (told(view), view.behind) == ({"main": (("code",), 1)}, 1)
        place.built.commit({"code": SOURCE}, "and back")
        await wait_worker(engine, run, "s1/worker_1", lambda w: not w.clashes)
        place.open_gate("go")
        await run.wait()


async def test_the_users_checkout_is_read_only_where_a_workers_tree_can_meet_it(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    reads: list[object] = []
    stage = radar.stage_worktree

    async def counted(*args: Any, **more: Any) -> object:
        reads.append(args)
        return await stage(*args, **more)

    monkeypatch.setattr(radar, "stage_worktree", counted)
    monkeypatch.setattr(radar, "EVERY_S", 3600.0)  # nobody else looks meanwhile
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(3, "a")))
        (found,) = engine.port.runs.radars.values()
        await found.look()
        assert reads, "a worker's change waits, and the user's edits could meet it"
        await engine.port.command(Reject(run=run.id, worker="s1/worker_1"))
        with anyio.fail_after(60):
            while found._run.state.workers[WorkerId("s1", 1)].phase is not Phase.DISCARDED:
                await anyio.lowlevel.checkpoint()
        reads.clear()
        await found.look()
        assert not reads
        assert not found.clashes


async def test_alternatives_do_not_clash(place: MergingPlace):
    agent = scripted(
        workers={
            str(n): [
                {"write": {"path": "code", "text": changed(3, f"candidate {n}")}},
                {"shell": place.waits_at("go")},
            ]
            for n in (1, 2)
        }
    )
    steps = (
        {"name": "pick", "agent": agent, "concurrency": 2, "policy": "settled"},
        {"name": "s2", "agent": working(place, "code", changed(3, "another step"))},
    )
    async with place.engine() as engine:
        run = await engine.start(place.manifest(*steps, isolation_strategy="worktree"))
        view = await wait_view(engine, run, lambda v: len(v.worker("s2/worker_1").clashes) == 2)
        for name in ("pick/worker_1", "pick/worker_2"):
            assert set(told(view.worker(name))) == {"s2/worker_1"}
        place.open_gate("go")
        await run.wait()


async def test_what_has_settled_is_off_the_radar_and_known_trees_are_not_merged_again(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    merged: list[int] = []
    before = radar.Merger.preview

    async def counted(self: radar.Merger, questions: Sequence[Sides]) -> object:
        merged.append(len(questions))
        return await before(self, questions)

    monkeypatch.setattr(radar.Merger, "preview", counted)
    monkeypatch.setattr(radar, "EVERY_S", 3600.0)  # nobody else looks meanwhile
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(changed(3, "a"), changed(3, "b")))
        (found,) = engine.port.runs.radars.values()
        count = -1
        with anyio.fail_after(60):
            while sum(merged) != count:  # a look that had no time for all goes on with the rest
                count = sum(merged)
                await found.look()
        assert (await engine.view(run.id)).worker("s1/worker_1").clashes
        await found.look()
        assert sum(merged) == count
    assert not await place.survivors()


async def test_an_agent_that_says_nothing_is_looked_at_all_the_same(place: MergingPlace):
    wait = place.waits_at("go")
    quiet = f"{place.waits_at('write')}; sed -i 's/line 3$/theirs/' code; {wait}"
    steps = (
        {"name": "s1", "agent": working(place, "code", changed(3, "mine"))},
        {"name": "s2", "agent": {"adapter": "command", "argv": ["sh", "-c", quiet]}},
    )
    async with place.engine() as engine:
        run = await engine.start(place.manifest(*steps, isolation_strategy="worktree"))
        (found,) = engine.port.runs.radars.values()
        await wait_worker(engine, run, "s2/worker_1", lambda w: w.phase is Phase.RUNNING)
        await wait_view(engine, run, lambda _: len(found._pictures) == 2)
        assert not (await engine.view(run.id)).worker("s1/worker_1").clashes
        place.open_gate("write")
        view = await wait_worker(engine, run, "s1/worker_1", lambda w: w.clashes)
        assert set(told(view)) == {"s2/worker_1"}
        place.open_gate("go")
        await run.wait()


async def test_a_look_merges_no_more_than_so_many_at_once_and_goes_on_with_the_rest(
    place: MergingPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(radar, "_MOST_AT_ONCE", 2)
    texts = [changed(3, name) for name in "abcd"]
    async with place.engine() as engine:
        run = await reviewed(engine, place.workers(*texts))
        view = await wait_view(engine, run, lambda v: all(len(w.clashes) == 3 for w in v.workers))
        assert set(told(view.workers[0])) == {f"s{n}/worker_1" for n in (2, 3, 4)}


async def test_a_worker_that_works_shows_its_change_so_far_and_a_replay_shows_it_too(
    place: MergingPlace,
):
    agent = scripted(
        {"write": {"path": "new", "text": "1\n2\n3\n"}},
        {"shell": f"sed -i 1d code; {place.waits_at('go')}"},
        {"write": {"path": "last", "text": "4\n"}},
        {"say": "written"},
        {"shell": place.waits_at("end")},
        {"result": "done"},
    )
    seen: list[Told] = []

    async def listen(engine: Engine, run: Run) -> None:
        async for one in engine.events(run=run.id):
            seen.extend([one] if isinstance(one.event, ChangeSeen) else [])

    async with place.engine() as engine, anyio.create_task_group() as tasks:
        run = await started(place, engine, agent)
        tasks.start_soon(listen, engine, run)
        first = Change(files=2, insertions=3, deletions=1)
        view = await wait_worker(engine, run, "s1/worker_1", lambda w: w.so_far == first)
        assert (view.phase, view.change) == (Phase.RUNNING, None)
        place.open_gate("go")
        more = Change(files=3, insertions=4, deletions=1)
        await wait_worker(engine, run, "s1/worker_1", lambda w: w.so_far == more)
        place.open_gate("end")
        await run.wait()
        tasks.cancel_scope.cancel()
        ended = (await engine.view(run.id)).worker("s1/worker_1").change
        assert ended is not None
        assert (ended.files, ended.insertions, ended.deletions) == (3, 4, 1)
    assert all(told.seq is not None for told in seen)
    assert [told.event.files for told in seen][-2:] == [2, 3]
    async with open_replay(place.project, run.id) as replay:
        replay.play_or_hold()
        replay.go_to(seen[-1].at)
        assert (await replay.ask(ReadRun())).workers[0].so_far == more
