"""A second look at a workspace is short where nothing was done since the first, and only there."""

import json
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from engine.beneath import last_change
from engine.git import removal, seen_before
from engine.git.collection import CollectRequest, lead_inside
from engine.git.disk_moment import DiskMoment
from engine.git.removal import examine
from engine.git.seen_before import collected_as, forget_sight
from engine.git.workspace import Strategy, Workspace
from tests.support.git_lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.needs("disk")]

WORK = "echo w > w; git add w; git commit -qm w; echo left > over; echo build > .gitignore"
DEEDS = {
    "a file changed": "echo more >> w",
    "changed within its size and time": (
        "touch -r w time; printf W > w; printf '\\n' >> w; touch -r time w; rm time"
    ),
    "a new file": "echo n > new",
    "a new file in a new folder": "mkdir -p a/b; echo n > a/b/new",
    "a file gone": "rm w",
    "a mode": "chmod +x w",
    "a link": "rm w; ln -s over w",
    "a commit": "echo c > c; git add c; git commit -qm c; git rm -q c; git commit -qm away",
    "a branch": (
        "git branch by-hand; git commit -q --allow-empty -m e; git reset -q --hard HEAD~1"
    ),
    "a stash": "echo s >> w; git stash -q",
    "a forced file": "mkdir build; echo b > build/b; git add -f build/b",
    "a file that git does not look at": "git update-index --assume-unchanged w; echo hidden >> w",
    "a rule that opens what was ignored": "mkdir build; echo b > build/b; : > .gitignore",
    "a repository": "git init -q inner; cd inner; echo i > i; git add i; git commit -qm i",
}


async def is_the_same(lab: Lab, space: Workspace) -> bool:
    return await collected_as(lab.repo, space, lambda argv: argv) is not None


@pytest.mark.parametrize("strategy", [Strategy.WORKTREE, Strategy.CLONE])
async def test_a_workspace_that_nobody_touched_is_known_again(tmp_path: Path, strategy: Strategy):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(strategy=strategy)
    assert not await is_the_same(lab, space), "nothing was collected yet"
    lab.agent(space, WORK)
    await lab.collect(space)
    assert await is_the_same(lab, space)
    lab.agent(space, "mkdir build; echo ignored > build/b")
    assert await is_the_same(lab, space), "what is ignored goes to the trash"
    assert (await examine(lab.repo, space, CollectRequest(author=lab.me))).is_safe
    await to_thread.run_sync(forget_sight, space)
    assert not await is_the_same(lab, space)


@pytest.mark.parametrize("deed", DEEDS)
async def test_whatever_was_done_since_is_collected_before_a_workspace_goes(
    tmp_path: Path, deed: str
):
    """The kept refs are those that a full collection leaves, and nothing is passed over."""
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    await to_thread.run_sync(lead_inside, space)
    lab.agent(space, DEEDS[deed])

    assert not await is_the_same(lab, space)
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))

    kept = lab.built.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/plait")
    await to_thread.run_sync(forget_sight, space)
    assert (await examine(lab.repo, space, CollectRequest(author=lab.me))) == verdict
    assert lab.built.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/plait") == kept


async def test_without_looking_again_what_was_done_since_would_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def blind(*_: object) -> str:
        return space.base

    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    lab.agent(space, "echo late > late")
    with monkeypatch.context() as patched:
        patched.setattr(removal, "collected_as", blind)
        assert (await examine(lab.repo, space, CollectRequest(author=lab.me))).is_safe
    assert lab.refs(space.refs.left) == {}
    await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert "late" in lab.built.git("ls-tree", "--name-only", space.refs.left_head)


