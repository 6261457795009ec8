"""Hostile worktrees through every room that touches one: nothing outside, no hang, nothing unsaid.

A few seeds here; 2,000 with `PLAIT_THOROUGH`.
"""

import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from engine.beneath import remove_tree
from engine.errors import EngineError
from engine.git.checktree import CheckTree, fill_check_tree, holds
from engine.git.collection import CollectedChange, CollectRequest, collect
from engine.git.composition import Composed, LandRequest, compose
from engine.git.landing import LandPrepared, land, prepare_landing
from engine.git.merge3 import Merger
from engine.git.removal import examine, remove, restore
from engine.git.strays import examine_stray
from engine.git.workspace import Workspace
from engine.ids import AttemptId, RunId, WorkerId
from engine.site.artifacts import give_all, keep_artifacts
from engine.store.layout import Layout
from tests.support.git_lab import Lab
from tests.support.hostile import digest, leave, outside_of, racing, unsaid

pytestmark = [pytest.mark.anyio, pytest.mark.long]

BATCH = 20 if os.environ.get("PLAIT_THOROUGH") else 2
BATCHES = 100 if os.environ.get("PLAIT_THOROUGH") else 3
LONGEST_S = 60.0
"""A stage takes milliseconds; on a machine that is busy with other tests it must not fail."""


class Passage:
    """One hostile worktree on its way through the rooms."""

    def __init__(self, lab: Lab, outside: Path, seed: int, tmp_path: Path) -> None:
        self.lab, self.outside, self.seed, self.tmp = lab, outside, seed, tmp_path
        self.worker = WorkerId("fix", seed + 1)
        self.layout = Layout(lab.repo.plait_dir)
        self.slowest = ("", 0.0)

    async def stage(self, name: str, deed: object) -> object:
        began = time.monotonic()
        with anyio.fail_after(LONGEST_S):
            done = await deed  # type: ignore[misc]
        took = time.monotonic() - began
        if took > self.slowest[1]:
            self.slowest = (name, took)
        return done

    async def go(self) -> None:
        space = await self.lab.prepare(f"r1/{self.worker}@1")
        root = Path(space.path)
        environment = {**self.lab.built.environment, "PRIVATE": space.git_dir or ""}
        uses_git = await to_thread.run_sync(
            lambda: leave(root, self.outside, self.seed, environment=environment)
        )
        before = await to_thread.run_sync(digest, self.outside)
        with racing(root, self.outside):
            await self.stage("artifacts", to_thread.run_sync(self.artifacts, root))
            change = await self.stage("collect", collect(self.lab.repo, space, self.request))
        assert isinstance(change, CollectedChange), change
        await self.account(space, change, uses_git=uses_git)
        await self.stage("check", self.check(change))
        await self.stage("land", self.land(change))
        await self.stage("clean", self.clean(space))
        assert await to_thread.run_sync(digest, self.outside) == before

    @property
    def request(self) -> CollectRequest:
        return CollectRequest(author=self.lab.me)

    def artifacts(self, root: Path) -> None:
        """Keep what there is, and give it to a worktree that is as hostile."""
        kept = self.tmp / f"kept-{self.seed}"
        keep_artifacts(root, ["**/*", "dist", "a"], kept)
        run = RunId("r1")
        attempt = AttemptId(run, WorkerId("fix", self.seed + 1), 1)
        given = self.layout.attempt(attempt).with_name("artifacts_1")
        if kept.is_dir():
            given.parent.mkdir(parents=True, exist_ok=True)
            kept.rename(given)
        other = self.tmp / f"other-{self.seed}"
        other.mkdir()
        leave(other, self.outside, self.seed + 77_777)
        with racing(other, self.outside):
            give_all(self.layout, run, [(self.worker, 1)], other)
        assert remove_tree(other) == ()
        assert remove_tree(given) == ()

    async def account(self, space: Workspace, change: CollectedChange, *, uses_git: bool) -> None:
        """Every path is in the commit, ignored, or named; contents are byte for byte the same."""
        listing = self.lab.built.git_bytes("ls-tree", "-r", "-z", change.head)
        rows = [record.split(b"\t", 1) for record in listing.split(b"\0") if record]
        said = {path for _, path in rows}
        said |= {name.rstrip(b"/") for name in change.ignored}
        said |= {one.path for one in (*change.set_aside, *change.embedded)}
        left = await to_thread.run_sync(unsaid, Path(space.path), frozenset(said))
        assert left == [], (self.seed, change.notes)
        if uses_git:
            return
        blobs = {path: head.split()[2].decode() for head, path in rows if head[:3] == b"100"}
        for path, oid in list(blobs.items())[:20]:
            place = Path(space.path, os.fsdecode(path))
            is_file = await to_thread.run_sync(lambda p=place: p.is_file() and not p.is_symlink())
            if is_file and not path.startswith(b"raced"):
                data = await to_thread.run_sync(place.read_bytes)
                assert data == self.lab.built.git_bytes("cat-file", "blob", oid), (self.seed, path)

    async def check(self, change: CollectedChange) -> None:
        place = CheckTree(path=self.tmp / "check", folder=self.tmp / "check-git")
        await fill_check_tree(self.lab.repo, place, change.head)
        await to_thread.run_sync(leave, place.path, self.outside, self.seed + 99_999)
        with suppress(EngineError, OSError):  # it is said, and the check is not believed
            with racing(place.path, self.outside):
                await holds(self.lab.repo, place, change.head)
            # Git writes here, by paths: in the sandbox, and with nobody left at work in it.
            await fill_check_tree(self.lab.repo, place, change.head)
        await to_thread.run_sync(remove_tree, place.path)

    async def land(self, change: CollectedChange) -> None:
        lab = self.lab
        merger = Merger(lab.repo)
        request = LandRequest(
            target="main",
            base=change.base,
            head=change.head,
            message="Landed\n",
            author=lab.me,
            committer=lab.me,
        )
        try:
            composed = await compose(lab.repo, merger, request)
            if isinstance(composed, Composed):
                prepared = await prepare_landing(lab.repo, composed)
                if isinstance(prepared, LandPrepared):
                    await land(lab.repo, prepared)
        except EngineError:
            pass  # refused, and said
        await to_thread.run_sync(self.put_back, change.base)

    def put_back(self, base: str) -> None:
        self.lab.built.git("reset", "-q", "--hard", base)
        self.lab.built.git("clean", "-ffdxq")

    async def clean(self, space: Workspace) -> None:
        verdict = await examine(self.lab.repo, space, self.request)
        stray = await examine_stray(self.lab.repo, space.attempt, Path(space.path))
        assert stray.reasons or verdict.is_safe or verdict.reasons
        going = replace(verdict, reasons=())
        trash = self.tmp / f"trash-{self.seed}"
        removed = await remove(self.lab.repo, going, trash)
        if self.seed % 3 == 0 and await anyio.Path(removed.kept_in).is_dir():
            await restore(self.lab.repo, removed)
            removed = await remove(self.lab.repo, going, self.tmp / f"again-{self.seed}")
        left = await to_thread.run_sync(remove_tree, trash)
        assert left == (), left


@pytest.mark.parametrize("batch", range(BATCHES))
async def test_nothing_that_an_agent_leaves_gets_out_hangs_or_goes_unsaid(
    tmp_path: Path, batch: int
):
    lab = await Lab.open(tmp_path)
    outside = await to_thread.run_sync(outside_of, tmp_path / "outside")
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        passage = await to_thread.run_sync(Passage, lab, outside, seed, tmp_path)
        await passage.go()
        if passage.slowest[1] > 5:
            print("slow", seed, passage.slowest)  # noqa: T201
