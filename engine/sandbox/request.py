"""One attempt's demands on its sandbox, as plain data: its folders, its openings, its limits.

Knows no mechanism: the same request is answered by every rung of the ladder.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from engine.limits import Limits
from engine.values import dataclass

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


class NetworkAccess(StrEnum):
    """The network that an attempt may reach."""

    OPEN = "open"
    NONE = "none"
    ALLOW_LIST = "allow-list"


@dataclass(frozen=True, kw_only=True)
class SandboxHoles:
    """The openings that the user makes on purpose; every one is reported.

    Attributes:
        env: Names of variables passed on, `*` at the end of a name allowed.
        paths: Files and folders to be seen, read-only; `:rw` at the end lets them be written. What
            lies below the real home is shown in the worker's home too.
        docker: The Docker socket: whoever has it reaches every file through the daemon.
        ssh_agent: The user's ssh agent.
    """

    env: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    docker: bool = False
    ssh_agent: bool = False


@dataclass(frozen=True, kw_only=True)
class ConfineRequest:
    """The needs of one attempt; all paths are absolute and exist.

    Attributes:
        name: Unique among living attempts; names its cgroups.
        workspace: Its working tree.
        home: Its HOME.
        temp: A folder for temporary files; without one they lie in memory, in a tmpfs of a size.
        cache_dir: A folder of the worker's that it does not see: what it adds to the user's package
            caches is kept there. Without one it has its own caches alone, in its HOME.
        private_clone: Its own git directory.
        git_file: A file bound read-only over the workspace's `.git`; it names the private clone.
        git_objects: The object folders that the private clone borrows from.
        hide: What must not be seen although a folder that is shown contains it.
        read_only: More that is to be seen.
        writable: More that may be written.
        env: The user's own environment, from which PATH and toolchains are read.
        has_terminal: The agent runs on a terminal of its own.
        needs_own_sandbox: The agent makes user namespaces of its own, which nothing turns off.
        is_read_only: Workspace and private clone may only be read: for git commands that look.
        allowed_hosts: With an allow-list, `host` (for the web's ports) or `host:port`, `*.host` for
            all below it.
        served_port: A port of the loopback at which this machine is to reach the program.
        way_dir: With an allow-list, or a port in a closed network, a folder of the attempt's that
            it does not see: the helpers put their sockets there, and `egress.log`, a line of JSON
            for each decision about a host.
    """

    name: str
    workspace: Path
    home: Path
    temp: Path | None = None
    cache_dir: Path | None = None
    private_clone: Path | None = None
    git_file: Path | None = None
    git_objects: tuple[Path, ...] = ()
    hide: tuple[Path, ...] = ()
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    holes: SandboxHoles = field(default_factory=SandboxHoles)
    network: NetworkAccess = NetworkAccess.OPEN
    allowed_hosts: tuple[str, ...] = ()
    served_port: int | None = None
    way_dir: Path | None = None
    limits: Limits = field(default_factory=Limits)
    has_terminal: bool = False
    needs_own_sandbox: bool = False
    is_read_only: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"not a name for a cgroup: {self.name!r}")
        if self.network is NetworkAccess.ALLOW_LIST and self.way_dir is None:
            raise ValueError("an allow-list needs a folder for its proxy")
        is_closed = self.network is not NetworkAccess.OPEN
        if self.served_port is not None and is_closed and self.way_dir is None:
            raise ValueError("a port in a closed network needs a folder for its helper")
        for path in (self.workspace, self.home, *self.git_objects, *self.hide, *self.read_only):
            if not path.is_absolute():
                raise ValueError(f"not an absolute path: {path}")
