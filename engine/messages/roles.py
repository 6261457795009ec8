"""Name the clients of an engine and their roles. The server decides what a role may do."""

from enum import StrEnum

from engine.values import dataclass


class Role(StrEnum):
    """The rights of a client.

    An owner asks and commands. A watcher only asks. An agent is reserved: it may do nothing yet.
    """

    OWNER = "owner"
    WATCHER = "watcher"
    AGENT = "agent"


@dataclass(frozen=True, kw_only=True)
class Speaker:
    """The process that gave a command, as the kernel knows it.

    Attributes:
        pid: Its process id, 0 where nobody looked.
        user: The name of its user.
        terminal: The terminal it belongs to, such as `pts/3`; empty where it has none.
    """

    role: Role = Role.OWNER
    pid: int = 0
    user: str = ""
    terminal: str = ""
