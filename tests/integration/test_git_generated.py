"""Agents that do anything in any order: no file and no commit of theirs is ever lost."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from engine.git.collection import CollectRequest
from engine.git.removal import examine, remove, restore
from engine.git.workspace import Workspace
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder, snapshot_of

pytestmark = pytest.mark.anyio
SEEDS = range(200 if os.environ.get("PLAIT_THOROUGH") else 6)
BIG = 2000

ACTIONS = [
    "echo $N > f$N; git add -A",
    "echo $N >> README.md",
    "echo $N > src/a.py; git commit -qam change$N",
    "git add -A; git commit -qm all$N --allow-empty",
    "git commit -q --amend -m amended$N --allow-empty",
    "git checkout -q -b b$N",
    "git checkout -q --detach",
    "git checkout -q main",
    "git checkout -q -",
    "git stash -q -u",
    "git stash pop -q",
    "git reset -q --hard HEAD~1",
    "git reset -q --soft HEAD~1",
    "git rm -rq --cached src",
    "git rebase -q main",
    "git merge -q b1 -m m$N",
    "git cherry-pick main~0",
    "git tag t$N",
    # The dates of these commits are fixed and old: an ordinary gc would forget what they replaced.
    "git -c gc.reflogExpire=never -c gc.reflogExpireUnreachable=never gc -q",
    "git clean -fdq",
    "mkdir -p d$N/e; echo $N > d$N/e/x; ln -s e d$N/link",
    "rm -rf src; echo $N > src",
    "git mv README.md moved$N",
    "chmod +x README.md",
    "head -c 3000 /dev/zero > big$N",
    "echo i > ignored.o; echo $N > build$N.o",
    "git init -q n$N; echo $N > n$N/x",
    "git init -q n$N; cd n$N; echo $N > x; git add x; git commit -qm n",
    'printf "$N\\n" > "odd$(printf "\\t\\n")name"',
    "git update-index --assume-unchanged README.md",
    "git worktree add -q --detach ../w$N",
    "touch $(git rev-parse --git-dir)/index.lock",
    "rm -f $(git rev-parse --git-dir)/index.lock",
    "git checkout -q --orphan o$N",
    "git branch -D main",
    "git checkout -q -b r$N HEAD~1; echo r$N > README.md; git commit -qam r$N; git rebase -q main",
    "git bisect start -q; git bisect bad; git bisect good HEAD~1",
    "ln -s /etc/passwd link$N; chmod 640 src/a.py; mkdir -p empty$N",
    "git init -q n$N; cd n$N; echo $N > x; git add x; git commit -qm n; echo m >> x; git stash -q",
]


def live(lab: Lab, space: Workspace, dice: random.Random) -> set[str]:
    """Do a dozen things, well or badly; every commit there ever was."""
    seen: set[str] = set()
    env = {**lab.built.environment, "PRIVATE": str(space.git_dir)}
    for n in range(12):
        action = dice.choice(ACTIONS)
        done = subprocess.run(
            ["sh", "-c", f"({action}) >/dev/null 2>&1; git rev-parse -q --verify HEAD"],
            cwd=space.path,
            env={**env, "N": str(n)},
            capture_output=True,
            check=False,
            timeout=60,
        )
        seen |= set(done.stdout.decode().split())
    return seen


def expected(lab: Lab, root: Path) -> dict[str, bytes]:
    """Every file that must be in the commit, with its content."""
    found: dict[str, bytes] = {}
    for name, content in snapshot_of(root, skip=(".git",)).items():
        mode, _, data = content.partition(b" ")
        parents = list(Path(name).parents)[:-1]
        is_embedded = any(os.path.lexists(root / parent / ".git") for parent in parents)
        is_tracked = lab.built.try_git("cat-file", "-e", f"HEAD:{name}", cwd=root).returncode == 0
        is_ignored = name.endswith(".o") and (root / ".gitignore").exists()
        is_left_out = is_ignored or (len(data) > BIG and not is_tracked)
        if not is_embedded and (is_tracked or not is_left_out):
            found[name] = b"%s %s" % (git_mode(mode), data)
    return found


def git_mode(mode: bytes) -> bytes:
    """The three modes that git knows."""
    if mode == b"120777":
        return b"120000"
    return b"100755" if int(mode, 8) & 0o100 else b"100644"


def committed(built: RepositoryBuilder, revision: str) -> dict[str, bytes]:
    listing = built.git_bytes("ls-tree", "-r", "-z", revision).split(b"\0")
    found: dict[str, bytes] = {}
    for record in listing:
        head, _, name = record.partition(b"\t")
        mode, kind, oid = head.decode().split(" ") if name else ("", "", "")
        if kind == "blob":
            data = built.git_bytes("cat-file", "blob", oid)
            found[os.fsdecode(name)] = mode.encode() + b" " + data
    return found


def everything(root: Path) -> dict[str, bytes]:
    """Every byte in a workspace, repositories inside it included; not which repository it is of."""
    found = snapshot_of(root, skip=())
    found.pop(".git", None)
    return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_an_agent_does_its_files_and_commits_arrive(tmp_path: Path, seed: int):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.commit({".gitignore": "*.o\n"}, "ignore")
    lab = await Lab.open(tmp_path, built)
    space = await lab.prepare()
    root = tmp_path / "spaces/r1/fix/worker_1/attempt_1"
    commits = live(lab, space, random.Random(seed))
    wanted = expected(lab, root)
    before = everything(root)

    change = await lab.collect(space, big_file=BIG)

    assert committed(built, change.head) == (wanted or committed(built, f"{change.head}~0"))
    reached = set(built.git("rev-list", "--glob=refs/plait", "--glob=refs/heads").split())
    assert commits <= reached
    assert everything(root) == before
    assert built.status() == ""
    built.fsck()
    verdict = await examine(lab.repo, space, CollectRequest(author=lab.me, big_file=BIG))
    assert verdict.is_safe is not bool(change.set_aside)
    if verdict.is_safe:
        await restore(lab.repo, await remove(lab.repo, verdict, tmp_path / "trash"))
        assert everything(root) == before
