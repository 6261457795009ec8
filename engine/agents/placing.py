"""Writes a launch's files below a worker's HOME, which an agent may have filled with traps.

The engine writes there as the user, outside the sandbox, and the agent of an earlier attempt could
write there too: a link that it left must not lead a write to where the agent itself cannot reach.
"""

from collections.abc import Iterable

from engine.agents.contract import LaunchFile
from engine.beneath import Taken, Why, write_file
from engine.errors import AgentError


def place(home: str, files: Iterable[LaunchFile]) -> None:
    """Write the files; what is in the way of one, a link above all, is put aside and kept.

    Raises:
        AgentError: One of them cannot be written.
    """
    for file in files:
        refused = write_file(
            home, file.path, file.data, mode=file.mode, folder_mode=0o700, taken=Taken.ASIDE
        )
        if refused is not None and refused.why is Why.NO_NAME:
            raise AgentError(f"{file.path!r} is no path below a HOME")
        if refused is not None and not refused.path:
            raise AgentError(f"the HOME {home} cannot be opened: {refused.reason}")
        if refused is not None:
            raise AgentError(
                f"{file.path!r} below the HOME {home} cannot be written: {refused.reason}"
            )
