"""Answer about the points in time that workers can be begun again from, and make one now."""

from contextlib import suppress

from engine.errors import WorkspaceError
from engine.messages import commands as c
from engine.messages import merging as m
from engine.messages.results import Moment
from engine.plan.model import IsolationStrategy
from engine.run.alternatives import desk_of
from engine.run.live_run import LiveRun
from engine.run.runs import Runs


async def list_moments(runs: Runs, question: m.ListMoments) -> tuple[Moment, ...]:
    """Return the points in time that a worker can be begun again from, oldest first.

    Raises:
        WorkspaceError: There is no such worker.
    """
    state, found = await runs.seen_worker(question.run, question.worker)
    if state.plan.runtime.isolation is IsolationStrategy.DIRECTORY:
        return ()
    return await desk_of(runs, state).moments(state.run).of(found.id)


async def moments_for(runs: Runs, live: LiveRun, command: c.Command) -> tuple[Moment, ...]:
    """Return the moments that a command may choose from, if it chooses one."""
    if not isinstance(command, c.RetryWorker) or command.at is None:
        return ()
    with suppress(WorkspaceError):  # the name means nobody, or several: told where it is judged
        return await list_moments(runs, m.ListMoments(live.run, command.worker))
    return ()


async def make_checkpoint(runs: Runs, question: m.MakeCheckpoint) -> Moment:
    """Keep a running worker's files as they are now.

    Raises:
        WorkspaceError: There is no such worker, it does not run, or its files have no git.
        SiteGone: They cannot be reached; nor can they where the site is only silent.
    """
    live, found = await runs.worker(question.worker, run=question.run)
    radar = runs.radars.get(live.run)
    if radar is None:
        raise WorkspaceError(
            f"{found.id} works in a plain folder, which has no checkpoints",
            hint="For checkpoints, set `isolation_strategy: worktree`.",
        )
    moment = await radar.checkpoint(found.id)
    runs.note_command(live, "Checkpoint", str(found.id))
    return moment
