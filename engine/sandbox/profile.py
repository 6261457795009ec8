"""The confinement of one attempt, as plain data that a keeper can carry out.

Built by the rungs of this room; carried out by the keeper, which knows no policy.
"""

from engine.limits import Enforcement
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Cgroup:
    """One cgroup made for an attempt: the keeper joins it before the spawn and leaves it after.

    Attributes:
        version: 1, or 2.
        controllers: What it counts and limits (`memory`, `cpu`, `cpuacct`, `pids`, `freezer`); a
            version 2 group without any still has `cgroup.kill` and `cgroup.freeze`.
        path: Its folder.
        is_joined: False for a scope in which the wrapper itself comes to life: the keeper only
            reads it, and it appears after the spawn.
    """

    version: int
    controllers: tuple[str, ...]
    path: str
    is_joined: bool = True


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Everything that stands between an agent and the machine.

    Attributes:
        wrapper: Words put before the agent's own argv (`bwrap …`); `{status_fd}` in a word is
            replaced by the descriptor on which bwrap is to report (`--json-status-fd`).
        landlock_rules: `(path, access)` pairs with access `ro` or `rw`, for the rung below bwrap.
        landlock_is_scoped: No abstract unix sockets and no signals to the outside, by Landlock;
            also given together with a bwrap wrapper, which it does not hinder.
        seccomp: The filter of system calls, as hexadecimal digits; together with the rules and the
            scope these are the arguments of `engine.keeper.landlock.restrict`.
        has_pid_namespace: Ending the wrapper's init ends every process of the attempt.
        rlimits: `(name, value)` hard limits set on the agent, such as `("FSIZE", 1 << 30)`.
        cgroups: Where the kernel counts and limits; removed by whoever made them.
        disk_paths: Folders the attempt may fill: their growth is its use of the disk.
        report: How each dimension holds, and why no better.
    """

    wrapper: tuple[str, ...] = ()
    landlock_rules: tuple[tuple[str, str], ...] = ()
    landlock_is_scoped: bool = False
    seccomp: str = ""
    has_pid_namespace: bool = False
    rlimits: tuple[tuple[str, int], ...] = ()
    cgroups: tuple[Cgroup, ...] = ()
    disk_paths: tuple[str, ...] = ()
    oom_score_adj: int = 500
    report: tuple[Enforcement, ...] = ()
