"""Compare candidates hunk by hunk, and weave a composite from chosen hunks."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from engine.core.state import RunState, Worker, usages_of
from engine.errors import WorkspaceError
from engine.git.diff import changed_files, counted_files
from engine.git.merge3 import MergedTrees
from engine.git.names import RefNames
from engine.git.objects import Wording, set_refs, tree_of, write_commit
from engine.git.runner import Repo
from engine.ids import WOVEN, AttemptId, WorkerId
from engine.limits import summed
from engine.merge import (
    CandidateHunk,
    FileResult,
    HunkKey,
    Lines,
    Version,
    Weaving,
    WeavingRefused,
    split_lines,
    weave,
)
from engine.messages.merging import CandidateHunkView, CandidateRow, CandidateTable
from engine.messages.results import Change
from engine.phases import Phase
from engine.plan.model import PlannedStep
from engine.review.change import in_figures
from engine.review.conflicts import Conflicts
from engine.review.reading import contents_of
from engine.review.results import result_tree
from engine.review.showing import shown

_SUBMODULE = "160000"
_ABSENT = "000000"
_CONTEXT = 3


@dataclass(frozen=True, kw_only=True)
class Woven:
    """A composite as objects: a commit on the candidates' base that no ref names yet."""

    base: str
    head: str
    tree: str
    taken: Mapping[str, int]


async def candidate_table(repo: Repo, state: RunState, step: PlannedStep) -> CandidateTable:
    """Return the candidates of a step, for comparing."""
    able = _able(state, step)
    weaving = (await _weaving(repo, able))[0] if able else None
    rows = tuple(_row(state, w, weaving, able) for w in state.workers_of(step.name))
    hunks = tuple(_hunk_views(weaving)) if weaving else ()
    return CandidateTable(run=state.run, step=step.name, rows=rows, hunks=hunks)


def _able(state: RunState, step: PlannedStep) -> list[Worker]:
    """Return the candidates with a commit on the first one's base; no composite."""
    found = [
        w
        for w in state.workers_of(step.name)
        if w.id.index != WOVEN and w.change and w.change.head and w.change.base
    ]
    # Hunks can only be compared if they are counted from the same base.
    base = found[0].change.base if found and found[0].change else None
    return [w for w in found if w.change and w.change.base == base]


async def _weaving(repo: Repo, able: Sequence[Worker]) -> tuple[Weaving, dict[bytes, str]]:
    """Return the hunks of all candidates, and the objects of files too big to read."""
    base: dict[bytes, tuple[str, str]] = {}
    sides: dict[str, dict[bytes, tuple[str, str]]] = {}
    for w in able:
        change = w.change or Change()
        before, after = await _versions(repo, change.base or "", change.head or "")
        base.update(before)
        sides[str(w.id)] = after
    entries = [*base.values(), *(entry for side in sides.values() for entry in side.values())]
    oids = {oid for mode, oid in entries if mode not in {_SUBMODULE, _ABSENT}}
    contents = await contents_of(repo, sorted(oids))
    named: dict[bytes, str] = {}

    def version(entry: tuple[str, str]) -> Version | None:
        mode, oid = entry
        if mode == _ABSENT:
            return None
        content = contents.get(oid)
        if content is None:  # a submodule, or too big: it goes by its name, as a whole
            content = b"\0" + oid.encode()
            named[content] = oid
        return Version(content, mode)

    trees = {name: {p: version(e) for p, e in side.items()} for name, side in sides.items()}
    return weave({p: version(e) for p, e in base.items()}, trees), named


async def _versions(
    repo: Repo, base: str, head: str
) -> tuple[dict[bytes, tuple[str, str]], dict[bytes, tuple[str, str]]]:
    """Return every changed path before and after: mode and object; a move is two paths."""
    before: dict[bytes, tuple[str, str]] = {}
    after: dict[bytes, tuple[str, str]] = {}
    for file in await changed_files(repo, base, head):
        old = file.old_path or file.path
        before[old] = (file.old_mode, file.old_oid)
        after[file.path] = (file.new_mode, file.new_oid)
        if old != file.path:
            before[file.path] = after[old] = (_ABSENT, "")
    return before, after


def _row(
    state: RunState, w: Worker, weaving: Weaving | None, able: Sequence[Worker]
) -> CandidateRow:
    change, agent = w.change or Change(), state.agent_of(w.id)
    hunks = weaving.of(str(w.id)) if weaving else ()
    return CandidateRow(
        worker=str(w.id),
        phase=w.phase,
        outcome=w.outcome,
        label=state.label_of(w.id),
        agent=agent.name if agent else "",
        check=w.review.check,
        files=change.files,
        insertions=change.insertions,
        deletions=change.deletions,
        worked_s=w.history.worked_s,
        usage=summed(usages_of(w)),
        hunks=len(hunks),
        agreed=sum(len(hunk.alike) > 1 for hunk in hunks),
        is_comparable=w in able,
    )


