"""One contract for every site: the same trees, refs, ends and bytes, wherever a worker lives."""

import hashlib
import os
import random
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from engine.errors import GitFailed, HostLost, WorkspaceError
from engine.git.collection import CollectedChange
from engine.git.names import RefNames
from engine.git.parcel import bring_home
from engine.ids import AttemptId
from engine.keeper.recording import parse
from engine.limits import Limits
from engine.phases import StopCause
from engine.plan.model import IsolationStrategy
from engine.site.artifacts import artifacts_folder
from engine.site.line import _Waiting
from engine.site.local import LocalSite
from engine.site.seam import Ability, Brought, Filling
from engine.site.trash import KEPT_S
from engine.site.wire import ask
from tests.support.sites import RUN, WANTED, WORKER, MortalLine, Scene, scene

pytestmark = pytest.mark.anyio
SITES = [
    *("local", "fake", "child", "lossy"),
    pytest.param("blind", marks=pytest.mark.needs("root", "unshare", "small disk")),
    pytest.param("ray", marks=[pytest.mark.needs("ray"), pytest.mark.long]),
]
CHILDREN = ["child", "lossy"]
LIVES, KILLS = 12, 2
SEEDS = 9 if os.environ.get("PLAIT_THOROUGH") else 1
FLOOD_MB = 200 if os.environ.get("PLAIT_THOROUGH") else 24
WORK = "echo three >> code; rm old; echo new > fresh; mkdir cache; echo junk > cache/x; echo said"
"""Edits, a deletion, a new file, and one that the repository's rules keep out."""


