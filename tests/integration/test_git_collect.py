"""Whatever an agent does to its repository, its work arrives in the user's."""

import hashlib
import os
import struct
from pathlib import Path

import pytest

from engine.git.collection import CollectRefused, CollectRequest, collect
from engine.git.radar import snapshot
from engine.git.workspace import Strategy, Workspace
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio

WORK = "echo work > work.txt"
COMMIT = f"{WORK}; git add -A; git commit -qm work"

MISBEHAVIORS = {
    "nothing special": COMMIT,
    "left uncommitted": WORK,
    "staged only": f"{WORK}; git add -A",
    "another branch": f"git checkout -qb other; {COMMIT}",
    "the user's branch": f"git checkout -q main; {COMMIT}",
    "detached": f"git checkout -q --detach; {COMMIT}",
    "orphan branch": f"git checkout -q --orphan fresh; {COMMIT}",
    "orphan without commit": f"git checkout -q --orphan fresh; {WORK}",
    "mid-merge": "git checkout -qb o; echo o > src/a.py; git commit -qam o;"
    "git checkout -q -; echo t > src/a.py; git commit -qam t; git merge o || true; " + WORK,
    "mid-rebase": "git checkout -qb o; echo o > src/a.py; git commit -qam o;"
    "git checkout -q -; echo t > src/a.py; git commit -qam t; git rebase o || true; " + WORK,
    "hidden by assume-unchanged": "git update-index --assume-unchanged README.md;"
    f"echo more >> README.md; {WORK}",
    "hidden by skip-worktree": "git update-index --skip-worktree README.md;"
    f"echo more >> README.md; {WORK}",
    "private clone deleted": f'{WORK}; rm -rf "$PRIVATE"',
    "HEAD is rubbish": f'{WORK}; echo rubbish > "$PRIVATE/HEAD"',
    "HEAD names nothing": f'{WORK}; printf "%040d\\n" 7 > "$PRIVATE/HEAD"',
    "configuration is rubbish": f'{COMMIT}; echo "[rubbish" > "$PRIVATE/config"',
    "index is rubbish": f'{COMMIT}; echo rubbish > "$PRIVATE/index"',
    "index is locked": f'{WORK}; touch "$PRIVATE/index.lock"',
    "objects deleted": f'{WORK}; rm -rf "$PRIVATE/objects"',
    "refs deleted": f'{WORK}; rm -rf "$PRIVATE/refs" "$PRIVATE/packed-refs"',
    "packed and collected": f"{COMMIT}; git gc -q --prune=now",
    "garbage in refs": f'{COMMIT}; cd "$PRIVATE/refs"; echo x > heads/bad; mkfifo heads/fifo',
    "links in refs": f'{COMMIT}; ln -s /etc/passwd "$PRIVATE/refs/heads/link"',
    "git init inside a folder": f"mkdir sub; cd sub; git init -q; echo x > x; cd ..; {WORK}",
    "git init inside a tracked folder": f"cd src; git init -q; cd ..; {WORK}",
    "a clone inside": f"git clone -q . sub; {WORK}",
    "submodule added": "git clone -q . sub; git -c protocol.file.allow=always submodule add -q"
    f' "$PWD/sub" mod 2>/dev/null || true; {WORK}',
    "failing hooks": 'mkdir -p "$PRIVATE/hooks"; for h in pre-commit post-checkout'
    ' reference-transaction; do printf "#!/bin/sh\\nexit 1\\n" > "$PRIVATE/hooks/$h";'
    f' chmod +x "$PRIVATE/hooks/$h"; done; {WORK}',
    "folder became a file": f"rm -r src; echo f > src; {WORK}",
    "file became a folder": f"rm README.md; mkdir README.md; echo i > README.md/i; {WORK}",
    "folder became a link": f"mkdir o; cp src/a.py o; rm -r src; ln -s o src; {WORK}",
    "odd names": 'printf x > "$(printf "tab\\there")"; printf x > "$(printf "new\\nline")";'
    'printf x > "-dash"; printf x > "$(printf "\\377\\376")"; ' + WORK,
    "fifo and socket": f"mkfifo pipe; {WORK}",
    "autocrlf and attributes": 'echo "* text eol=crlf filter=evil" > .gitattributes; ' + WORK,
    "a worktree of its own": f'git worktree add -q "$PRIVATE/../wt" -b wt; {COMMIT}',
    "the user's refs deleted": f"git branch -D main; git tag -l | xargs -r git tag -d; {COMMIT}",
}


