"""A landing whose files cannot be written leaves target, files and index as they were."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.errors import GitFailed
from engine.git.landing import (
    LandingDone,
    LandingRefused,
    LandPrepared,
    RefusalReason,
    land,
    prepare_landing,
)
from tests.support.landing_target import Target
from tests.support.repositories import snapshot_of

pytestmark = pytest.mark.anyio
ROOM = 100_000


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """Let git be killed in the middle of a file, as by a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Bringing(Target):
    """One whose change also brings files that were never in any working tree."""

    def bring(self, name: str, content: bytes) -> None:
        built, env = self.built, {"GIT_INDEX_FILE": str(self.trash.with_name("index"))}
        blob = built.git("hash-object", "-w", "--stdin", stdin=content)
        built.git("read-tree", self.head, env=env)
        built.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=env)
        tree = built.git("write-tree", env=env)
        self.head = built.git("commit-tree", tree, "-p", self.head, "-m", "more")


@pytest.mark.parametrize("is_plain", [True, False])
async def test_files_that_cannot_all_be_written_go_back(tmp_path: Path, *, is_plain: bool):
    target = Bringing(tmp_path)
    target.bring("zbig", os.urandom(2 * ROOM))
    if not is_plain:
        target.bring("zz/.gitattributes", b"*.txt text\n")
    repo = await target.open()
    before = snapshot_of(target.built.path)
    plan = await target.prepared(repo)
    with no_file_beyond(ROOM), pytest.raises(GitFailed):
        await land(repo, plan)
    assert target.built.rev("main") == target.old
    assert target.built.status() == ""
    assert snapshot_of(target.built.path) == before
    assert not (target.built.path / ".git/index.lock").exists()

    plan = await target.prepared(repo)  # the control: with room it lands
    assert isinstance(await land(repo, plan), LandingDone)
    target.assert_landed(plan.new)


@pytest.mark.parametrize("name", ["n" * 256, "/".join(["folder"] * 600)], ids=["name", "path"])
async def test_a_name_that_no_file_can_have_lands_only_where_no_file_is_made(
    tmp_path: Path, name: str
):
    target = Bringing(tmp_path)
    target.bring(name, b"long")
    repo = await target.open()
    before = snapshot_of(target.built.path)
    plan = await prepare_landing(repo, await target.composed(repo))
    assert isinstance(plan, LandingRefused)
    assert plan.reason is RefusalReason.TOO_LONG
    assert len(plan.detail) < 100
    assert plan.reason.endswith(":")
    assert not any("  " in reason or reason != reason.strip() for reason in RefusalReason)
    assert snapshot_of(target.built.path) == before

    target.built.git("branch", "bare", target.old)  # the control: a branch without files
    elsewhere = await prepare_landing(repo, await target.composed(repo, target="bare"))
    assert isinstance(elsewhere, LandPrepared)
    assert isinstance(await land(repo, elsewhere), LandingDone)
