"""All that leaks in from the user's machine, and all that is to come home, at every site."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from engine.beneath import EntryKind
from engine.errors import WorkspaceError
from engine.git.collection import CollectedChange
from engine.ids import AttemptId, WorkerId
from engine.messages.results import Holding
from engine.plan.model import IsolationStrategy
from engine.site.artifacts import artifacts_folder
from engine.site.crossing import CrossingEntry, Stretch, begin, settle, write_pieces
from engine.site.seam import Filling
from tests.support.sites import RUN, WANTED, WORKER, Scene, scene

pytestmark = pytest.mark.anyio
SITES = [
    *("local", "fake", "child", "lossy"),
    pytest.param("blind", marks=pytest.mark.needs("root", "unshare", "small disk")),
    pytest.param("ray", marks=pytest.mark.needs("ray")),
]
OTHER = WorkerId("b", 1)
GIT = "git -c user.name=B -c user.email=b@example.org"
LFS = {
    "clean": "git-lfs clean -- %f",
    "smudge": "git-lfs smudge -- %f",
    "process": "git-lfs filter-process",
    "required": "true",
}


@pytest.fixture(params=SITES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    with anyio.fail_after(120):
        async with scene(request.param, tmp_path) as made:
            yield made


@pytest.fixture(params=SITES)
async def shallow(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    with anyio.fail_after(120):
        async with scene(request.param, tmp_path, depth=1) as made:
            yield made


async def collected(stage: Scene, command: str, *artifacts: str) -> CollectedChange:
    """Return what comes home of a command's work."""
    at = await stage.worked(command)
    brought = await stage.spaces.collect(at, replace(WANTED, artifacts=artifacts))
    assert isinstance(brought.change, CollectedChange)
    return brought.change


def kept_of(stage: Scene, number: int = 1) -> Path:
    return artifacts_folder(stage.place.layout, AttemptId(RUN, WORKER, number))


async def test_artifacts_are_kept_here_as_they_were_made(stage: Scene) -> None:
    make = "mkdir -p dist/empty dist/deep; echo run > dist/deep/tool; chmod 755 dist/deep/tool;"
    make += (
        "ln -s deep/tool dist/link; printf '\\377\\000' > dist/bytes; touch -d @1000 dist/bytes;"
    )
    make += "truncate -s 1900M dist/sparse; printf end >> dist/sparse; echo no > other"
    found = await collected(stage, make, "dist")
    assert found.head != stage.base
    kept = kept_of(stage)
    assert sorted(str(one.relative_to(kept)) for one in kept.rglob("*")) == [
        *("dist", "dist/bytes", "dist/deep", "dist/deep/tool", "dist/empty", "dist/link"),
        "dist/sparse",
    ]
    assert (kept / "dist/deep/tool").stat().st_mode & 0o777 == 0o755
    assert (kept / "dist/link").readlink() == Path("deep/tool")
    assert (kept / "dist/bytes").read_bytes() == b"\xff\x00"
    assert (kept / "dist/bytes").stat().st_mtime == 1000
    sparse = (kept / "dist/sparse").stat()
    assert (sparse.st_size, sparse.st_blocks < 100) == ((1900 << 20) + 3, True)


async def test_artifacts_larger_than_a_piece_come_whole(stage: Scene) -> None:
    make = "yes 0123456789abcde | head -c 9437187 > big; mkdir many;"
    make += "for n in $(seq 300); do echo $n > many/$n; done"
    await collected(stage, make, "big", "many")
    kept = kept_of(stage)
    assert (kept / "big").read_bytes() == (b"0123456789abcde\n" * 600_000)[:9437187]
    assert {one.name: one.read_text() for one in (kept / "many").iterdir()} == {
        str(n): f"{n}\n" for n in range(1, 301)
    }


async def test_a_later_step_is_given_what_an_earlier_one_kept(stage: Scene) -> None:
    await collected(stage, "mkdir out; echo made > out/x", "out")
    at = await stage.prepared(stage.at(worker=OTHER), givers=((WORKER, 1),))
    assert await stage.said("cat out/x", at) == "made\n"


async def test_a_later_step_is_given_what_was_kept_at_another_site(stage: Scene) -> None:
    out = kept_of(stage) / "out"
    out.mkdir(parents=True)
    (out / "x").write_text("made elsewhere\n")
    at = await stage.prepared(stage.at(worker=OTHER), givers=((WORKER, 1),))
    assert await stage.said("cat out/x", at) == "made elsewhere\n"


async def test_a_repository_inside_a_workspace_comes_home_as_a_bundle(stage: Scene) -> None:
    inner = f"git init -q -b main in; cd in; echo 1 > f; git add f; {GIT} commit -qm inner"
    found = await collected(stage, inner)
    (embedded,) = found.embedded
    assert embedded.bundle is not None
    assert Path(embedded.bundle).is_relative_to(stage.place.layout.common_dir)
    stage.built.git(
        "clone", "-q", "-b", "main", embedded.bundle, str(stage.built.path.parent / "back")
    )
    assert (stage.built.path.parent / "back/f").read_text() == "1\n"