IN_A_CLONE = ("private clone deleted", "HEAD is rubbish", "git init inside a folder")
CASES = [
    *(pytest.param(script, Strategy.WORKTREE, id=name) for name, script in MISBEHAVIORS.items()),
    *(pytest.param(MISBEHAVIORS[n], Strategy.CLONE, id=f"{n}, in a clone") for n in IN_A_CLONE),
]


@pytest.mark.parametrize(("script", "strategy"), CASES)
async def test_collect_brings_the_work_whatever_the_agent_did(
    tmp_path: Path, script: str, strategy: Strategy
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare(strategy=strategy)
    user = snapshot_of(lab.built.path)
    before = lab.refs("refs/heads", "refs/tags")
    lab.agent(space, script)

    change = await lab.collect(space)

    assert lab.files(change.head)["work.txt"] == "work\n"
    if "README.md" in script and "hidden" in script:
        assert "more" in lab.files(change.head)["README.md"]
    assert lab.refs("refs/plait/")["refs/plait/r1/fix/worker_1/attempt_1/head"] == change.head
    after = lab.refs("refs/heads", "refs/tags")
    assert after.pop("refs/heads/plait/r1/fix/worker_1") == change.head
    before.pop("refs/heads/plait/r1/fix/worker_1", None)
    assert after == before
    assert snapshot_of(lab.built.path) == user
    assert lab.built.status() == ""
    lab.built.fsck()


async def test_collect_signs_left_over_work_as_the_user_and_keeps_the_agents_commits(
    tmp_path: Path,
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    cache = ".aider.tags.cache.v4"
    lab.agent(space, f"{COMMIT}; echo more > more.txt; mkdir {cache}; echo > {cache}/cache.db")

    change = await lab.collect(space, message="Left over\n")

    assert cache not in lab.built.git("ls-tree", "--name-only", str(change.head))
    shown = lab.built.git("log", "--format=%an <%ae> %at %s", f"{change.base}..{change.head}")
    assert shown.split("\n")[0] == "Ada User <ada@example.org> 1767225600 Left over"
    assert shown.split("\n")[1].endswith(" work")
    assert change.has_left_over


async def test_collect_keeps_every_ref_the_agent_made_and_what_it_threw_away(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        "git checkout -qb side; echo 1 > side; git add -A; git commit -qm side; git tag mine;"
        "git checkout -q -; echo 2 > kept; git add -A; git commit -qm thrown;"
        "git rev-parse HEAD > ../thrown; git reset -q --hard HEAD~1;"
        "echo 3 >> README.md; git stash -q",
    )
    thrown = Path(space.path).with_name("thrown").read_text().strip()

    change = await lab.collect(space)

    pinned = {ref.removeprefix(f"{space.refs.pinned}/"): oid for ref, oid in change.refs}
    assert {"refs/heads/side", "refs/tags/mine", "refs/stash"} <= set(pinned)
    assert pinned[f"lost/{thrown[:12]}"] == thrown
    assert "refs/heads/main" not in pinned
    assert change.is_empty


async def test_collect_sets_big_files_aside_and_lists_ignored_ones(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({".gitignore": "build/\n", "data": "small"})
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, "mkdir build; echo b > build/o; printf 123456789 > big; printf 123 > little")
    lab.agent(space, "printf 1234567890 > data")

    change = await lab.collect(space, big_file=8)

    assert [(one.path, one.size, one.reason) for one in change.set_aside] == [(b"big", 9, "big")]
    assert change.ignored == (b"build/",)
    assert set(lab.files(change.head)) == {".gitignore", "data", "little"}
    assert lab.files(change.head)["data"] == "1234567890"


@pytest.mark.parametrize("script", ['rm -rf "$PWD"', "rm -rf ./* ./.git*"])
async def test_a_tree_that_was_removed_as_a_whole_deletes_nothing(tmp_path: Path, script: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{COMMIT}; {script}")

    change = await lab.collect(space)

    assert set(lab.files(change.head)) == {"README.md", "src/a.py", "work.txt"}
    assert "was empty" in change.notes[-1]


async def test_what_was_under_way_is_told_and_the_users_branches_are_not_lost_work(
    tmp_path: Path,
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.built.commit({"later": "l"}, "the user's")
    other = await lab.prepare("r1/fix/worker_2@1", base="HEAD~1")
    lab.agent(other, "git checkout -q main; git checkout -q -")
    lab.agent(space, MISBEHAVIORS["mid-merge"])

    assert (await lab.collect(space)).notes == ("The agent had not finished its merge.",)
    assert (await lab.collect(other)).refs == ()


async def test_a_change_of_equal_size_in_the_same_moment_is_seen(tmp_path: Path):
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        lab = await Lab.open(folder)
        space = await lab.prepare()
        file = folder / "spaces/r1/fix/worker_1/attempt_1/README.md"
        seen = file.stat()
        file.write_bytes(file.read_bytes().upper())
        os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))

        change = await lab.collect(space)

        assert lab.files(change.head)["README.md"] == "# SAMPLE\n"


async def test_collect_obeys_the_users_own_excludes(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    (built.home / "excludes").write_text("*.swp\n")
    built.configure("core.excludesFile", "~/excludes", scope="--global")
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; echo x > x.swp")

    change = await lab.collect(space)

    assert "x.swp" not in lab.files(change.head)
    assert change.ignored == (b"x.swp",)


async def test_collect_keeps_ignored_files_that_the_agent_staged(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({".gitignore": "build/\n*.log\n", "data": "small"})
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, "mkdir build; echo b > build/o; echo c > build/kept; echo l > a.log")
    lab.agent(space, "git add -f build/kept a.log; echo newer > a.log; echo x > b.log")

    change = await lab.collect(space)

    files = lab.files(change.head)
    assert set(files) == {".gitignore", "data", "build/kept", "a.log"}
    assert files["a.log"] == "newer\n"
    assert set(change.ignored) == {b"build/o", b"b.log"}


async def test_collect_names_an_ignored_folder_in_the_place_of_a_file_that_git_knew(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, "rm README.md; mkdir README.md; echo x > README.md/x; echo '*' > .gitignore")

    change = await lab.collect(space)

    assert "README.md" not in lab.files(change.head)
    assert change.ignored == (b".gitignore", b"README.md/")


def forged_index(name: str) -> bytes:
    """An index of one entry, as an agent may write it by hand."""
    path = name.encode()
    stat = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 6)
    entry = (
        stat
        + hashlib.sha1(b"blob 6\0secret", usedforsecurity=False).digest()
        + struct.pack(">H", len(path))
        + path
    )
    entry += b"\0" * (8 - len(entry) % 8)
    content = struct.pack(">4sII", b"DIRC", 2, 1) + entry
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def lay_index(space: Workspace, content: bytes) -> None:
    Path(str(space.git_dir), "index").write_bytes(content)


async def test_an_index_that_names_what_lies_outside_leads_nowhere(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({".gitignore": "build/\n", "data": "small"})
    (tmp_path / "secret").write_text("secret")
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    up = "build/../../../../../../../../../.." + str(tmp_path)
    lab.agent(space, "mkdir -p build; echo b > build/o; git add -f build/o")
    lay_index(space, forged_index(f"{up}/secret"))

    change = await lab.collect(space)

    assert set(lab.files(change.head)) == {".gitignore", "data"}


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\0" * 40])
async def test_an_index_that_git_cannot_read_costs_no_work(tmp_path: Path, content: bytes):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({".gitignore": "build/\n", "data": "small"})
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, "mkdir -p build; echo b > build/o; echo new > new")
    lay_index(space, content)

    change = await lab.collect(space)

    assert set(lab.files(change.head)) == {".gitignore", "data", "new"}


async def test_collect_keeps_an_embedded_repository_whole_as_a_bundle(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        f"{WORK}; mkdir sub; cd sub; git init -qb trunk; echo 1 > one; git add -A;"
        "git commit -qm one; echo 2 > two",
    )

    change = await lab.collect(space)

    (found,) = change.embedded
    assert found.path == b"sub"
    assert found.bundle is not None
    assert set(lab.files(change.head)) == {"README.md", "src/a.py", "work.txt"}
    kept = RepositoryBuilder(tmp_path / "kept")
    kept.git("fetch", "-q", found.bundle, "refs/*:refs/kept/*")
    assert kept.show("refs/kept/plait/head", "two") == b"2\n"
    assert kept.show("refs/kept/heads/trunk", "one") == b"1\n"


EVIL_TREE = (
    "blob=$(echo evil | git hash-object -w --stdin);"
    'inner=$(printf "100644 blob $blob\\tconfig\\n" | git mktree);'
    'tree=$(printf "040000 tree $inner\\t%s\\n" | git mktree --missing);'
)


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".."])
async def test_collect_lets_no_tree_in_that_reaches_into_a_git_directory(tmp_path: Path, name: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, EVIL_TREE % name + "git commit-tree $tree -p HEAD -m evil > ../evil")
    lab.agent(space, f"git update-ref HEAD $(cat ../evil); {WORK}")

    change = await lab.collect(space)

    evil = Path(space.path).with_name("evil").read_text().strip()
    assert lab.files(change.head)["work.txt"] == "work\n"
    assert change.notes
    assert evil not in lab.refs().values()
    lab.built.fsck()


