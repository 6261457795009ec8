"""Decide what can be removed safely and why the rest stays; restore what was removed."""

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from engine.beneath import remove_tree
from engine.core.effects import ReleaseWorkspace
from engine.core.state import RunState, Worker
from engine.errors import EngineError, StoreError, WorkspaceError
from engine.git.checkout import COPIES, copied, put_back
from engine.git.removal import Removed, restore
from engine.git.runner import Repo
from engine.git.unfinished import remove_dead_locks
from engine.ids import RunId
from engine.messages.questions import CleanItem, TrashItem
from engine.phases import Phase
from engine.plan.model import Runtime, WorkspaceRules
from engine.site.seam import Terms
from engine.site.trash import LABEL
from engine.store.codec import from_json
from engine.store.layout import check_root
from engine.work.tools import Tools
from engine.work.workplace import address_of

KEPT_S = 30 * 24 * 3600.0
"""How long the trash keeps what was put there."""
_GOING = ".going-"


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
                await tools.site.tidy(state.run)
        now = tools.clock.now()
        await anyio.to_thread.run_sync(partial(_purge, tools.layout.trash, now))
    return items


async def _clean_strays(tools: Tools, *, dry_run: bool) -> Sequence[CleanItem]:
    """Remove workspaces of vanished runs."""
    if tools.repo is None:
        return ()
    known = await anyio.to_thread.run_sync(_folders, tools.layout.runs)
    worktrees = tools.site.spaces(Terms(runtime=Runtime(), workspace=WorkspaceRules()))
    return await worktrees.clear_strays(known, is_dry=dry_run)


def _folders(runs: Path) -> list[RunId]:
    return [RunId(folder.name) for folder in runs.iterdir() if folder.is_dir()]


async def _drop_branches(
    tools: Tools, states: Sequence[RunState], *, going: Container[str] | None
) -> list[CleanItem]:
    """Delete branches of settled workers whose work is in the target; keep the others.

    Where it is only to be said, `going` are the workspaces that would be gone by then.
    """
    items = []
    for state in states:
        for w in state.workers.values():
            if not w.phase.is_settled or w.begun.branch is None or not w.attempt.number:
                continue
            is_gone = going is not None and w.begun.workspace in going
            if not is_gone and await tools.site.is_there(address_of(state, w)):
                continue
            if await tools.workshops.of(state.plan).drop_branch(state, w, going=going) == "":
                items.append(
                    CleanItem(
                        run=state.run,
                        worker=str(w.id),
                        path=w.begun.workspace or "",
                        was_removed=going is None,
                        branch=w.begun.branch,
                    )
                )
    return items


async def _there(tools: Tools, state: RunState, w: Worker) -> list[Worker]:
    """Return the worker as it was at each attempt whose workspace is there, the newest last."""
    if w.begun.workspace is None:
        return []
    address = address_of(state, w)
    numbers = [n for n in range(1, w.attempt.number) if n != w.begun.made]
    found = [
        replace(
            w,
            attempt=replace(w.attempt, number=one.attempt.number),
            begun=replace(w.begun, workspace=one.path, made=one.attempt.number),
            phase=Phase.FAILED,
        )
        for one in await tools.site.earlier(address, numbers)
    ]
    return [*found, *([w] if await tools.site.is_there(address) else [])]


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
    await tools.workshops.of(state.plan).release_unsettled(state, effect)
    if await tools.site.is_there(address_of(state, w)):
        return item(reasons=("it could not be moved to the trash",))
    return item(was_removed=True)


def trash_items(trash: Path) -> list[TrashItem]:
    """Return the contents of the trash, newest first."""
    items = []
    there = trash.iterdir() if trash.is_dir() else ()
    for folder in (one for one in there if not one.name.startswith(_GOING)):
        label, copies = folder / LABEL, folder / COPIES
        if label.is_file():
            origin, at = from_json(Removed, label.read_text()).workspace.path, label.stat().st_mtime
            items.append(TrashItem(id=folder.name, origin=origin, at=at))
        elif copies.is_file():
            with suppress(WorkspaceError):  # what is unreadable is for whoever opens the folder
                worktree, paths = copied(folder)
                origin = f"edits of {', '.join(paths)} in {worktree}"
                items.append(TrashItem(id=folder.name, origin=origin, at=copies.stat().st_mtime))
    return sorted(items, key=lambda item: item.at, reverse=True)


async def bring_back(repo: Repo | None, trash: Path, name: str) -> str:
    """Restore a workspace to its place, or edits to their files; return the paths.

    Raises:
        WorkspaceError: There is none of that name, or something else is in its place now.
    """
    folder = trash / Path(name).name
    if await anyio.Path(folder / COPIES).is_file():
        back = await anyio.to_thread.run_sync(put_back, folder)
        await anyio.to_thread.run_sync(remove_tree, folder)
        return ", ".join(back)
    if repo is None or not await anyio.Path(folder / LABEL).is_file():
        raise WorkspaceError(
            f"the trash holds nothing called {name!r}", hint="`plait restore` lists what it holds."
        )
    text = await anyio.Path(folder / LABEL).read_text()
    try:
        removed = from_json(Removed, text)
    except StoreError as error:
        raise WorkspaceError(f"{folder / LABEL} cannot be read: {error}") from error
    await restore(repo, removed)
    await anyio.to_thread.run_sync(remove_tree, folder)
    return removed.workspace.path


def _purge(trash: Path, now: float) -> None:
    """Delete what has been in the trash for long enough, and what an earlier purge left."""
    for item in trash_items(trash):
        if now - item.at > KEPT_S:
            # Renamed first: half of it must never look like something that could be restored.
            (trash / item.id).rename(trash / f"{_GOING}{item.id}")
    for folder in trash.glob(f"{_GOING}*"):
        remove_tree(folder)  # the next clean tries again where something stays
