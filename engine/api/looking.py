"""Answer without an engine: the machine, samples, raw recordings, warnings before a plan."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from os import PathLike, environ, fsencode
from pathlib import Path

import anyio
import anyio.to_thread

from engine.agents.registry import adapters, bare_request
from engine.api.plans import runtime_in
from engine.api.reaching import reach
from engine.clock import SystemClock
from engine.errors import AgentError, PlanError, WorkspaceError
from engine.git.base import WORKTREE, Base, dirty_paths
from engine.git.objects import commit_of
from engine.git.parcel import check_carried
from engine.git.sparse import check_folders
from engine.ids import AttemptId, RunId, WorkerId, meant
from engine.limits import Dimension, Enforcement, Level
from engine.messages.questions import ReadRun
from engine.messages.results import LoginUse
from engine.plan.model import AgentChoice, PermissionMode, Plan, Runtime
from engine.review.change import left_out_note
from engine.sandbox.ladder import report
from engine.sandbox.probe import probe
from engine.site.gate import check_client
from engine.site.place import Place, find_place
from engine.site.shelter import asked_by
from engine.site.sites import LOCAL
from engine.spec.nearest import unmeant
from engine.store.layout import make_state_home, state_home
from engine.work.ledger import Ledger
from engine.work.replay import output_bytes


async def machine_rows(
    environment: Mapping[str, str] | None = None,
    *,
    plan: Plan | None = None,
    folder: Path | None = None,
) -> tuple[Enforcement, ...]:
    """Return how each dimension holds for a run here, one row each, with how to get more.

    Args:
        environment: Of the user; this process's own where it is not given.
        plan: Whose openings and network count.
        folder: Whose `plait.yaml` counts where there is no plan; without one, what is the default.
    """
    env = dict(environ if environment is None else environment)
    home = await anyio.to_thread.run_sync(make_state_home, env)
    machine = await anyio.to_thread.run_sync(probe, env, home / "machine")

    def told() -> tuple[Enforcement, ...]:
        runtime = plan.runtime if plan else runtime_in(folder) if folder else Runtime()
        return report(machine, asked_by(runtime, env), {})

    rows = await anyio.to_thread.run_sync(told)
    return tuple(replace(row, value="") for row in rows)


async def used_today(environment: Mapping[str, str] | None = None) -> Mapping[str, LoginUse]:
    """Return today's usage of each agent's login over all runs and engines, by agent name."""
    env = dict(environ if environment is None else environment)
    known = await anyio.to_thread.run_sync(adapters)
    choices = [
        choice for name in known if (choice := AgentChoice(name=name, adapter=name)).has_vendor
    ]
    folder = state_home(env) / "logins"
    ledger = Ledger(env, folder=folder, place=Path(), clock=SystemClock())
    await ledger.share(choices)
    return {choice.name: ledger.use(choice) for choice in choices}


async def raw_output(
    folder: str | PathLike[str], run: str, worker: str, attempt: int | None = None
) -> bytes:
    """Return what an attempt wrote, byte for byte, from its recording.

    Raises:
        StoreError: There is no such run.
        WorkspaceError: It has no such worker, or that no such attempt.
    """
    env = dict(environ)
    place = await find_place(Path(folder), env)
    async with reach(folder, environment=env) as (port, _):
        view = await port.ask(ReadRun(run))
    views = {WorkerId.parse(w.worker): w for w in view.workers}
    found = meant({name: w.label for name, w in views.items()}, worker)
    if len(found) != 1:
        reason, hint = unmeant(worker, found, views)
        raise WorkspaceError(reason, hint=hint)
    latest = views[found[0]].attempt
    if not 0 <= (number := attempt or latest) <= latest:
        raise WorkspaceError(f"{found[0]} has no attempt {attempt}")
    wanted = AttemptId(RunId(view.run), found[0], number)
    return await anyio.to_thread.run_sync(output_bytes, place.layout.recording(wanted))


async def check_sparse_checkouts(
    folder: str | PathLike[str],
    plans: Sequence[Plan],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Refuse plans whose worktrees are to hold folders that the base of a run does not have.

    Raises:
        PlanError: The first such folder.
        WorkspaceError: The folder cannot be worked in.
    """
    wanted = {
        (plan.runtime.base or "HEAD", plan.sparse_checkout_of(step.name))
        for plan in plans
        for step in plan.steps
    }
    named = sorted(one for one in wanted if one[1] and one[0] != WORKTREE)
    if not named:
        return
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    if place.repo is None:
        raise PlanError("sparse_checkout: only worktrees of a git repository can be sparse")
    for base, folders in named:
        try:
            await check_folders(place.repo, await commit_of(place.repo, base), folders)
        except WorkspaceError as error:
            raise PlanError(str(error), hint=error.hint) from error


async def check_sites(
    folder: str | PathLike[str],
    plans: Sequence[Plan],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Refuse plans whose workers could not live in the sites they choose, on the HEAD of a folder.

    Raises:
        PlanError: The first reason.
        WorkspaceError: The folder cannot be worked in.
    """
    if all(plan.site_of(step.name) in {"", LOCAL} for plan in plans for step in plan.steps):
        return
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    if place.repo is None:
        raise PlanError("runtime.sites: only workers of a git repository can run elsewhere")
    try:
        if any(plan.clusters_used for plan in plans):
            check_client(environ if environment is None else environment)
        await check_carried(place.repo, "HEAD")
    except WorkspaceError as error:
        raise PlanError(f"runtime.sites: {error}", hint=error.hint) from error


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


async def settings_told(
    folder: str | PathLike[str], plan: Plan, environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return which settings of the user's own each agent of a plan gets, as lines.

    Raises:
        WorkspaceError: The folder cannot be worked in.
    """
    env = dict(environ if environment is None else environment)
    place = await find_place(Path(folder), env)

    def look() -> tuple[str, ...]:
        lines: list[str] = []
        for choice in plan.agents:
            about = {"folder": str(place.project), "is_confined": True}
            request = bare_request(choice, plan.runtime, env, **about)
            with suppress(AgentError):  # the start itself says why it is refused
                told = adapters()[choice.adapter].launch(request).settings.lines
                lines += [f"{choice.name}: {line}" for line in told]
        return tuple(dict.fromkeys(lines))

    return await anyio.to_thread.run_sync(look)


async def _unseen(place: Place, plan: Plan) -> tuple[str, ...]:
    """Return the user's edits that no worker will see; the plan's own file is none of them."""
    is_from_head = plan.runtime.base in {None, "HEAD"}
    if place.repo is None or not is_from_head:
        return ()
    own = await anyio.to_thread.run_sync(_inside, place.project, Path(plan.source))
    dirty = tuple(path for path in await dirty_paths(place.repo) if path != own)
    return left_out_note(Base(commit="", tree="", left_out=dirty))


def _inside(project: Path, source: Path) -> bytes:
    """Return a file's path in a project, as git says it; empty if it lies elsewhere."""
    path = source.resolve()
    return fsencode(path.relative_to(project)) if path.is_relative_to(project) else b""


async def _unheld(plan: Plan, env: Mapping[str, str]) -> tuple[str, ...]:
    """Warn if this machine does not keep agents that decide for themselves from other files."""
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
    why = files.reason or f"{files.mechanism} is {files.level}"
    who = ", ".join(sorted(free))
    return (f"this machine does not fully isolate your files from {who}: {why}",)