def _hunk_views(weaving: Weaving) -> list[CandidateHunkView]:
    lines_of = cache(split_lines)  # many hunks are of one file
    return [
        _hunk_view(weaving, hunk, number, lines_of)
        for number, spot in enumerate(weaving.spots)
        for hunk in spot.hunks
    ]


def _hunk_view(
    weaving: Weaving, hunk: CandidateHunk, spot: int, lines_of: Callable[[bytes], Lines]
) -> CandidateHunkView:
    before = weaving.base.get(hunk.path)
    is_lines = not hunk.whole and hunk.mode is None
    lines = lines_of(before.content) if before and is_lines else ()
    return CandidateHunkView(
        key=hunk.key,
        path=os.fsdecode(hunk.path),
        spot=spot,
        line=hunk.start + 1,
        old=tuple(map(shown, lines[hunk.start : hunk.end])),
        new=tuple(map(shown, hunk.lines)),
        candidates=hunk.candidates,
        alike=hunk.alike,
        what=_what(hunk, before),
        before=tuple(map(shown, lines[max(hunk.start - _CONTEXT, 0) : hunk.start])),
        after=tuple(map(shown, lines[hunk.end : hunk.end + _CONTEXT])),
    )


def _what(hunk: CandidateHunk, before: Version | None) -> str:
    if hunk.mode is not None:
        return f"mode {hunk.mode}"
    if not hunk.whole:
        return ""
    if hunk.version is None:
        return "deleted"
    return "created" if before is None else "whole file"


async def compose(
    repo: Repo, state: RunState, step: PlannedStep, keys: Sequence[str]
) -> Woven | str:
    """Write the commit that these hunks make on the candidates' base, or say why not.

    Raises:
        WorkspaceError: The step has no candidates with a change, or not these hunks.
    """
    able = _able(state, step)
    if not able or able[0].change is None or able[0].change.base is None:
        raise WorkspaceError(f"{step.name} has no candidates with a change")
    base = able[0].change.base
    weaving, named = await _weaving(repo, able)
    try:
        made = weaving.compose(map(HunkKey, keys))
    except KeyError as error:
        raise WorkspaceError(
            f"no candidate of {step.name} has the hunk {error.args[0]}",
            hint="Look at the candidates again: you may have retried one of them.",
        ) from error
    if isinstance(made, WeavingRefused):
        return made.reason
    results = [_result(path, version, named) for path, version in made.files.items()]
    merged = MergedTrees(tree=await tree_of(repo, base))
    tree = await result_tree(repo, merged, Conflicts(()), results)
    who = ", ".join(f"{count} of {name}" for name, count in made.taken.items() if count)
    author = repo.settings.sign(int(state.now or state.started_at or 0))
    wording = Wording(message=f"Combined from hunks: {who}\n", author=author)
    head = await write_commit(repo, tree, [base], wording)
    return Woven(base=base, head=head, tree=tree, taken=made.taken)


def _result(path: bytes, version: Version | None, named: Mapping[bytes, str]) -> FileResult:
    if version is None:
        return FileResult(path)
    return FileResult(path, version.mode, version.content, named.get(version.content))


async def keep(repo: Repo, state: RunState, woven: Woven, attempt: AttemptId) -> Change:
    """Put the composite on refs like any other attempt's, so that no cleanup removes it."""
    names = RefNames(attempt, state.plan.runtime.branch_prefix)
    refs = [(names.base, woven.base), (names.head, woven.head), (names.branch_ref, woven.head)]
    await set_refs(repo, refs, say="plait: woven from candidates")
    return await change_of(repo, base=woven.base, head=woven.head, tree=woven.tree)


async def change_of(repo: Repo, *, base: str, head: str, tree: str) -> Change:
    """Return a commit made of decisions, in figures."""
    files, hunks = await counted_files(repo, base, head)
    return in_figures(Change(head=head, base=base, tree=tree), files, hunks)


def woven_attempt(state: RunState, step: PlannedStep) -> AttemptId:
    """Return the attempt that a new composite is.

    Raises:
        WorkspaceError: There can be none now.
    """
    worker = WorkerId(step.name, WOVEN)
    chosen = state.steps[step.name].chosen
    if not step.has_candidates:
        raise WorkspaceError(f"{step.name} has no candidates")
    if chosen is not None and chosen != worker:
        raise WorkspaceError(f"{chosen} is chosen already", hint=f"Reject {chosen} first.")
    old = state.workers.get(worker)
    if old is not None and old.phase is not Phase.REVIEWING:
        raise WorkspaceError(f"{worker} is {old.phase}: you cannot combine its hunks again")
    return AttemptId(state.run, worker, old.attempt.number + 1 if old else 1)
