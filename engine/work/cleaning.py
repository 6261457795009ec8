"""Decide what can be removed safely and why the rest stays."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.beneath import remove_tree
from engine.core.effects import ReleaseWorkspace
from engine.core.state import RunState, Worker
from engine.errors import EngineError, SiteSilent
from engine.git.objects import refs_below
from engine.git.unfinished import remove_dead_locks
from engine.ids import RunId
from engine.messages.questions import CleanItem
from engine.phases import Phase
from engine.plan.model import Runtime, WorkspaceRules
from engine.site.seam import Terms
from engine.store.layout import check_root
from engine.work.tools import Tools
from engine.work.workplace import address_of

_PINNED = re.compile(r"refs/plait/(?P<run>[^@/][^/]*)/(?P<worker>[^/]+/[^/]+)/attempt_\d+/")
_UNKNOWN = (
    "the records of its run are gone, so plait cannot tell if its work has landed; "
    "`git branch -D` deletes it"
)


async def clean(tools: Tools, states: Sequence[RunState], *, dry_run: bool) -> list[CleanItem]:
    """Examine every workspace of these runs and of vanished runs; remove the provably safe ones.

    With `dry_run` it is only said what would go.
    """
    items = [
        await _clean_one(tools, state, w, dry_run=dry_run)
        for state in states
        for known in state.workers.values()
        for w in await _there(tools, state, known)
    ]
    items += await _clean_strays(tools, dry_run=dry_run)
    if not dry_run and tools.repo is not None:
        await remove_dead_locks(tools.repo)
    going = {item.path for item in items if item.is_safe} if dry_run else None
    items += await _drop_branches(tools, states, going=going)
    if not dry_run:
        for state in states:
            if all(w.phase.is_settled for w in state.workers.values()):
                checked = check_root(tools.workspaces, state.run)
                for folder in (checked, tools.layout.radar(state.run)):
                    await anyio.to_thread.run_sync(remove_tree, folder)
                for site in tools.sites.used_by(state.plan):
                    await site.tidy(state.run)
        for site in await tools.sites.every():
            await site.purge(tools.clock.now())
    return items


async def _clean_strays(tools: Tools, *, dry_run: bool) -> Sequence[CleanItem]:
    """Remove workspaces of vanished runs."""
    if tools.repo is None:
        return ()
    known = await anyio.to_thread.run_sync(_folders, tools.layout.runs)
    terms = Terms(runtime=Runtime(), workspace=WorkspaceRules())
    sites = await tools.sites.every()
    found = [await site.spaces(terms).clear_strays(known, is_dry=dry_run) for site in sites]
    return [item for items in found for item in items]


def _folders(runs: Path) -> list[RunId]:
    return [RunId(folder.name) for folder in runs.iterdir() if folder.is_dir()]


async def _drop_branches(
    tools: Tools, states: Sequence[RunState], *, going: Container[str] | None
) -> list[CleanItem]:
    """Delete branches of settled workers whose work is in the target; say why the others stay.

    Where it is only to be said, `going` are the workspaces that would be gone by then.
    """
    if tools.repo is None:
        return []
    heads = await refs_below(tools.repo, "refs/heads")
    items = []
    for state in states:
        for w in state.workers.values():
            branch = w.begun.branch
            if branch is None or f"refs/heads/{branch}" not in heads:
                continue
            reason = await _drop_branch(tools, state, w, going=going)
            items.append(
                CleanItem(
                    run=state.run,
                    worker=str(w.id),
                    path=w.begun.workspace or "",
                    reasons=(reason,) if reason else (),
                    was_removed=going is None and not reason,
                    branch=branch,
                )
            )
    known = await anyio.to_thread.run_sync(_folders, tools.layout.runs)
    pinned = await refs_below(tools.repo, "refs/plait")
    return [*items, *_stray_branches(heads, pinned, known)]


def _stray_branches(
    heads: Iterable[str], pinned: Iterable[str], known: Container[str]
) -> Iterator[CleanItem]:
    """List the branches of vanished runs, which the refs of their attempts name; delete none.

    The journal that is gone named the target of their work.
    """
    found = filter(None, map(_PINNED.match, pinned))
    gone = {(one["run"], one["worker"]) for one in found if one["run"] not in known}
    for head in heads:
        branch = head.removeprefix("refs/heads/")
        run, _, worker = "/".join(branch.split("/")[-3:]).partition("/")
        if (run, worker) in gone:
            yield CleanItem(run=run, worker=worker, path="", reasons=(_UNKNOWN,), branch=branch)


async def _drop_branch(
    tools: Tools, state: RunState, w: Worker, *, going: Container[str] | None
) -> str:
    """Delete a worker's branch if nothing needs it any more, or return why it stays."""
    if not w.phase.is_settled or not w.attempt.number:
        return f"{w.id} is {w.phase}"
    is_gone = going is not None and w.begun.workspace in going
    if not is_gone and await tools.sites.is_there(state, address_of(state, w)):
        return "its workspace stays"
    return await tools.workshops.of(state.plan).drop_branch(state, w, going=going) or ""


async def _there(tools: Tools, state: RunState, w: Worker) -> list[Worker]:
    """Return the worker as it was at each attempt whose workspace is there, the newest last."""
    if w.begun.workspace is None:
        return []
    try:
        return await _found(tools, state, w)
    except SiteSilent:  # why it stays is said when it is to be cleaned
        return [w]


async def _found(tools: Tools, state: RunState, w: Worker) -> list[Worker]:
    address = address_of(state, w)
    numbers = [n for n in range(1, w.attempt.number) if n != w.begun.made]
    found = [
        replace(
            w,
            attempt=replace(w.attempt, number=one.attempt.number),
            begun=replace(w.begun, workspace=one.path, made=one.attempt.number),
            phase=Phase.FAILED,
        )
        for one in await tools.sites.of(state, w.id).earlier(address, numbers)
    ]
    return [*found, *([w] if await tools.sites.is_there(state, address) else [])]


async def _clean_one(tools: Tools, state: RunState, w: Worker, *, dry_run: bool) -> CleanItem:
    path = w.begun.workspace or ""
    item = partial(CleanItem, run=state.run, worker=str(w.id), path=path)
    if not w.phase.is_settled:
        return item(reasons=(f"{w.id} is {w.phase}",))
    state = replace(state, workers={**state.workers, w.id: w})
    effect = ReleaseWorkspace(worker=w.id, attempt=w.attempt.number)
    try:
        reasons = await tools.workshops.of(state.plan).examine(state, effect)
    except (EngineError, OSError) as error:  # one that cannot be read must not keep the others
        reasons = (f"it could not be read: {error}",)
    if reasons or dry_run:
        return item(reasons=reasons)
    await tools.served.stop(state.run, w.id, workspace=path)
    await tools.workshops.of(state.plan).release_unsettled(state, effect)
    if await tools.sites.is_there(state, address_of(state, w)):
        return item(reasons=("it could not be moved to the trash",))
    return item(was_removed=True)
