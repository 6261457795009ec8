"""The commit that a landing would put on its target: made, not yet put anywhere.

Merge, squash and rebase all come from the same three-way merge, so that what was reviewed and
checked is what lands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.errors import GitFailed, WorkspaceError
from engine.git.ancestry import part_at
from engine.git.diff import is_ancestor, merge_base
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, read_ref, resolve, sign_commit, tree_of
from engine.git.runner import Repo
from engine.git.settings import Signature


class Style(StrEnum):
    """How a change becomes history."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, kw_only=True)
class LandRequest:
    """What is to be landed, and how.

    Attributes:
        target: The branch, as people say it (`main`).
        base: What the change started from.
        head: What it came to.
        message: For the commit of a merge or a squash; a rebase keeps the agent's.
        trailers: Put at the end of the last commit's message.
        tree: The result that a human put together from conflicts; None to let git merge.
        creates: The target is a new branch, and must not exist.
    """

    target: str
    base: str
    head: str
    style: Style = Style.MERGE
    message: str
    author: Signature
    committer: Signature
    trailers: tuple[tuple[str, str], ...] = ()
    tree: str | None = None
    creates: bool = False


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A commit ready to land: `old` is where the target stood, None if there is no such branch.

    `note` says, as a sentence, where the history is not the one that was asked for.
    """

    target: str
    old: str | None
    new: str
    tree: str
    note: str = ""

    @property
    def ref(self) -> str:
        """The target in full."""
        return f"refs/heads/{self.target}"


async def compose(repo: Repo, merger: Merger, request: LandRequest) -> Composed | MergedTrees:
    """Make the commit; conflicts, or a result that must not be published, come back as they are.

    Raises:
        WorkspaceError: The target is missing, or is there although it was to be created.
        GitFailed: The commit could not be signed.
    """
    old = await read_ref(repo, f"refs/heads/{request.target}", request.head, request.base)
    if old is not None and request.creates:
        raise WorkspaceError(f"the branch {request.target!r} exists already")
    if old is None:
        return await _onto_nothing(repo, request)
    if request.tree is not None:
        is_known = await is_ancestor(repo, request.base, old)
        return await _history(repo, merger, request, (old, request.tree), is_known=is_known)
    since, is_known = await _since(repo, old, base=request.base, head=request.head)
    merged = await merger.merge3(since, old, request.head)
    if not merged.is_clean:
        return merged
    return await _history(repo, merger, request, (old, merged.tree), is_known=is_known)


async def merged_since(repo: Repo, onto: str, *, base: str, head: str) -> str:
    """What a landing's merge is counted from.

    That is the last commit in common with a target that holds the change's base; else the base
    itself, because it holds work that the target never had and that is not to be landed.
    """
    return (await _since(repo, onto, base=base, head=head))[0]


async def _since(repo: Repo, onto: str, *, base: str, head: str) -> tuple[str, bool]:
    """The same, and whether the target holds the base: one question where they say each other."""
    if await part_at(repo, base, onto, head):
        return base, True
    last = await merge_base(repo, onto, head)
    if last == base:
        return base, True
    is_known = await is_ancestor(repo, base, onto)
    return (last or base if is_known else base), is_known


async def _onto_nothing(repo: Repo, request: LandRequest) -> Composed:
    """The first commit of a branch: the head itself, or all of it as one."""
    tree = request.tree or await tree_of(repo, request.head)
    if request.style is Style.SQUASH or request.tree is not None:
        wording = _wording(request, request.message)
        new = await sign_commit(repo, tree, [request.base], wording)
    else:
        new = request.head
    return Composed(target=request.target, old=None, new=new, tree=tree)


async def _history(
    repo: Repo, merger: Merger, request: LandRequest, place: tuple[str, str], *, is_known: bool
) -> Composed:
    old, tree = place
    done = Composed(target=request.target, old=old, new="", tree=tree)
    wording = _wording(request, request.message)
    if request.style is Style.MERGE and is_known:
        new = await sign_commit(repo, tree, [old, request.head], wording)
        return replace(done, new=new)
    note = ""
    tip: str | None = None
    if request.style is not Style.SQUASH and request.tree is None:
        tip = await _replay(repo, merger, request, onto=old)
        if tip is None or await tree_of(repo, tip) != tree:
            tip = None
            note = "The commits could not be replayed one by one, so they were landed as one."
    elif request.style is Style.REBASE:
        note = "A result put together by hand is one commit."
    if tip is not None and request.style is Style.MERGE:
        return replace(done, new=await sign_commit(repo, tree, [old, tip], wording))
    return replace(done, new=tip or await sign_commit(repo, tree, [old], wording), note=note)


def _wording(request: LandRequest, message: str) -> Wording:
    return Wording(
        message=with_trailers(message, request.trailers),
        author=request.author,
        committer=request.committer,
    )


def with_trailers(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """A commit message with trailers as its last paragraph, each on a line of its own."""
    text = message.strip() or "Land a change"
    lines = [f"{key}: {' '.join(value.split())}" for key, value in trailers]
    last = text.rpartition("\n\n")[2]
    joint = "\n" if lines and _are_trailers(last) and "\n\n" in text else "\n\n"
    return text + (joint + "\n".join(lines) if lines else "") + "\n"


def _are_trailers(paragraph: str) -> bool:
    return all(
        ": " in line and " " not in line.partition(": ")[0] for line in paragraph.split("\n")
    )


async def _replay(repo: Repo, merger: Merger, request: LandRequest, *, onto: str) -> str | None:
    """The change's commits one after another on top of a commit; None where one conflicts."""
    if not await is_ancestor(repo, request.base, request.head):
        return None
    words = ("rev-list", "--reverse", "--first-parent", request.head, f"^{request.base}")
    commits = (await repo.read(*words)).decode().split()
    tip = onto
    for commit in commits:
        is_last = commit == commits[-1]
        before = await resolve(repo, f"{commit}^1")
        if before is None:
            return None
        try:
            merged = await merger.merge3(before, tip, commit)
        except GitFailed:
            return None
        if not merged.is_clean:
            return None
        if merged.tree == await tree_of(repo, tip) and not is_last:
            continue
        tip = await _again(repo, request, (commit, tip, merged.tree), is_last=is_last)
    return tip


async def _again(
    repo: Repo, request: LandRequest, what: tuple[str, str, str], *, is_last: bool
) -> str:
    """A commit with the author and message of another, on a new parent."""
    commit, parent, tree = what
    words = ("log", "-1", "--no-show-signature", "--format=%an%x00%ae%x00%ad%x00%B", "--date=raw")
    name, email, date, message = (
        (await repo.read(*words, commit)).decode(errors="surrogateescape").split("\0", 3)
    )
    seconds, _, zone = date.partition(" ")
    is_only_merge = request.style is Style.MERGE
    trailers = request.trailers if is_last and not is_only_merge else ()
    wording = Wording(
        message=with_trailers(message, trailers),
        author=Signature(name, email, int(seconds), zone),
        committer=request.committer,
    )
    return await sign_commit(repo, tree, [parent], wording)