@pytest.mark.needs("git-lfs")
async def test_contents_of_large_files_come_home(stage: Scene) -> None:
    for key, value in LFS.items():
        stage.built.configure(f"filter.lfs.{key}", value, scope="--global")
    stage.base = stage.built.commit({".gitattributes": "*.psd filter=lfs -text\n"}, "lfs")
    repo = stage.place.repo
    assert repo is not None
    repo.settings = replace(
        repo.settings, lfs=tuple((f"filter.lfs.{k}", v) for k, v in LFS.items())
    )
    found = await collected(stage, f"echo new > a.psd; git add a.psd; {GIT} commit -qm new")
    assert stage.built.show(found.head, "a.psd").startswith(b"version https://git-lfs")
    stage.built.git("checkout", "-q", found.head)
    assert (stage.built.path / "a.psd").read_text() == "new\n"


async def test_files_that_git_does_not_know_are_copied_in_where_asked_for(stage: Scene) -> None:
    stage.built.write(".git/info/exclude", ".env\nlocal/\nleads\n")
    stage.built.write(".env", "KEY=1\n", mode=0o640)
    stage.built.write("local/deep/x", "y\n")
    stage.built.write("unasked", "z\n")
    (stage.built.path / "leads").symlink_to("/etc/hostname")
    stage.built.write(".worktreeinclude", "# ours\nlocal/\n")
    at = await stage.prepared(stage.at(include=(".env", "leads")))
    assert await stage.said("cat .env local/deep/x; stat -c %a .env", at) == "KEY=1\ny\n640\n"
    assert await stage.said("ls", replace(at, attempt=AttemptId(RUN, WORKER, 2))) == (
        "code\nlocal\nold\n"
    )
    found = await stage.spaces.collect(at, WANTED)
    assert isinstance(found.change, CollectedChange)
    assert found.change.head == stage.base


@pytest.mark.parametrize("kind", ["child", "lossy"])
async def test_files_brought_for_a_workspace_that_was_never_made_are_gone(
    kind: str, tmp_path: Path
) -> None:
    async with scene(kind, tmp_path) as far:
        far.built.write(".git/info/exclude", ".env\n")
        far.built.write(".env", "KEY=secret\n")
        home = anyio.Path(far.line.opening.home)
        in_the_way = home / "trees" / RUN / str(WORKER) / "attempt_1"
        await in_the_way.parent.mkdir(parents=True)
        await in_the_way.touch()
        at = far.at(include=(".env",))
        with pytest.raises(WorkspaceError, match="in the way"):
            await far.prepared(at)
        assert [one async for one in home.rglob(".env")]
        await far.spaces.abandon(at, with_branch=True)
        assert not [one async for one in home.rglob(".env")]


async def test_the_users_excludes_keep_files_out_of_commits(stage: Scene) -> None:
    stage.built.write(".git/info/exclude", "*.own\n")
    ignore = stage.built.home / ".config/git/ignore"
    ignore.parent.mkdir(parents=True)
    ignore.write_text("*.everywhere\n")
    found = await collected(stage, "touch a.own b.everywhere c.kept")
    listing = stage.built.git("diff", "--name-only", stage.base, found.head)
    assert listing == "c.kept"
    assert sorted(found.ignored) == [b"a.own", b"b.everywhere"]


async def test_the_users_attributes_and_line_ends_hold(stage: Scene) -> None:
    stage.built.write(".git/info/attributes", "*.win text eol=crlf\n")
    stage.base = stage.built.commit({"a.win": "one\ntwo\n"}, "win")
    at = await stage.prepared()
    assert await stage.said("od -c a.win | head -1; printf 'x\\r\\n' > b.win", at) == (
        "0000000   o   n   e  \\r  \\n   t   w   o  \\r  \\n\n"
    )
    found = await stage.spaces.collect(at, WANTED)
    assert isinstance(found.change, CollectedChange)
    assert stage.built.show(found.change.head, "b.win") == b"x\n"
    assert stage.built.git("diff", "--name-only", stage.base, found.change.head) == "b.win"


async def test_the_users_hooks_run_for_the_agent(stage: Scene) -> None:
    stage.built.write(".git/hooks/commit-msg", "#!/bin/sh\necho hooked >> $1\n", mode=0o755)
    found = await collected(stage, f"echo x > y; git add y; {GIT} commit -qm mine")
    assert stage.built.git("log", "-1", "--format=%B", found.head) == "mine\nhooked"


async def test_a_commit_of_the_agent_is_signed_with_the_users_name(stage: Scene) -> None:
    found = await collected(stage, "echo x > y; git add y; git commit -qm mine")
    assert stage.built.git("log", "-1", "--format=%an <%ae>", found.head) == (
        "Ada User <ada@example.org>"
    )


async def test_only_the_part_of_a_sparse_checkout_is_there(stage: Scene) -> None:
    stage.base = stage.built.commit({"in/x": "1\n", "out/y": "2\n"}, "two folders")
    stage.built.git("sparse-checkout", "set", "in")
    assert await stage.said("ls") == "code\nin\nold\n"


