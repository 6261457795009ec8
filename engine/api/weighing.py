"""Warn before a plan starts: about edits it does not see, and agents nothing confines."""

from collections.abc import Mapping
from os import PathLike, environ, fsencode
from pathlib import Path

from engine.api.looking import machine_rows
from engine.git.base import Base, dirty_paths
from engine.limits import Dimension, Level
from engine.plan.model import PermissionMode, Plan
from engine.review.change import left_out_note
from engine.site.place import Place, find_place


async def weigh(
    folder: str | PathLike[str], plan: Plan, environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return warnings to read before a plan starts in a folder, as sentences; often none.

    Raises:
        WorkspaceError: The folder cannot be worked in.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)
    return (*await _unseen(place, plan), *await _unheld(plan, env))


async def _unseen(place: Place, plan: Plan) -> tuple[str, ...]:
    """Return the user's edits that no worker will see; the plan's own file is none of them."""
    is_from_head = plan.runtime.base in {None, "HEAD"}
    if place.repo is None or not is_from_head:
        return ()
    own = _inside(place.project, Path(plan.source))
    dirty = tuple(path for path in await dirty_paths(place.repo) if path != own)
    return left_out_note(Base(commit="", tree="", left_out=dirty))


def _inside(project: Path, source: Path) -> bytes:
    """Return a file's path in a project, as git says it; empty if it lies elsewhere."""
    path = source.resolve()
    return fsencode(path.relative_to(project)) if path.is_relative_to(project) else b""


async def _unheld(plan: Plan, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return agents that act without asking where nothing keeps them to their own files."""
    free = {
        planned.agent.name
        for step in plan.steps
        for planned in step.workers
        if planned.agent and planned.permissions.mode is PermissionMode.AUTO
    }
    if not free:
        return ()
    rows = {row.dimension: row for row in await machine_rows(env, plan=plan)}
    files = rows[Dimension.FILES]
    if files.level is Level.ENFORCED:
        return ()
    acting = "acts" if len(free) == 1 else "act"
    why = files.reason or f"{files.mechanism} is {files.level}"
    who = f"{', '.join(sorted(free))} {acting} without asking"
    return (f"{who}, and no file isolation is enforced here: {why}",)