@pytest.fixture(params=SITES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    with anyio.fail_after(120):
        async with scene(request.param, tmp_path) as made:
            yield made


@pytest.fixture(params=CHILDREN)
async def far(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    with anyio.fail_after(120):
        async with scene(request.param, tmp_path) as made:
            yield made


async def wait_file(file: Path) -> None:
    """Return when a file is there."""
    while not await anyio.Path(file).exists():  # noqa: ASYNC110  nothing tells of it
        await anyio.sleep(0.01)


def change_of(brought: Brought) -> CollectedChange:
    assert isinstance(brought.change, CollectedChange)
    return brought.change


@pytest.mark.parametrize("isolation", ["worktree", "clone"])
async def test_work_comes_home_as_the_same_commit_from_everywhere(
    stage: Scene, isolation: str
) -> None:
    at = await stage.prepared(stage.at(isolation=IsolationStrategy(isolation)))
    await stage.worked(WORK, at)
    found = change_of(await stage.spaces.collect(at, WANTED))
    # Author, date and message are given, so the commit is the same wherever it was made.
    assert found.head == stage.by_hand(WORK, when="@1700000000 +0000")
    assert found.ignored == (b"cache/",)
    assert stage.refs() == {
        f"refs/plait/{RUN}/{WORKER}/attempt_1/base": stage.base,
        f"refs/plait/{RUN}/{WORKER}/attempt_1/head": found.head,
    }
    assert stage.built.rev(f"plait/{RUN}/{WORKER}") == found.head
    stage.built.fsck()
    again = change_of(await stage.spaces.collect(at, WANTED))
    assert (again.head, again.tree) == (found.head, found.tree)


async def test_commits_and_branches_of_the_agent_come_home(stage: Scene) -> None:
    at = await stage.prepared()
    git = "git -c user.name=B -c user.email=b@example.org"
    await stage.worked(f"echo x > one; git add one; {git} commit -qm one; git branch side", at)
    found = change_of(await stage.spaces.collect(at, WANTED))
    assert not found.has_left_over
    side = f"refs/plait/{RUN}/{WORKER}/attempt_1/refs/heads/side"
    assert stage.refs()[side] == found.head
    assert (
        stage.built.git("log", "--format=%an %s", f"{stage.base}..{found.head}").strip() == "B one"
    )


async def test_the_recording_here_is_the_recording_there(stage: Scene) -> None:
    at = await stage.prepared()
    words = "for n in $(seq 500); do echo line $n; echo oops >&2; done; printf '\\377\\000'"
    await stage.site.launch(at, words, {})
    out, end = await stage.to_end(at.attempt)
    assert (end.exit_code, end.cause, end.not_started) == (0, None, None)
    assert out == b"".join(b"line %d\n" % n for n in range(1, 501)) + b"\xff\x00"
    assert stage.recording(at.attempt) == stage.far_recording(at.attempt)
    frames, used = parse(stage.recording(at.attempt))
    assert (bool(frames), used) == (True, len(stage.recording(at.attempt)))
    assert (stage.place.layout.attempt(at.attempt) / "exit.json").is_file()
    assert await stage.to_end(at.attempt) == (out, end)


async def test_three_floods_at_once_are_recorded_here_as_there(stage: Scene) -> None:
    numbers = (1, 2, 3)
    sizes: dict[int, int] = {}

    async def flood(number: int) -> None:
        at = await stage.prepared(stage.at(number))
        at = replace(at, limits=Limits(time_seconds=60, output_mb=2 * FLOOD_MB))
        await stage.site.launch(at, f"yes {'x' * 99} | head -c {FLOOD_MB << 20}", {})
        sizes[number] = len((await stage.to_end(at.attempt))[0])
        digests = {
            hashlib.sha256(bytes_of(at.attempt)).digest()
            for bytes_of in (stage.recording, stage.far_recording)
        }
        assert len(digests) == 1

    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(flood, number)
    assert sizes == dict.fromkeys(numbers, FLOOD_MB << 20)


async def test_what_is_recorded_crosses_in_few_calls(tmp_path: Path) -> None:
    async with scene("child", tmp_path) as far:
        at = await far.prepared()
        at = replace(at, limits=Limits(time_seconds=60, output_mb=50))
        await far.site.launch(at, f"yes | head -c {24 << 20}", {})
        await wait_file(far.far_folder(at.attempt) / "exit.json")
        before = far.line._last
        out, _ = await far.to_end(at.attempt)
        assert (len(out), far.line._last - before <= 10) == (24 << 20, True)


@pytest.mark.parametrize("command", ["exit 0", "exit 3", "kill -9 $$"])
async def test_a_command_tells_how_it_ended(stage: Scene, command: str) -> None:
    at = replace(await stage.prepared(), attempt=AttemptId(RUN, WORKER, 1, "check"))
    end = await stage.site.run(at, f"echo well; {command}")
    codes = {"exit 0": {0}, "exit 3": {3}}.get(
        command, {128 + 9, None}
    )  # a fence tells a signal so
    assert end.exit.exit_code in codes, end.why
    assert end.tail == "well\n"
    assert end.is_ok == (command == "exit 0")
    assert await stage.site.run(at, "echo again") == end  # it ran once


async def test_a_command_that_is_cancelled_has_ended(stage: Scene) -> None:
    at = replace(await stage.prepared(), attempt=AttemptId(RUN, WORKER, 1, "check"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.site.run, at, "touch begun; sleep 1000")
        await wait_file(Path(at.address.path, "begun"))
        tasks.cancel_scope.cancel()
    end = await stage.site.run(at, "true")
    assert end.exit.cause is None  # what was broken off is not taken for an answer
    assert end.is_ok


async def test_a_command_that_is_cancelled_while_it_starts_has_ended(stage: Scene) -> None:
    at = await stage.prepared()
    for n in range(15):
        job = replace(at, attempt=AttemptId(RUN, WORKER, 1, f"early{n}"))
        with anyio.move_on_after(n * 0.002):
            await stage.site.run(job, "sleep 1000")
        assert (await stage.site.run(job, "true")).is_ok, n


async def test_a_call_that_is_cancelled_before_it_is_sent_is_over(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def look(far: Scene) -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await far.site.is_known(AttemptId(RUN, WORKER, 1))
        ended.set()

    scopes: list[anyio.CancelScope] = []
    async with scene("child", tmp_path) as far, anyio.create_task_group() as tasks:
        assert not await far.site.is_known(AttemptId(RUN, WORKER, 1))
        pipe = far.line._pipe
        assert pipe is not None
        async with pipe._sending:  # as if another call were being written
            tasks.start_soon(look, far)
            await anyio.wait_all_tasks_blocked()
            scopes[0].cancel()
            await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(60) as patience:
            await ended.wait()
        if patience.cancelled_caught:
            await far.kill()  # which ends every wait
        assert not patience.cancelled_caught
        assert not await far.site.is_known(AttemptId(RUN, WORKER, 1))


async def test_a_call_that_is_taken_back_at_once_is_over(tmp_path: Path) -> None:
    async with scene("child", tmp_path) as far:
        at = replace(await far.prepared(), attempt=AttemptId(RUN, WORKER, 1, "check"))
        pipe = far.line._pipe
        assert pipe is not None
        asked = ask(LocalSite.run, [at, "exec sleep 1000"], {})
        far.line._calls[999] = waiting = _Waiting(pipe)
        # Both in one piece: the child reads the second before it has begun with the first.
        await pipe.send({**asked.head, "n": 999})
        await pipe.send({"n": 999})
        with anyio.fail_after(60):
            await waiting.done.wait()


async def test_an_agent_is_told_frozen_and_ended(stage: Scene) -> None:
    at = await stage.prepared()
    await stage.site.launch(at, "echo ready; exec sleep 1000", {})
    await stage.wait_output(at.attempt, b"ready\n")
    assert await stage.site.is_known(at.attempt)
    host = stage.site.host
    await host.freeze(at.attempt)
    await host.thaw(at.attempt)
    await host.hold_clock(at.attempt, held=True)
    with stage.refusing_without(Ability.LIMITS):
        await stage.site.change_limits(at.attempt, Limits(time_seconds=30))
    with stage.refusing_without(Ability.LIMITS):
        await host.set_limits(at.attempt, Limits(time_seconds=30))
    await host.cancel(at.attempt, StopCause.USER, grace_s=0)
    _, end = await stage.to_end(at.attempt)
    assert end.cause is StopCause.USER
    await stage.site.end(at.attempt)


async def test_what_a_site_cannot_do_it_refuses(stage: Scene) -> None:
    folders = stage.at(isolation=IsolationStrategy.DIRECTORY).terms
    with stage.refusing_without(Ability.FOLDERS):
        assert await stage.site.spaces(folders).clear_strays([], is_dry=True) == ()
    at = await stage.prepared()
    await stage.site.launch(at, "echo ready; exec sleep 1000", {})
    await stage.wait_output(at.attempt, b"ready\n")
    with stage.refusing_without(Ability.ENTER):
        assert (await stage.site.enter(at, is_collected=False)).argv
    with stage.refusing_without(Ability.TERMINAL):
        await stage.site.host.resize(at.attempt, 24, 80)
    await stage.site.stop(at.attempt)
    assert (await stage.to_end(at.attempt))[1].cause is StopCause.USER


@pytest.mark.parametrize("kind", ["local", "fake"])
async def test_an_attempt_goes_on_without_its_engine_or_that_is_refused(
    tmp_path: Path, kind: str
) -> None:
    async with scene(kind, tmp_path) as stage:
        at = await stage.prepared()
        await stage.site.launch(at, "echo ready; exec sleep 1000", {})
        await stage.wait_output(at.attempt, b"ready\n")
        with stage.refusing_without(Ability.OUTLIVE):
            await stage.site.host.aclose(detach=True)
        folder = str(stage.place.layout.attempt(at.attempt))
        assert await stage.site.host.attempts([folder]) == (at.attempt,)
        await stage.site.stop(at.attempt)
        assert (await stage.to_end(at.attempt))[1].cause is StopCause.USER


async def test_a_tree_is_seen_while_it_changes(stage: Scene, tmp_path: Path) -> None:
    at = await stage.prepared()
    await stage.site.launch(at, "echo mine > seen; echo ready; exec sleep 1000", {})
    await stage.wait_output(at.attempt, b"ready\n")
    objects = tmp_path / "objects"
    taken = await stage.spaces.look(at, WANTED, objects)
    assert taken is not None
    env = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)}
    shown = stage.built.git("show", f"{taken.commit}:seen", env=env)
    assert shown == "mine"
    assert f"refs/plait/{RUN}/{WORKER}/attempt_1/head" not in stage.refs()
    await stage.site.stop(at.attempt)
    await stage.to_end(at.attempt)


async def test_a_workspace_goes_once_its_work_is_home(stage: Scene) -> None:
    at = await stage.worked("echo x > y")
    assert await stage.site.is_there(at.address)
    await stage.spaces.collect(at, WANTED)
    assert await stage.spaces.examine(at, WANTED) == ()
    assert await stage.spaces.release(at, WANTED)
    assert not await stage.site.is_there(at.address)


async def test_what_was_recorded_is_read_after_its_workspace_has_gone(stage: Scene) -> None:
    at = await stage.prepared()
    await stage.site.launch(at, "echo x > y; for n in $(seq 500); do echo line $n; done", {})
    told = await stage.to_end(at.attempt)
    await stage.site.forget(at.attempt)
    await stage.spaces.collect(at, WANTED)
    assert await stage.spaces.release(at, WANTED)
    assert await stage.site.is_known(at.attempt)
    await stage.site.host.attempts([str(stage.place.layout.attempt(at.attempt))])
    assert await stage.to_end(at.attempt) == told


async def test_a_far_recording_goes_with_its_workspace_if_the_same_bytes_are_here(
    far: Scene,
) -> None:
    kept = {}
    for number in (1, 2):
        at = await far.worked("echo x > y; echo said", await far.prepared(far.at(number)))
        await far.spaces.collect(at, WANTED)
        if number == 2:
            with far.place.layout.recording(at.attempt).open("r+b") as here:
                here.write(b"altered")
        assert await far.spaces.release(at, WANTED)
        kept[number] = far.far_folder(at.attempt).joinpath("recording").exists()
    assert kept == {1: False, 2: True}


async def test_what_a_child_keeps_of_a_run_goes_once_the_run_is_gone_here(far: Scene) -> None:
    at = await far.worked("echo x > y; echo session > $HOME/s1")
    home = far.far_folder(at.attempt).parent / "home"
    await far.spaces.collect(at, WANTED)
    assert await far.spaces.clear_strays([RUN], is_dry=False) == ()
    assert (home / "s1").exists()
    kept = await far.spaces.clear_strays([], is_dry=True)
    assert [(one.run, one.worker, one.reasons) for one in kept] == [
        (RUN, str(WORKER), ()),
        (RUN, "", ()),
    ]
    assert await far.spaces.release(at, WANTED)
    asked = await far.spaces.clear_strays([], is_dry=True)
    assert (home / "s1").exists()
    gone = await far.spaces.clear_strays([], is_dry=False)
    assert [(one.run, one.is_safe) for one in asked] == [(RUN, True)]
    assert [(one.run, one.path, one.was_removed, one.is_for_good) for one in gone] == [
        (RUN, str(home.parents[2]), True, True)
    ]
    assert not home.parents[2].exists()
    # The trash holds the workspace for a while, and so the mirror stays until it is empty.
    await far.site.purge(time.time() + 2 * KEPT_S)
    (mirror,) = await far.spaces.clear_strays([], is_dry=False)
    assert (mirror.run, mirror.path) == ("", str(far.line.opening.home))
    assert not await anyio.Path(mirror.path).exists()
    again = await far.worked("echo y > z", await far.prepared())
    assert change_of(await far.spaces.collect(again, WANTED)).head != far.base


async def test_what_is_not_at_home_keeps_what_a_child_has_of_a_run(far: Scene) -> None:
    at = await far.worked("echo x > y")
    await far.spaces.collect(at, WANTED)
    assert await far.spaces.release(at, WANTED)
    head = f"refs/plait/{RUN}/{WORKER}/attempt_1/head"
    far.built.git("update-ref", "-d", head)
    (kept,) = await far.spaces.clear_strays([], is_dry=False)
    assert kept.reasons == (f"{head} is not in your repository",)
    assert far.far_folder(at.attempt).exists()


async def test_an_agent_that_lives_keeps_what_a_child_has_of_its_run(tmp_path: Path) -> None:
    async with scene("loose", tmp_path) as far:
        at = await far.prepared()
        await far.site.launch(at, "echo ready; exec sleep 1000", {})
        await far.wait_output(at.attempt, b"ready\n")
        (_, run) = await far.spaces.clear_strays([], is_dry=False)
        assert "one of its agents still runs" in run.reasons
        await far.site.end(at.attempt)


async def test_a_workspace_stays_while_the_last_of_its_work_is_not_at_home(far: Scene) -> None:
    at = await far.worked("echo x > y")
    await far.spaces.collect(at, WANTED)
    await anyio.Path(at.address.path, "later").write_text("z\n")
    assert await far.spaces.examine(at, WANTED) == ("not all of its work has arrived here",)
    assert not await far.spaces.release(at, WANTED)
    assert await far.site.is_there(at.address)


async def test_a_workspace_is_made_once_and_resumed(stage: Scene) -> None:
    at = await stage.worked("echo x > y")
    again = await stage.spaces.prepare(replace(at), Filling(commit=stage.base))
    assert again.address == at.address
    second = replace(at, attempt=AttemptId(RUN, WORKER, 2))
    resumed = await stage.spaces.resume(second)
    assert resumed.address == at.address
    await stage.worked("cat y; echo z >> y", second)
    found = change_of(await stage.spaces.collect(second, WANTED))
    assert stage.built.show(found.head, "y") == b"x\nz\n"


async def test_earlier_workspaces_are_found(stage: Scene) -> None:
    first = await stage.prepared()
    second = await stage.prepared(stage.at(2))
    assert await stage.site.earlier(second.address, [1, 7]) == (first.address,)


@pytest.mark.parametrize("kind", ["local", "child"])
@pytest.mark.parametrize(
    "rung", ["none", pytest.param("bwrap", marks=pytest.mark.needs("bubblewrap"))]
)
async def test_what_is_written_in_a_workspace_at_rest_is_seen_where_agents_can_reach_it(
    tmp_path: Path, kind: str, rung: str
) -> None:
    with anyio.fail_after(120):
        async with scene(kind, tmp_path, rung=rung) as stage:
            rests, works = await stage.prepared(), await stage.prepared(stage.at(2))
            trees, runtime = {rests.address.path: time.time_ns()}, works.terms.runtime
            assert (await stage.site.written_since(runtime, trees)).paths == ()
            await stage.worked(f"sleep 0.02; echo x > {rests.address.path}/code; true", works)
            seen = await stage.site.written_since(runtime, trees)
            expected = (Path(rests.address.path, "code"),) if rung == "none" else ()
            assert (seen.paths, seen.is_whole) == (expected, True)


async def test_a_workspace_nobody_worked_in_leaves_nothing(stage: Scene) -> None:
    at = await stage.prepared()
    await stage.spaces.abandon(at, with_branch=True)
    assert not await stage.site.is_there(at.address)
    assert f"plait/{RUN}/{WORKER}" not in stage.built.branches()
    again = await stage.prepared()
    assert await stage.site.is_there(again.address)


async def test_a_folder_beside_a_workspace_has_no_repository(stage: Scene) -> None:
    at = replace(await stage.prepared(), attempt=AttemptId(RUN, WORKER, 1, "ask-1"))
    aside = replace(at, address=await stage.site.aside(at))
    await stage.site.launch(aside, "ls -A; git rev-parse 2>/dev/null || echo none", {})
    out, _ = await stage.to_end(aside.attempt)
    assert out == b"none\n"
    await stage.site.end(aside.attempt)
    await stage.site.drop(aside.address)
    assert not await stage.site.is_there(aside.address)
    with pytest.raises(WorkspaceError):
        await stage.site.drop(at.address)


async def test_an_attempt_nobody_knows_is_lost(stage: Scene) -> None:
    with pytest.raises(HostLost):
        await stage.site.host.read(AttemptId(RUN, WORKER, 9), 0)
    assert not await stage.site.is_known(AttemptId(RUN, WORKER, 9))


async def test_the_users_settings_and_refs_reach_the_agent(stage: Scene) -> None:
    stage.built.configure("user.name", "Somebody", scope="--global")
    stage.built.git("tag", "v1")
    stage.built.git("branch", "theirs")
    at = await stage.prepared()
    await stage.site.launch(at, "git for-each-ref --format='%(refname)' refs/tags refs/heads", {})
    out, _ = await stage.to_end(at.attempt)
    assert {"refs/tags/v1", "refs/heads/theirs", "refs/heads/main"} <= set(out.decode().split())


async def test_a_branch_that_is_gone_is_gone_for_the_next_agent(stage: Scene) -> None:
    stage.built.git("branch", "theirs")
    await stage.prepared()
    stage.built.git("branch", "-D", "theirs")
    at = await stage.prepared(stage.at(2))
    await stage.site.launch(at, "git for-each-ref --format='%(refname)' refs/heads", {})
    out, _ = await stage.to_end(at.attempt)
    assert b"refs/heads/theirs" not in out


async def test_a_child_that_is_killed_loses_its_agents_and_not_their_work(far: Scene) -> None:
    at = await far.prepared()
    await far.site.launch(at, "echo mine > kept; echo ready; exec sleep 1000", {})
    await far.wait_output(at.attempt, b"ready\n")
    await far.kill()
    with pytest.raises(HostLost):
        await far.to_end(at.attempt)
    found = change_of(await far.spaces.collect(at, WANTED))
    assert far.built.show(found.head, "kept") == b"mine\n"
    assert far.far_recording(at.attempt).startswith(far.recording(at.attempt))


async def test_agents_that_may_go_on_outlive_their_child_and_are_read_on(tmp_path: Path) -> None:
    async with scene("loose", tmp_path) as far:
        at = await far.prepared()
        words = "echo ready; until test -e go; do sleep 0.01; done; echo on"
        await far.site.launch(at, words, {})
        await far.wait_output(at.attempt, b"ready\n")
        await far.kill()
        await anyio.Path(at.address.path, "go").touch()
        out, end = await far.to_end(at.attempt)
        assert (out, end.cause, end.exit_code) == (b"ready\non\n", None, 0)
        assert far.recording(at.attempt) == far.far_recording(at.attempt)
        assert far.line.births == 2


@pytest.mark.parametrize("death", ["unheard", "done"])
@pytest.mark.parametrize("call", [1, 2])
async def test_agents_that_may_go_on_outlive_a_child_that_was_begun_over_their_start(
    tmp_path: Path, call: int, death: str
) -> None:
    async with scene("mortal-loose", tmp_path) as far:
        assert isinstance(far.line, MortalLine)
        at = await far.prepared()
        far.line.die_over(call, is_late=death == "done")
        words = "echo ready; until test -e go; do sleep 0.01; done; echo on"
        await far.site.launch(at, words, {})
        await far.wait_output(at.attempt, b"ready\n")
        await far.kill()
        await anyio.Path(at.address.path, "go").touch()
        out, end = await far.to_end(at.attempt)
        assert (out, end.cause, end.exit_code) == (b"ready\non\n", None, 0)
        assert (far.line.dies_at, far.line.births) == (0, 3)


@pytest.mark.parametrize("death", ["unheard", "done"])
@pytest.mark.parametrize("call", range(2, 10))
async def test_a_child_that_dies_over_any_call_changes_nothing_of_the_result(
    tmp_path: Path, call: int, death: str
) -> None:
    async with scene("mortal", tmp_path) as far:
        assert isinstance(far.line, MortalLine)
        far.line.dies_at, far.line.is_late = call, death == "done"
        at = replace(await far.prepared(), attempt=AttemptId(RUN, WORKER, 1, "check"))
        end = await far.site.run(at, "echo x > y; echo done")
        assert (end.is_ok, end.tail) == (True, "done\n"), end.why
        agent = replace(at, attempt=AttemptId(RUN, WORKER, 1))
        found = change_of(await far.spaces.collect(agent, WANTED))
        assert await far.spaces.examine(agent, WANTED) == ()
        assert await far.site.is_there(at.address)
        assert (far.line.dies_at, far.line.births) == (0, 2)
        assert far.built.show(found.head, "y") == b"x\n"
        far.built.fsck()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_child_killed_at_many_moments_changes_nothing_of_any_result(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    async with scene("lossy" if seed % 2 else "child", tmp_path) as far:
        expected = far.by_hand(WORK, when="@1700000000 +0000")
        killed = 0
        span = 0.0
        for number in range(1, LIVES + 1):
            began = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                if span:
                    for _ in range(KILLS):
                        tasks.start_soon(kill_after, far, dice.uniform(0, span * 1.5))
                        killed += 1
                await live(far, number, expected)
            span = span or anyio.current_time() - began
        assert far.line.births > killed / 2  # some die before they hear anything
        far.built.fsck()


async def kill_after(far: Scene, seconds: float) -> None:
    """Kill whichever child lives at some moment, if one does."""
    await anyio.sleep(seconds)
    process = far.line.process
    if process is not None and process.returncode is None:
        process.kill()


async def live(far: Scene, number: int, expected: str) -> None:
    """Let an attempt be made, work, come home and go, and look at each of it."""
    at = await far.prepared(far.at(number))
    work = replace(at, attempt=replace(at.attempt, role="check"))
    end = await far.site.run(work, f"git checkout -q . && git clean -qfdx && {WORK}")
    assert (end.is_ok, end.tail) == (True, "said\n"), end
    found = change_of(await far.spaces.collect(at, replace(WANTED, artifacts=("fresh",))))
    assert found.head == expected
    kept = artifacts_folder(far.place.layout, at.attempt)
    assert (kept / "fresh").read_text() == "new\n"
    assert far.refs()[f"refs/plait/{at.attempt.path}/head"] == expected
    assert await far.spaces.release(at, WANTED)
    assert not await far.site.is_there(at.address)


async def test_names_of_others_do_not_come_home(far: Scene) -> None:
    repo = far.place.repo
    assert repo is not None
    names = RefNames(AttemptId(RUN, WORKER, 1))
    before = far.built.git("for-each-ref")
    for ref in ("refs/heads/main", "refs/plait/other/a/worker_1/attempt_1/head"):
        with pytest.raises(WorkspaceError):
            await bring_home(repo, names, {ref: far.base}, b"")
    with pytest.raises(GitFailed):
        await bring_home(repo, names, {names.head: far.base}, b"PACK no pack at all")
    assert far.built.git("for-each-ref") == before


async def test_what_cannot_be_carried_is_refused_by_name(far: Scene) -> None:
    at = far.at(isolation=IsolationStrategy.DIRECTORY)
    with pytest.raises(WorkspaceError, match="plain folders"):
        await far.site.admit(at.terms)
    far.built.commit({".gitmodules": ""}, "modules")
    with pytest.raises(WorkspaceError, match="submodules"):
        await far.spaces.prepare(far.at(), Filling(commit=far.built.head))
