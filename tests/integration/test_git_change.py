"""A change is two trees: what lands never depends on the history that an agent made in between."""

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from engine.git import composition
from engine.git.base import Base
from engine.git.composition import Composed, LandingStyle, LandRequest, compose
from engine.git.diff import changed_files, patch_bytes
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording
from engine.git.runner import Repo
from engine.git.stacking import Record, stack_base, standing_head
from engine.review.diffs import change_diff
from tests.support.histories import START, Plumbing, Story, story
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
SEEDS = 400 if os.environ.get("PLAIT_THOROUGH") else 24
FIRST = int(os.environ.get("PLAIT_SEED", "0"))


@dataclass(frozen=True)
class Broken:
    """A law that a landing broke."""

    law: str


async def landed(
    repo: Repo, told: Story, style: LandingStyle, **more: object
) -> Composed | MergedTrees:
    me = repo.settings.sign(1_767_229_200)  # later than all else, as landings are
    request = LandRequest(
        target="main",
        base=told.base,
        head=told.head,
        style=style,
        message="Land the work",
        author=me,
        committer=me,
    )
    values = {**vars(request), **more}
    return await compose(repo, Merger(repo), LandRequest(**values))


def broken(told: Story, old: str, new: str) -> list[Broken]:
    """Every law that a landed commit breaks, by plain git."""
    git, built = told.git, told.git.built
    _, tree = git.merged(told.base, old, told.head)
    found: list[Broken] = []
    if built.rev(f"{new}^{{tree}}") != tree:
        found.append(Broken("it lands the merge of exactly what was shown"))
    return found + swallowed(told, old, new)


def onward(told: Story, ref: str) -> set[bytes]:
    """The names that a branch has beyond the change that it is built on."""
    words = ("diff", "--name-only", "--no-renames", "--diff-filter=A", told.head, ref)
    return set(told.git.built.git_bytes(*words).split())


def swallowed(told: Story, old: str, new: str) -> list[Broken]:
    """The laws of history: what was on the target stays, what was not there is not said to be."""
    git, built = told.git, told.git.built
    found: list[Broken] = []
    if not git.holds(new, old):
        found.append(Broken("the target's earlier landings stay in its history"))
    twin = built.git("commit-tree", f"{new}^{{tree}}", "-p", old, "-m", "as one commit")
    for ref in told.users:
        is_merged = git.holds(new, ref) and not git.holds(old, ref)
        if is_merged and not git.holds(told.head, ref):
            found.append(Broken("no branch is said to be merged that was not"))
        if git.holds(ref, told.head):  # built on the whole change: it brings what it has besides
            is_clean, tree = git.merge(new, ref)
            assert is_clean or not git.merge(twin, ref)[0]
            if is_clean and not {*built.git_bytes("ls-tree", tree).split()} >= onward(told, ref):
                found.append(Broken("what stands on the change still comes"))
        elif is_merged or git.merge(new, ref) != git.merge(twin, ref):
            found.append(Broken("a later merge brings what it would have brought"))
    return found


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_what_lands_is_what_was_shown_whatever_the_history(tmp_path: Path, seed: int):
    told = story(tmp_path / "repo", seed)
    built = told.git.built
    repo = await Repo.open(built.path, built.environment)
    is_clean, tree = told.git.merged(told.base, told.target, told.head)
    for style in LandingStyle:
        made = await landed(repo, told, style)
        if not is_clean:
            assert isinstance(made, MergedTrees), told.done
            tree = built.rev(f"{told.head}^{{tree}}")
            made = await landed(repo, told, style, tree=tree)
        assert isinstance(made, Composed), told.done
        assert built.rev(f"{made.new}^{{tree}}") == made.tree == tree
        assert swallowed(told, told.target, made.new) == [], (told.done, style)
        await assert_told(repo, told, style, made)
        if is_clean and told.target == told.base:
            await assert_same_patch(repo, told, made)
    built.fsck()


async def assert_told(repo: Repo, told: Story, style: LandingStyle, made: Composed) -> None:
    """A history that is not as asked for is said to be so; a plain one is as asked for."""
    parents = told.git.built.git("rev-list", "--parents", "-1", made.new).split()[1:]
    if made.note:
        assert parents == [told.target], (told.done, style)
    if style is LandingStyle.MERGE and not made.note:
        assert parents == [told.target, told.head], (told.done, style)
    if style is LandingStyle.MERGE and set(told.done) <= {"work", "empty"}:
        assert not made.note, told.done


async def assert_same_patch(repo: Repo, told: Story, made: Composed) -> None:
    """The shown change and what the landing does to a target that did not move, byte for byte."""
    shown, does = (told.base, told.head), (told.target, made.new)
    assert await patch_bytes(repo, *does) == await patch_bytes(repo, *shown)
    assert await changed_files(repo, *does) == await changed_files(repo, *shown)
    assert await change_diff(repo, *does, against="") == replace(
        await change_diff(repo, *shown, against=""), head=made.new
    )