async def test_home_goes_on_from_attempt_to_attempt(stage: Scene) -> None:
    await stage.said("mkdir -p $HOME/.agent; echo session > $HOME/.agent/s1")
    second = await stage.prepared(stage.at(2))
    assert await stage.said("cat $HOME/.agent/s1; mkdir $HOME/mine", second) == "session\n"
    other = await stage.prepared(stage.at(worker=OTHER))
    assert await stage.said("ls -A $HOME/.agent 2>/dev/null || echo none", other) == "none\n"


async def test_what_setup_made_is_there_for_the_next_worker(stage: Scene) -> None:
    setup = "mkdir -p deps; test -e deps/built || { echo built > deps/built; echo anew; }"
    stage.base = stage.built.commit({".gitignore": "cache\ndeps\n"}, "ignore")
    tails = []
    for worker in (WORKER, OTHER):
        at = await stage.prepared(stage.at(worker=worker, setup=setup))
        await stage.site.sow(at, is_users=True)
        here = replace(at, attempt=replace(at.attempt, role="setup"))
        end = await stage.site.run(here, setup)
        await stage.site.reap(at, is_well=end.is_ok)
        tails.append(end.tail)
    assert tails == ["anew\n", ""]


async def test_work_on_a_shallow_clone_comes_home(shallow: Scene) -> None:
    found = await collected(shallow, "git log --format=%s > subjects; echo 4 > fourth")
    assert shallow.built.show(found.head, "subjects") == b"third\n"
    assert shallow.built.git("rev-list", "--count", found.head) == "2"
    shallow.built.fsck()


async def test_a_history_that_became_whole_is_whole_for_the_next_agent(shallow: Scene) -> None:
    assert await shallow.said("git rev-list --count HEAD") == "1\n"
    shallow.built.git("fetch", "-q", "--unshallow")
    at = await shallow.prepared(shallow.at(2))
    assert await shallow.said("git rev-list --count HEAD; git fsck", at) == "3\n"


@pytest.mark.parametrize("name", [b"../out", b"/out", b"in/../../out"])
def test_a_name_that_leads_out_of_what_crosses_is_refused(tmp_path: Path, name: bytes) -> None:
    there = CrossingEntry(path=name, kind=EntryKind.FILE, mode=0o600, mtime_ns=0)
    with pytest.raises(WorkspaceError, match="points outside"):
        begin(tmp_path / "draft", [there])
    with pytest.raises(WorkspaceError, match="points outside"):
        write_pieces(tmp_path / "draft", [Stretch(path=name, at=0, length=1)], b"x")
    assert [one.name for one in tmp_path.iterdir()] == ["draft"]


def test_nothing_that_crosses_is_written_through_a_link_that_crossed(tmp_path: Path) -> None:
    draft, outside = tmp_path / "draft", tmp_path / "outside"
    outside.mkdir()
    link = CrossingEntry(
        path=b"a", kind=EntryKind.LINK, mode=0o777, mtime_ns=0, link=bytes(outside)
    )
    below = [
        CrossingEntry(path=b"a/file", kind=EntryKind.FILE, mode=0o600, mtime_ns=0, size=1),
        CrossingEntry(path=b"a/link", kind=EntryKind.LINK, mode=0o777, mtime_ns=0, link=b"/"),
    ]
    begin(draft, [link, *below])
    write_pieces(draft, [Stretch(path=b"a/file", at=0, length=1)], b"x")
    settle(draft, [link, *below], tmp_path / "kept")
    assert list(outside.iterdir()) == []
    assert (tmp_path / "kept/a/file").read_bytes() == b"x"


@pytest.mark.parametrize("isolation", [IsolationStrategy.WORKTREE, IsolationStrategy.CLONE])
async def test_a_sparse_worktree_holds_its_folders_and_loses_no_file(
    stage: Scene, isolation: IsolationStrategy
) -> None:
    files = {"in/x": "1\n", "in/deep/y": "2\n", "out/z": "3\n"}
    stage.base = stage.built.commit(files, "two folders")
    holds = Holding(folders=("in",), held=2, of=3)
    at = stage.at(isolation=isolation)
    made = await stage.spaces.prepare(at, Filling(commit=stage.base, holds=holds))
    at = replace(at, address=made.address)
    script = "ls; ls in; git status --porcelain; mkdir -p out; echo n > out/new; echo m > in/x"
    assert await stage.said(script, at) == "code\nin\nold\ndeep\nx\n"
    seen = await stage.spaces.look(at, WANTED, stage.built.path.parent / "seen")
    assert seen is not None
    brought = await stage.spaces.collect(at, WANTED)
    assert isinstance(brought.change, CollectedChange)
    assert brought.change.tree == seen.tree
    changed = stage.built.git("diff", "--name-status", stage.base, brought.change.head)
    assert changed.split() == ["M", "in/x", "A", "out/new"]
    assert not [note for note in brought.change.notes if "sparse" in note]
    stage.built.fsck()
    again = await stage.spaces.resume(at)
    assert again.address.path == made.address.path
    assert await stage.spaces.release(at, WANTED)