async def test_collect_squashes_a_history_that_is_not_accepted(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        EVIL_TREE % ".git" + "evil=$(git commit-tree $tree -p HEAD -m evil);"
        f"git update-ref HEAD $(git commit-tree HEAD^{{tree}} -p $evil -m good); {WORK}",
    )

    change = await lab.collect(space)

    assert lab.files(change.head)["work.txt"] == "work\n"
    assert lab.built.rev(f"{change.head}^") == change.base
    assert "did not accept" in change.notes[-1]
    lab.built.fsck()


async def test_collect_refused_keeps_clone_and_worktree(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, COMMIT)
    request = CollectRequest(
        author=lab.me, wrap=lambda argv: ["false"] if "upload-pack" in argv else argv
    )

    refused = await collect(lab.repo, space, request)

    assert isinstance(refused, CollectRefused)
    assert "refs/plait/r1/fix/worker_1/attempt_1/head" not in lab.refs("refs/plait/")
    assert (await lab.collect(space)).head == lab.built.rev(space.refs.head)


async def test_collect_takes_the_head_although_a_side_branch_is_refused(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        "blob=$(echo evil | git hash-object -w --stdin);"
        'tree=$(printf "100644 blob $blob\\t.git\\n" | git mktree);'
        f"git branch evil $(git commit-tree $tree -p HEAD -m evil); {WORK}",
    )

    change = await lab.collect(space)

    assert lab.files(change.head)["work.txt"] == "work\n"
    assert not any("evil" in ref for ref, _ in change.refs)


