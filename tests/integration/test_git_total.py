"""Collecting is total: what can be kept is kept byte for byte, what cannot is named."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random

import anyio
import pytest
from anyio import to_thread

from engine.errors import GitFailed
from engine.git.collection import CollectedChange, CollectRequest
from engine.git.conversion import flattened
from engine.git.inside import InsideGit, Source, outside
from engine.git.removal import examine
from tests.support.git_lab import Lab
from tests.support.kinds import submodule
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

WORK = "echo work > work.txt"
ATTRIBUTES = {
    "an encoding": "[a-zA-Z]* working-tree-encoding=UTF-16",
    "line ends": "* text eol=crlf",
    "identifiers": "* ident",
    "a filter": "* filter=evil",
    "an encoding nobody has": "*.txt working-tree-encoding=NOPE",
    "a macro": "[attr]all text eol=crlf ident\n* all",
}
BYTES = b"one\r\ntwo\n$Id: mine$ \xff\xfe\x00 end"


def aside(change: CollectedChange) -> dict[bytes, str]:
    return {one.path: one.reason for one in change.set_aside}


@pytest.mark.parametrize("says", ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
@pytest.mark.parametrize("more", ["", "git add .gitattributes; git commit -qm attributes"])
async def test_attributes_that_an_agent_leaves_change_no_byte(tmp_path: Path, says: str, more: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"printf '%s\\n' '{says}' > .gitattributes; {WORK}; {more}")
    (tmp_path / space.path / "bytes.txt").write_bytes(BYTES)
    (tmp_path / space.path / "README.md").write_bytes(BYTES)

    change = await lab.collect(space)

    for name in ("bytes.txt", "README.md"):
        assert lab.built.git_bytes("cat-file", "blob", f"{change.head}:{name}") == BYTES
    assert lab.files(change.head)["work.txt"] == "work\n"
    assert change.set_aside == ()


async def test_attributes_of_the_base_are_followed_in_every_folder(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit(
        {
            ".gitattributes": "*.top text eol=crlf\n[attr]wire text eol=crlf\n",
            "in ner[1]/.gitattributes": '*.crlf text eol=crlf\n"a b" text eol=crlf\n/x wire\n',
            "other/.gitattributes": "sub/*.c text eol=crlf\n",
        }
    )
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    names = ["a.top", "in ner[1]/d/a.crlf", "in ner[1]/a b", "in ner[1]/x", "other/sub/m.c"]
    raw = ["a.crlf", "in ner1/a.crlf", "in ner[1]/d/x", "other/m.c"]
    for name in (*names, *raw):
        place = tmp_path / space.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"1\r\n")
    lab.agent(space, "echo '* -text' > .gitattributes; echo '* -text' > other/.gitattributes")

    change = await lab.collect(space)

    kept = {name: lab.files(change.head)[name] for name in (*names, *raw)}
    assert kept == {**dict.fromkeys(names, "1\n"), **dict.fromkeys(raw, "1\r\n")}


async def test_what_an_agent_committed_by_rules_of_its_own_stays_as_it_committed_it(
    tmp_path: Path,
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        "echo '*.dos text eol=crlf' > .gitattributes; printf 'a\\r\\n' > a.dos;"
        "git add -A; git commit -qm dos",
    )
    change = await lab.collect(space)
    assert not change.has_left_over
    assert lab.files(change.head)["a.dos"] == "a\n"


async def test_a_file_that_the_bases_own_conversion_refuses_is_kept_as_it_is_and_said(
    tmp_path: Path,
):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({".gitattributes": "*.utf working-tree-encoding=UTF-16\n"})
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    lab.agent(space, WORK)
    (tmp_path / space.path / "good.utf").write_bytes("text".encode("utf-16"))
    (tmp_path / space.path / "bad.utf").write_bytes(b"odd")

    change = await lab.collect(space)

    assert lab.built.git_bytes("cat-file", "blob", f"{change.head}:bad.utf") == b"odd"
    assert lab.files(change.head)["good.utf"] == "text"
    assert lab.files(change.head)["work.txt"] == "work\n"
    assert "1 file is kept byte for byte" in " ".join(change.notes)


async def test_what_forbids_to_be_read_is_kept_all_the_same(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        f"{WORK}; echo more >> README.md; chmod 000 README.md; echo new > new; chmod 000 new;"
        "mkdir -p shut/in; echo deep > shut/in/deep; chmod 000 shut/in shut; chmod 000 src",
    )
    change = await lab.collect(space)
    files = lab.files(change.head)
    assert files["work.txt"] == "work\n"
    assert files["shut/in/deep"] == "deep\n"
    assert files["new"] == "new\n"
    assert files["README.md"].endswith("more\n")
    assert "src/a.py" in files
    assert change.set_aside == ()


async def test_what_no_commit_can_hold_is_named_and_keeps_no_worktree(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; mkdir -p a/b; mkfifo a/b/fifo; mkfifo src/pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        await to_thread.run_sync(bind, listening, tmp_path / space.path)
    names = {b"a/b/fifo", b"src/pipe", b"sock"}
    if os.geteuid() == 0:
        os.mknod(tmp_path / space.path / "dev", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        names |= {b"dev"}
    change = await lab.collect(space)
    reason = "it is neither a file, a folder nor a link"
    assert aside(change) == dict.fromkeys(names, reason)
    assert lab.files(change.head)["work.txt"] == "work\n"
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert verdict.is_safe


def bind(listening: socket.socket, folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)
    try:
        listening.bind("sock")
    finally:
        os.chdir(here)


def deep(root: Path) -> None:
    """Make a file that lies deeper than any path leads."""
    current = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=current)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=current))
    os.close(current)


def refused_names(root: Path) -> None:
    for name in ("git~1", ".GIT", "x/.git.", "x/.Git ", "y\\.git\\z"):
        place = root / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("x")
    (root / ".gitignore").unlink(missing_ok=True)
    (root / ".gitmodules").symlink_to("/etc/passwd")


def long_line(root: Path) -> None:
    (root / "src/.gitattributes").write_text("*.x " + "y" * 5000 + "\n")


def evil_modules(root: Path) -> None:
    (root / ".gitmodules").write_text('[submodule "e"]\npath=e\nurl=-uevil\n')


HOSTILE: dict[str, tuple[Callable[[Path], None], bytes]] = {
    "deeper than any path": (deep, b"/".join([b"d" * 200] * 21)),
    "names that git refuses": (refused_names, b"git~1"),
    "attributes that fsck refuses": (long_line, b"src/.gitattributes"),
    "modules that fsck refuses": (evil_modules, b".gitmodules"),
}


@pytest.mark.parametrize(("make", "named"), HOSTILE.values(), ids=HOSTILE.keys())
async def test_one_bad_path_loses_no_other(
    tmp_path: Path, make: Callable[[Path], None], named: bytes
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; echo more >> README.md")
    await to_thread.run_sync(make, tmp_path / space.path)
    change = await lab.collect(space)
    files = lab.files(change.head)
    assert files["work.txt"] == "work\n"
    assert files["README.md"].endswith("more\n")
    assert named in aside(change), aside(change)
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me))
    assert not verdict.is_safe
    lab.built.fsck()


CRAFTED = {
    "a name that is .git on macOS": r"100644 blob $o\t\342\200\214.git\0",
    "a name that is .git on Windows": r"100644 blob $o\tgit~1\0",
    "a .git in other letters": r"100644 blob $o\t.GIT\0",
    "a folder of that name": r"040000 tree $(git rev-parse HEAD:src)\t.git\0",
    "a link for the rules": r"120000 blob $o\t.gitmodules\0",
}


@pytest.mark.parametrize("row", CRAFTED.values(), ids=CRAFTED.keys())
@pytest.mark.parametrize("more", ["", "rm -rf -- *"], ids=["", "and an empty tree"])
async def test_a_commit_that_git_accepts_from_nobody_loses_no_other_path(
    tmp_path: Path, row: str, more: str
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    crafted = f'o=$(git hash-object -w work.txt); (git ls-tree -z HEAD; printf "{row}")'
    lab.agent(space, f"{WORK}; git add -A; git commit -qm work")
    lab.agent(
        space, f"git update-ref HEAD $(git commit-tree $({crafted} | git mktree -z) -p HEAD -m odd)"
    )
    lab.agent(space, more)
    change = await lab.collect(space)
    kept = [change.head, *(oid for _, oid in change.refs)]
    assert "work\n" in [lab.files(oid).get("work.txt") for oid in (kept if more else kept[:1])]
    said = ("plait did not accept the agent's history", "The agent's HEAD was not usable")
    assert any(note.startswith(said) for note in change.notes)
    lab.built.fsck()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("branch", ["HEAD", "refs/heads/side"])
async def test_commits_below_one_that_git_refuses_are_kept(tmp_path: Path, seed: int, branch: str):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    chance = Random(seed)
    bad = {number: chance.random() < 0.2 for number in range(15)} | {7: True}
    made, sound = [space.base], {space.base}
    lab.agent(space, f"{WORK}; git add -A")
    row = r"100644 blob $(git rev-parse :work.txt)\t\342\200\214.git\0"
    for number, is_bad in bad.items():
        parents = chance.sample(made[-3:], min(len(made), chance.choice([1, 1, 2])))
        words = " ".join(f"-p {parent}" for parent in parents)
        tree = f'$(printf "{row}" | git mktree -z)' if is_bad else "$(git write-tree)"
        lab.agent(space, f"git commit-tree {tree} {words} -m {number} > made.txt")
        oid = (tmp_path / space.path / "made.txt").read_text().strip()
        made.append(oid)
        if not is_bad and sound.issuperset(parents):
            sound.add(oid)
    last = "git commit-tree $(git write-tree) -m last " + " ".join(f"-p {oid}" for oid in made)
    lab.agent(space, f"rm made.txt; git update-ref {branch} $({last})")

    change = await lab.collect(space)

    tips = [change.head, *(oid for _, oid in change.refs)]
    kept = set(lab.built.git("rev-list", *tips).split())
    assert sound <= kept
    assert not kept & (set(made) - sound)
    lab.built.fsck()


async def test_a_tree_with_a_name_twice_loses_no_file(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    twice = "git cat-file tree HEAD^{tree}; git cat-file tree HEAD^{tree}"
    made = f"$( ({twice}) | git hash-object -t tree -w --literally --stdin)"
    lab.agent(space, f"{WORK}; git add -A; git commit -qm work")
    lab.agent(space, f"git update-ref HEAD $(git commit-tree {made} -p HEAD -m odd); rm -rf -- *")
    change = await lab.collect(space)
    assert lab.files(change.head)["work.txt"] == "work\n"
    lab.built.fsck()


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes", "src/.gitignore"])
@pytest.mark.parametrize("kind", ["fifo", "endless"])
async def test_rules_that_git_would_wait_for_or_die_of_are_put_aside(
    tmp_path: Path, name: str, kind: str
):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, WORK)
    lab.agent(space, f"mkfifo {name}" if kind == "fifo" else f"truncate -s 3G {name}")
    with anyio.fail_after(60):
        change = await lab.collect(space)
        again = await lab.collect(space)
    assert lab.files(change.head)["work.txt"] == "work\n"
    (path,) = aside(change)
    assert path.startswith(f"{name}.aside-".encode())
    assert any(f"git could not read {name}" in note for note in change.notes)
    assert aside(again) == aside(change)


async def test_objects_that_git_would_wait_for_are_put_aside(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        f"{WORK}; mkdir -p $PRIVATE/objects/pack; mkfifo $PRIVATE/objects/pack/pack-1.idx;"
        "o=$(git hash-object work.txt); mkdir -p $PRIVATE/objects/$(echo $o | cut -c1-2);"
        "mkfifo $PRIVATE/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-);"
        "rm -f $PRIVATE/objects/info/alternates; mkfifo $PRIVATE/objects/info/alternates",
    )
    with anyio.fail_after(60):
        change = await lab.collect(space)
    assert lab.files(change.head)["work.txt"] == "work\n"


async def test_a_submodule_whose_git_is_a_fifo_keeps_nobody_waiting(tmp_path: Path):
    lab = await Lab.open(tmp_path, submodule(RepositoryBuilder.small(tmp_path / "repo")))
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; rm -rf mod/.git; mkfifo mod/.git")
    with anyio.fail_after(60):
        change = await lab.collect(space)
    assert lab.files(change.head)["work.txt"] == "work\n"
    assert b"mod/.git" in aside(change)


async def test_a_known_file_that_is_all_hole_is_set_aside(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; truncate -s 900G README.md")
    with anyio.fail_after(60):
        change = await lab.collect(space)
    assert aside(change) == {b"README.md": "too big for git to read in time"}
    assert lab.files(change.head)["work.txt"] == "work\n"


async def test_a_change_of_the_same_length_in_the_moment_of_preparing_is_seen(tmp_path: Path):
    """Git tells it by the time of its index alone, which must not be written without a look."""
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({"lock": "one\n"})
    lab = await Lab.open(tmp_path, built)
    for number in range(1, 6):
        space = await lab.prepare(f"r1/fix/worker_{number}@1")
        (tmp_path / space.path / "lock").write_text("two\n")
        assert lab.files((await lab.collect(space)).head)["lock"] == "two\n"


async def test_an_object_that_the_agent_lost_is_read_from_its_file_again(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(
        space,
        "echo one > one; echo two > two; git add -A; git commit -qm both;"
        'for f in one two; do o=$(git rev-parse HEAD:$f); rm -f "$PRIVATE/objects/$(echo $o |'
        ' cut -c1-2)/$(echo $o | cut -c3-)"; done; rm two; echo new > new',
    )
    change = await lab.collect(space)
    files = lab.files(change.head)
    assert (files["one"], files["new"]) == ("one\n", "new\n")


async def test_of_too_many_new_files_the_largest_folder_is_set_aside(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    lab.agent(space, f"{WORK}; mkdir cache out; for n in $(seq 40); do echo > cache/$n; done")
    lab.agent(space, "for n in $(seq 8); do echo > out/$n; done")
    change = await lab.collect(space, most_new=20)
    files = lab.files(change.head)
    assert files["work.txt"] == "work\n"
    assert sum(name.startswith("out/") for name in files) == 8
    assert not any(name.startswith("cache/") for name in files)
    assert aside(change) == {b"cache": "40 files, beyond the limit of 20 new files"}


async def test_of_very_many_refs_most_are_kept_together_and_none_is_lost(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    many = 1200
    lab.agent(
        space,
        f"{WORK}; t=$(git write-tree); git checkout -qb own; i=0; while [ $i -lt {many} ]; do"
        " echo 'commit refs/heads/many/'$i; echo 'committer A <a@x> 1 +0000'; echo 'data 2';"
        " echo $i | cut -c1; i=$((i+1)); done | git fast-import --quiet; git tag last",
    )
    made = lab.agent(space, "git for-each-ref --format='%(objectname)' refs/heads/many").stdout

    change = await lab.collect(space)

    pinned = lab.refs(space.refs.pinned)
    assert len(pinned) <= 204
    assert f"{space.refs.pinned}/refs/heads/own" in pinned
    kept = lab.built.git("rev-list", "--all", f"--glob={space.refs.pinned}").split()
    assert set(made.decode().split()) <= set(kept)
    others = lab.files(f"{space.refs.pinned}/others")["refs.txt"]
    assert others.count("refs/heads/many/") > many - 200
    assert any("more refs are kept together" in note for note in change.notes)
    lab.built.fsck()


def test_attribute_files_are_said_at_the_top_as_git_reads_them():
    said = flattened(
        {
            b"a/.gitattributes": b"*.c text\n/x eol=lf\nd/* -text\n# no\n!neg text\n[attr]m text\n",
            b".gitattributes": b"\xef\xbb\xbf* text=auto\n",
            b"a/b*/.gitattributes": b'"sp ace" ident\n"q\\"t" text\n',
        }
    )
    assert said.decode() == (
        "* text=auto\n"
        '"a/**/*.c" text\n'
        '"a/x" eol=lf\n'
        '"a/d/*" -text\n'
        '"a/b\\\\*/**/sp ace" ident\n'
        '"a/b\\\\*/**/q\\"t" text\n'
    )


async def test_a_git_that_is_killed_leaves_no_lock_to_the_next(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    space = await lab.prepare()
    folder = Path(space.collect_dir, "git")
    site = Source(worktree=space.path, agent_git=space.git_dir or "", folder=folder)
    async with InsideGit.opened(lab.repo, site, outside) as git:
        dying = ("-c", "alias.die=!touch $GIT_DIR/index.lock; kill -9 $$", "die")
        with pytest.raises(GitFailed) as died:
            await git(*dying)
        assert died.value.exit_code == 128 + 9
        await git("read-tree", "--reset", space.base)

        await anyio.Path(folder, "index.lock").touch()  # the control: one that may be at work
        with pytest.raises(GitFailed, match=r"index\.lock"):
            await git("read-tree", "--reset", space.base)
