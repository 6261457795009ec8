"""Refs read from git's own files: what git lists, in every state and while git packs them."""

import random
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git import objects, refs
from engine.git.names import check_prefix
from engine.git.objects import few_refs_below, refs_below, resolve
from engine.git.refs import refs_in_files
from tests.integration.test_git_standing import served
from tests.support.git_lab import Lab
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
PREFIXES = ("refs/plait/r1/fix", "refs/heads/plait/r1/fix/worker_1")
NAMES = [
    *("refs/plait/r1/fix", "refs/plait/r1/fix/a", "refs/plait/r1/fix/b/c", "refs/plait/r1/fix2"),
    *("refs/heads/plait/r1/fix/worker_1", "refs/heads/plait/r1/fix/worker_10", "refs/heads/x"),
]
STATES = [
    *["git update-ref $NAME $COMMIT"] * 4,
    *["git update-ref -d $NAME"] * 2,
    "git pack-refs --all",
    "git pack-refs --all --no-prune",
    "git gc -q",
]
ODD = 0.25
ODD_STATES = [
    "git symbolic-ref $NAME refs/heads/main",
    "git symbolic-ref $NAME refs/heads/none",
    *(
        f"mkdir -p $(dirname .git/$NAME); {said} > .git/$NAME"
        for said in ("echo rubbish", ":", "echo $MISSING", "echo $MISSING | tr 12 00")
    ),
    *(
        f"mkdir -p .git/refs/plait/r1/fix; git rev-parse HEAD > '.git/refs/plait/r1/fix/{name}'"
        for name in (".hidden", "a b", "a..b", "a.", "a.lock")
    ),
]
MISSING = "12" * 20


async def both(lab: Lab) -> tuple[dict[str, str] | None, dict[str, str]]:
    """Return the refs that we read, and those that git lists."""
    read = await to_thread.run_sync(refs_in_files, lab.repo.common_dir, PREFIXES)
    return read, await refs_below(lab.repo, *PREFIXES)


@pytest.mark.parametrize("seed", range(10))
async def test_what_we_read_of_refs_is_what_git_lists(tmp_path: Path, seed: int):
    dice, was_read = random.Random(seed), 0
    lab = await Lab.open(tmp_path)
    built = lab.built
    built.git("commit", "-q", "--allow-empty", "-m", "more")
    async with served(lab.repo):
        for _ in range(20):
            commit, name = dice.choice(["HEAD", "HEAD~1"]), dice.choice(NAMES)
            words = f"NAME={name}; MISSING={MISSING}; COMMIT=$(git rev-parse {commit})"
            odd = dice.random() < ODD
            built.shell(f"{words}; ({dice.choice(ODD_STATES if odd else STATES)}) || true")
            read, listed = await both(lab)
            assert read is None or read == listed
            was_read += bool(read)
            assert await few_refs_below(lab.repo, *PREFIXES) == listed
            for one in (*NAMES, "HEAD"):
                said = built.try_git("rev-parse", "--verify", "-q", f"{one}^{{commit}}")
                assert await resolve(lab.repo, one) == (said.stdout.decode().strip() or None), one
            if odd:
                built.shell(f"{words}; rm -f .git/$NAME || true")
                built.shell("rm -f .git/refs/plait/r1/fix/.hidden .git/refs/plait/r1/fix/a?*")
    assert was_read


@pytest.mark.parametrize("state", ODD_STATES)
async def test_a_ref_that_is_none_is_passed_over_as_git_does(tmp_path: Path, state: str):
    lab = await Lab.open(tmp_path)
    lab.built.git("update-ref", NAMES[2], "HEAD")
    lab.built.shell(f"NAME={NAMES[1]}; MISSING={MISSING}; {state}")
    assert await few_refs_below(lab.repo, *PREFIXES) == await refs_below(lab.repo, *PREFIXES)


def test_no_ref_is_missed_that_git_packs_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("pack-refs", "--all")
    common, wanted = str(built.path / ".git"), dict.fromkeys(NAMES[1:3], built.head)

    def pack_between(first: str, *, then: str) -> dict[str, str] | None:
        """Pack all refs after one of the two looks, and then look again."""
        for name in wanted:
            built.git("update-ref", "-d", name)
            built.git("update-ref", name, "HEAD")
        had = {"_loose": list(refs._loose(common, "refs/plait")), "_content": refs._content(packed)}
        built.git("pack-refs", "--all")
        real = getattr(refs, then)
        with monkeypatch.context() as patched:
            patched.setattr(refs, first, lambda *_: had[first])
            patched.setattr(refs, then, real)
            return refs_in_files(common, ["refs/plait"])

    packed = f"{common}/packed-refs"
    assert pack_between("_loose", then="_content") == wanted
    assert pack_between("_content", then="_loose") == {}  # the other order misses them


async def test_git_lists_refs_where_they_are_not_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lab = await Lab.open(tmp_path)
    lab.built.git("config", "core.repositoryFormatVersion", "1")
    lab.built.git("config", "extensions.preciousObjects", "false")
    lab.built.git("update-ref", NAMES[1], "HEAD")
    asked: list[str] = []

    def noted(common_dir: str, prefixes: object) -> None:
        asked.append(common_dir)

    monkeypatch.setattr(objects, "refs_in_files", noted)
    assert await few_refs_below(lab.repo, *PREFIXES) == {NAMES[1]: lab.built.head}
    assert len(asked) == 1
    lab.built.git("config", "extensions.worktreeConfig", "true")
    assert await few_refs_below(lab.repo, *PREFIXES) == {NAMES[1]: lab.built.head}
    assert len(asked) == 1
    assert refs_in_files(lab.repo.common_dir, ["refs/heads/ma*"]) is None


async def test_a_branch_in_the_way_is_found_however_git_keeps_it(tmp_path: Path):
    lab = await Lab.open(tmp_path)
    await check_prefix(lab.repo, "team/plait")
    lab.built.git("branch", "team")
    for _ in range(2):
        with pytest.raises(objects.WorkspaceError, match="team"):
            await check_prefix(lab.repo, "team/plait")
        lab.built.git("pack-refs", "--all")
    await check_prefix(lab.repo, "teams")