async def test_collecting_gives_the_same_commits_to_a_second_engine(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{COMMIT}; echo more > more.txt")
    change = await lab.collect(space)
    lab.built.git("update-ref", "-d", space.refs.head)

    other = await Lab.open(tmp_path, lab.built)
    again = await other.collect(await other.prepare())

    assert again == change


async def test_what_is_here_already_is_not_fetched_again(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{COMMIT}; git tag mine; echo more > more.txt")
    change = await lab.collect(space)
    request = CollectRequest(
        author=lab.me, wrap=lambda argv: ["false"] if "upload-pack" in argv else argv
    )

    assert await collect(lab.repo, space, request) == change
    lab.built.git("update-ref", "-d", space.refs.branch_ref)
    assert await collect(lab.repo, space, request) == change
    assert lab.built.rev(space.refs.branch_ref) == change.head
    lab.agent(space, "echo new > new.txt")
    assert isinstance(await collect(lab.repo, space, request), CollectRefused)


async def test_the_outer_worktree_is_clean_after_collecting(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{COMMIT}; echo more > more.txt")

    change = await lab.collect(space)

    outer = Path(space.path)
    assert lab.built.status(outer) == ""
    assert lab.built.git("symbolic-ref", "HEAD", cwd=outer) == space.refs.branch_ref
    assert lab.built.git("rev-parse", "HEAD", cwd=outer) == change.head


async def test_a_snapshot_reads_a_live_tree_and_leaves_no_object_in_the_repository(
    tmp_path: Path,
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{COMMIT}; echo more > more.txt; git add more.txt; echo x > untracked")
    before = snapshot_of(lab.built.path / ".git" / "objects")
    status = lab.built.status(Path(space.path))

    request = CollectRequest(author=lab.me)
    seen = await snapshot(lab.repo, space, request, objects=tmp_path / "radar")

    assert seen is not None
    assert snapshot_of(lab.built.path / ".git" / "objects") == before
    assert lab.built.status(Path(space.path)) == status
    shown = lab.built.git(
        "ls-tree", "--name-only", seen.tree,
        env={
            "GIT_OBJECT_DIRECTORY": str(tmp_path / "radar"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(lab.built.path / ".git" / "objects"),
        },
    )  # fmt: skip
    assert shown.split("\n") == ["README.md", "more.txt", "src", "untracked", "work.txt"]
