"""The commit that a landing would put on its target: made, not yet put anywhere.

A change is two trees: the recorded base and what was collected. Merge, squash and rebase all bring
the same merge of those two with the target's tree, whatever history the agent made in between. So
what was reviewed and checked is what lands.
"""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from engine.errors import GitFailed, WorkspaceError
from engine.git.ancestry import holds
from engine.git.merge3 import MergedTrees, Merger
from engine.git.names import PREFIX
from engine.git.objects import Wording, read_ref, sign_commit, tree_of
from engine.git.ownership import CommitLine, is_own, plain_line
from engine.git.runner import Repo
from engine.git.settings import Signature
from engine.values import dataclass

_NO_LINE = (
    "This change lands as one commit: its own history is not linear on its base, or a message "
    "there uses plait's trailers. That history stays on the refs of the attempt."
)
_NOT_ITS_OWN = (
    "This change lands as one commit: its own history contains commits of other branches or tags. "
    "That history stays on the refs of the attempt."
)
_NOT_REPLAYED = "This change lands as one commit: its own commits could not be replayed one by one."
_BY_HAND = "This change lands as one commit: its result was combined by hand."


class LandingStyle(StrEnum):
    """The way a change becomes history."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, kw_only=True)
class LandRequest:
    """A change to land, and the way to land it.

    Attributes:
        target: The branch, as people say it (`main`).
        base: The commit that the change is counted from, as it was recorded.
        head: The commit with what was collected.
        message: For the commit of a merge or a squash; a rebase keeps the agent's.
        trailers: Put at the end of the last commit's message.
        tree: The result that a human put together from conflicts; None to let git merge.
        creates: The target is a new branch, and must not exist.
        prefix: The branches of workers stand below it.
        root: The base of the run, where that is another than the change's.
    """

    target: str
    base: str
    head: str
    style: LandingStyle = LandingStyle.MERGE
    message: str
    author: Signature
    committer: Signature
    trailers: tuple[tuple[str, str], ...] = ()
    tree: str | None = None
    creates: bool = False
    prefix: str = PREFIX
    root: str | None = None


@dataclass(frozen=True, kw_only=True)
class Composed:
    """A commit ready to land: `old` is where the target stood, None if there is no such branch.

    `note` says what git left out of the merge, and why the history is not the one that was asked
    for; it is empty where neither is so.
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
        return await _history(repo, merger, request, (old, request.tree))
    merged = await merger.merge3(request.base, old, request.head)
    if not merged.is_clean:
        return merged
    composed = await _history(repo, merger, request, (old, merged.tree))
    return replace(composed, note=" ".join(filter(None, (merged.caveat, composed.note))))


async def _onto_nothing(repo: Repo, request: LandRequest) -> Composed:
    """Make the first commit of a branch: the head itself, or all of the change as one."""
    tree = request.tree or await tree_of(repo, request.head)
    done = Composed(target=request.target, old=None, new=request.head, tree=tree)
    start, note = await _start(repo, request), ""
    if request.style is not LandingStyle.SQUASH and request.tree is None:
        line = await plain_line(repo, start, request.head) if start == request.base else None
        note = await _why_not_kept(repo, request, line, (start, start))
        if not note:
            return done
    new = await sign_commit(repo, tree, [start], _wording(request, request.message))
    return replace(done, new=new, note=note)


async def _start(repo: Repo, request: LandRequest) -> str:
    """Return the commit that a new branch grows from: the base of the change, or that of the run.

    What a change builds on is the work of other agents; their history has to be a line as well.
    """
    root = request.root or request.base
    line = await plain_line(repo, root, request.base)
    return root if await _why_not_kept(repo, request, line, (root, root)) else request.base


async def _history(
    repo: Repo, merger: Merger, request: LandRequest, place: tuple[str, str]
) -> Composed:
    """Make the commits that bring a tree to the target, in the style that was asked for.

    The tree never depends on the agent's history. That history is kept only where it cannot say
    more than the tree holds: a merge commit tells git that everything behind its second parent has
    been merged, and a later `git merge` would leave out whatever else stands there.
    """
    old, tree = place
    done = Composed(target=request.target, old=old, new="", tree=tree)
    wording = _wording(request, request.message)
    parents, note = [old], ""
    if request.style is not LandingStyle.SQUASH:
        line = await plain_line(repo, request.base, request.head)
        is_merge = request.style is LandingStyle.MERGE
        if line is None:
            note = _NO_LINE
        elif is_merge and await holds(repo, old, request.base):
            note = await _why_not_kept(repo, request, line, (request.base, old))
            parents += [] if note else [request.head]
        else:
            tip, note = await _replayed(repo, merger, request, (line, old, tree))
            if tip is not None and not is_merge:
                return replace(done, new=tip)
            parents += [tip] if tip else []
    return replace(done, new=await sign_commit(repo, tree, parents, wording), note=note)


async def _why_not_kept(
    repo: Repo, request: LandRequest, line: tuple[str, ...] | None, place: tuple[str, str]
) -> str:
    """Say why the agent's commits cannot become history as they are; nothing where they can."""
    if line is None:
        return _NO_LINE
    base, besides = place
    target = f"refs/heads/{request.target}"
    asked = CommitLine(
        base=base, commits=line, besides=besides, target=target, prefix=request.prefix
    )
    return "" if await is_own(repo, asked) else _NOT_ITS_OWN


async def _replayed(
    repo: Repo, merger: Merger, request: LandRequest, what: tuple[tuple[str, ...], str, str]
) -> tuple[str | None, str]:
    """Return the last of the commits made again on the target; or none, and why."""
    line, old, tree = what
    if request.tree is not None:
        return None, _BY_HAND
    tip = await _replay(repo, merger, request, line, onto=old)
    if tip is None or await tree_of(repo, tip) != tree:
        return None, _NOT_REPLAYED
    return tip, ""


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


async def _replay(
    repo: Repo, merger: Merger, request: LandRequest, line: Sequence[str], *, onto: str
) -> str | None:
    """Make the commits of a line again on top of a commit; None where one of them conflicts."""
    before, tip = request.base, onto
    for commit in line:
        is_last = commit == line[-1]
        try:
            merged = await merger.merge3(before, tip, commit)
        except GitFailed:
            return None
        if not merged.is_clean:
            return None
        before = commit
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
    is_only_merge = request.style is LandingStyle.MERGE
    trailers = request.trailers if is_last and not is_only_merge else ()
    wording = Wording(
        message=with_trailers(message, trailers),
        author=Signature(name, email, int(seconds), zone),
        committer=request.committer,
    )
    return await sign_commit(repo, tree, [parent], wording)