@pytest.mark.parametrize("style", list(LandingStyle))
async def test_a_branch_that_a_landing_creates_holds_what_was_shown(
    tmp_path: Path, style: LandingStyle
):
    for seed in range(SEEDS // 4):
        told = story(tmp_path / f"{seed}", seed)
        built = told.git.built
        repo = await Repo.open(built.path, built.environment)
        made = await landed(repo, told, style, target="fresh", creates=True)
        assert isinstance(made, Composed)
        assert built.rev(f"{made.new}^{{tree}}") == built.rev(f"{told.head}^{{tree}}")
        assert swallowed(told, told.base, made.new) == [], told.done


async def test_a_straight_line_is_not_enough_where_others_stand_on_a_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The control: without that guard, work that an agent adopted and took back is lost."""

    async def always(*_: object, **__: object) -> bool:
        return True

    monkeypatch.setattr(composition, "is_own", always)
    found: list[Broken] = []
    for seed in range(SEEDS):
        told = story(tmp_path / f"{seed}", seed)
        if "adopt_and_take_back" in told.done:
            repo = await Repo.open(told.git.built.path, told.git.built.environment)
            made = await landed(repo, told, LandingStyle.MERGE)
            if isinstance(made, Composed):
                found += broken(told, told.target, made.new)
    assert Broken("a later merge brings what it would have brought") in found


@pytest.mark.parametrize("made", ["branch", "tag", "packed", "remote"])
async def test_a_ref_that_the_user_makes_between_two_landings_is_seen(tmp_path: Path, made: str):
    built = RepositoryBuilder.small(tmp_path / "repo")
    git, base = Plumbing(built), built.head
    repo = await Repo.open(built.path, built.environment)

    async def note(name: str, *, adopted: bool = False) -> str:
        first = git.commit({**START, name: ("100644", "1\n")}, base)
        if adopted:
            onward = git.commit({**START, name: ("100644", "2\n")}, first)
            places = {"branch": "heads", "packed": "heads", "tag": "tags", "remote": "remotes/o"}
            built.git("update-ref", f"refs/{places[made]}/{name}", onward)
            if made == "packed":
                built.git("pack-refs", "--all")
        head = git.commit(START, first)
        told = Story(git, base, head, built.rev("main"), users=[])
        done = await landed(repo, told, LandingStyle.MERGE)
        assert isinstance(done, Composed)
        return done.note

    built.git("branch", "elsewhere", git.commit(START, base))
    assert await note("one") == await note("two") == ""
    assert "commits of other branches or tags" in await note("three", adopted=True)
    assert await note("four") == ""


@pytest.mark.parametrize("kind", ["shallow", "sha256", "many refs packed"])
async def test_a_line_is_kept_in_every_kind_of_repository(tmp_path: Path, kind: str):
    built = RepositoryBuilder(tmp_path / "repo", init=False)
    if kind == "sha256":
        built.git("init", "-q", "-b", "main", "--object-format=sha256")
    elif kind == "shallow":
        far = RepositoryBuilder.small(tmp_path / "far")
        far.commit({"more": "more\n"}, "more")
        built.git("clone", "-q", "--depth=1", f"file://{far.path}", ".")
    else:
        built.git("init", "-q", "-b", "main")
    base = built.commit({"one": "1\n"}, "base")
    if kind == "many refs packed":
        rows = "".join(f"create refs/tags/t{n} {base}\n" for n in range(2000))
        built.git("update-ref", "--stdin", stdin=rows.encode())
        built.git("pack-refs", "--all")
    built.git("checkout", "-q", "--detach")
    first = built.commit({"two": "2\n"}, "first")
    head = built.commit({"two": "3\n"}, "second")
    built.git("checkout", "-q", "main")
    old = built.commit({"three": "3\n"}, "meanwhile")
    repo = await Repo.open(built.path, built.environment)
    told = Story(Plumbing(built), base, head, old, users=[])
    made = await landed(repo, told, LandingStyle.MERGE)
    assert isinstance(made, Composed)
    assert not made.note
    assert built.git("rev-list", made.new, f"^{old}").split() == [made.new, head, first]
    assert broken(told, old, made.new) == []


async def test_changes_are_stacked_by_the_record_and_not_by_their_history(tmp_path: Path):
    """The control besides: counted from the agents' histories, some of these come out otherwise."""
    others: set[bool] = set()
    for seed in range(SEEDS // 2):
        told = story(tmp_path / f"{seed}", seed)
        git, built = told.git, told.git.built
        repo = await Repo.open(built.path, built.environment)
        me = repo.settings.sign(1_767_229_200)
        wording = Wording(message="stack\n", author=me)
        friend = git.commit({**git.files[told.base], "friend": ("100644", "b\n")}, told.base)
        adopted = git.commit(git.files[told.head], told.head, friend)
        for head in (told.head, adopted):
            standing = await standing_head(repo, told.base, head, wording)
            record = Record(root=told.base, bases={head: (told.base,), friend: (told.base,)})
            for heads in ([standing, friend], [friend, standing]):
                made = await stack_base(repo, Merger(repo), record, heads, wording=wording)
                assert isinstance(made, Base), told.done
                assert made.tree == git.merged(told.base, *heads)[1], told.done
                others.add(git.merge(head, friend)[1] == made.tree)
    assert others == {True, False}


async def test_a_landing_counted_from_the_agents_history_breaks_every_one_of_these(tmp_path: Path):
    """The control: where merges are counted from what the agent says, attacks come through."""
    found: Counter[str] = Counter()
    for seed in range(SEEDS):
        told = story(tmp_path / f"{seed}", seed)
        git, built = told.git, told.git.built
        bases = built.try_git("merge-base", told.target, told.head).stdout.decode().split()
        is_clean, tree = git.merged(bases[0] if bases else told.base, told.target, told.head)
        if is_clean:
            words = ("commit-tree", tree, "-p", told.target, "-p", told.head, "-m", "land")
            found.update(one.law for one in broken(told, told.target, built.git(*words)))
    assert found["it lands the merge of exactly what was shown"] > 1
    assert found["a later merge brings what it would have brought"] > 1
