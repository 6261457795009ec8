"""Let a human into a worker's sandbox: the words, the environment, what to know beforehand.

The program is the human's, not the agent's: it has no limits of its own and is no attempt, but it
sees what the agent sees and may write what the agent may write.
"""

from collections.abc import Sequence
from functools import partial

import anyio
import anyio.to_thread

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.ids import AttemptId
from engine.messages.results import Entrance
from engine.phases import Phase
from engine.site.shelter import Job
from engine.work.tools import Tools

_WORKS_ON = {Phase.PREPARING, Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING}


async def entrance(tools: Tools, state: RunState, w: Worker) -> Entrance:
    """Return how to start a program inside a worker's sandbox.

    Raises:
        WorkspaceError: Its workspace is not there, or nothing would hold the program in.
    """
    if w.begun.workspace is None or not await anyio.Path(w.begun.workspace).is_dir():
        raise WorkspaceError(
            f"{w.id} has no workspace now", hint="Its work, if there is any, is on its branch."
        )
    job = Job(
        attempt=AttemptId(state.run, w.id, w.attempt.number, role="shell"),
        workspace=w.begun.workspace,
        limits=state.limits_of(w.id),
        git=await tools.workshops.of(state.plan).find_places(state, w),
    )
    enter = partial(tools.starter.shelter.enter, state, job)
    argv, env = await anyio.to_thread.run_sync(enter)
    note = ""
    if w.phase not in _WORKS_ON:
        env = (*env, *(() if tools.starter.shelter.mounts else _git_of(job)))
        note = "Its work was collected already: what you change here is not part of its change."
    folder = str(anyio.Path(w.begun.workspace) / state.plan.workspace.cwd)
    return Entrance(argv=argv, env=dict(env), folder=folder, note=note)


def _git_of(job: Job) -> Sequence[tuple[str, str]]:
    """Return the variables git needs if the workspace's `.git` leads out of the sandbox."""
    git = job.git
    if git is None or git.private.is_relative_to(job.workspace):
        return ()
    return (("GIT_DIR", str(git.private)), ("GIT_WORK_TREE", job.workspace))