async def test_refs_that_were_deleted_since_are_put_back(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    change = await lab.collect(space)
    lab.built.git("update-ref", "-d", space.refs.head)

    assert not await is_the_same(lab, space)
    await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert lab.built.git("rev-parse", space.refs.head) == change.head


@pytest.mark.parametrize("odd", ["head -c 6000000 /dev/zero > big", "git init -q e; touch e/x"])
async def test_what_no_commit_can_hold_is_looked_at_in_full(tmp_path: Path, odd: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, odd)
    await lab.collect(space)
    assert not await is_the_same(lab, space)


async def test_a_pipe_that_git_would_wait_for_is_no_obstacle(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    await lab.collect(space)
    os.mkfifo(Path(space.path, "pipe"))
    os.mkfifo(Path(space.path, "src", ".gitignore"))
    assert not await is_the_same(lab, space)


# ------------------------------------------------------------------ without reading a file again

SECOND_NS = 1_000_000_000


class FilesRead(Exception):
    """Git was asked to look at the files once more."""


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody read a workspace with git again."""

    @asynccontextmanager
    async def refused(*_: Any) -> Any:
        raise FilesRead
        yield

    monkeypatch.setattr(seen_before.InsideGit, "opened", refused)


def tick(space: Workspace) -> None:
    """Wait until the clock of the disk is past everything that was written."""
    while (moment := DiskMoment.now(space.path)) and (seen := last_change(space.path)):
        if seen.at_ns < moment.disk_ns:
            return


async def is_read(lab: Lab, space: Workspace) -> bool:
    try:
        await is_the_same(lab, space)
    except FilesRead:
        return True
    return False


async def collected(lab: Lab) -> Workspace:
    """A workspace as it is where a sandbox hides its `.git`: then collecting writes nothing."""
    space = await lab.prepare(is_mounted=True)
    await to_thread.run_sync(Path(space.path, "../old").write_text, "old")
    lab.agent(space, "echo w > w; echo left > over; echo build > .gitignore")
    await to_thread.run_sync(tick, space)
    await lab.collect(space)
    return space


def is_untouched(space: Workspace) -> bool:
    return seen_before._is_untouched(space, json.loads(note_of(space).read_bytes())["began"])


def note_of(space: Workspace) -> Path:
    return Path(space.directory, "collected.json")


async def test_files_that_nobody_touched_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    space = await collected(lab)
    forbid_reading(monkeypatch)
    assert await is_the_same(lab, space)
    assert (await examine(lab.repo, space, CollectRequest(author=lab.me))).is_safe


SLY = {
    "an old time on a new content": "printf W > w; touch -d 2001-01-01 w",
    "an old file moved in": "mv ../old new",
    "an old file linked in": "ln ../old new",
    "a file moved out": "mv w ../w",
    "a file there and back": "mv w w2; mv w2 w",
    "another tree in its place": "cd ..; mv attempt_1 away; cp -a away attempt_1",
    "the tree there and back": "cd ..; mv attempt_1 away; mv away attempt_1",
    "an ignored file": "mkdir build; echo b > build/b",
    "an attribute": "chmod u-w w; chmod u+w w",
}


PLAIN = {name: deed for name, deed in DEEDS.items() if "git " not in deed}


@pytest.mark.parametrize("deed", [*SLY, *PLAIN])
async def test_every_touch_of_a_file_lets_all_be_read_again(tmp_path: Path, deed: str):
    lab = await Lab.open(tmp_path)
    space = await collected(lab)
    assert await to_thread.run_sync(is_untouched, space)
    lab.agent(space, SLY.get(deed) or PLAIN[deed])
    assert not await to_thread.run_sync(is_untouched, space)


CLOCKS = {"set forward": SECOND_NS, "set back": -SECOND_NS}


@pytest.mark.parametrize("clock", CLOCKS)
async def test_a_clock_that_was_set_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: str
):
    lab = await Lab.open(tmp_path)
    space = await collected(lab)
    forbid_reading(monkeypatch)
    assert not await is_read(lab, space)
    real = DiskMoment.now

    def shifted(of: str) -> DiskMoment | None:
        now = real(of)
        return now and now._replace(disk_ns=now.disk_ns + CLOCKS[clock])

    monkeypatch.setattr(DiskMoment, "now", shifted)
    assert await is_read(lab, space)


async def test_what_was_written_in_the_moment_of_the_reading_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A time that equals that of the reading may be older or younger than it."""
    lab = await Lab.open(tmp_path)
    space = await collected(lab)
    forbid_reading(monkeypatch)
    seen = await to_thread.run_sync(last_change, space.path)
    assert seen is not None
    note = json.loads(await to_thread.run_sync(note_of(space).read_text))
    folder, disk_ns, steady_ns = note["began"]
    for at_ns, is_again in ((seen.at_ns + 1, False), (seen.at_ns, True)):
        moved = [folder, at_ns, steady_ns - (disk_ns - at_ns)]
        text = json.dumps({**note, "began": moved})
        await to_thread.run_sync(note_of(space).write_text, text)
        assert await is_read(lab, space) == is_again


async def test_a_note_of_an_earlier_version_lets_all_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    space = await collected(lab)
    forbid_reading(monkeypatch)
    note = json.loads(await to_thread.run_sync(note_of(space).read_text))
    del note["began"]
    await to_thread.run_sync(note_of(space).write_text, json.dumps(note))
    assert await is_read(lab, space)


def test_a_folder_that_cannot_be_looked_into_has_no_last_change(tmp_path: Path):
    (tmp_path / "in" / "closed").mkdir(parents=True)
    assert last_change(tmp_path / "in") is not None
    (tmp_path / "in" / "closed").chmod(0)
    assert (last_change(tmp_path / "in") is None) == (os.geteuid() != 0)
    assert last_change(tmp_path / "nowhere") is None
