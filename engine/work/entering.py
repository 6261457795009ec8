"""Let a human into a worker's sandbox: the words, the environment, what to know beforehand.

The program is the human's, not the agent's: it has no limits of its own and is no attempt, but it
sees what the agent sees and may write what the agent may write.
"""

from dataclasses import replace

from engine.core.state import RunState, Worker
from engine.errors import WorkspaceError
from engine.messages.results import Entrance
from engine.phases import Phase
from engine.work.tools import Tools
from engine.work.workplace import workplace

_WORKS_ON = {Phase.PREPARING, Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING}


async def entrance(tools: Tools, state: RunState, w: Worker) -> Entrance:
    """Return how to start a program inside a worker's sandbox.

    Raises:
        WorkspaceError: Its workspace is not there, or nothing would hold the program in.
    """
    at = workplace(state, w.id, role="shell")
    if not await tools.sites.is_there(state, at.address):
        raise WorkspaceError(
            f"{w.id} has no workspace now", hint="Its work, if any, is on its branch."
        )
    is_collected = w.phase not in _WORKS_ON
    found = await tools.sites.of(state, w.id).enter(at, is_collected=is_collected)
    note = "plait has already collected its work: your edits here are not part of its change."
    return replace(found, note=note) if is_collected else found
