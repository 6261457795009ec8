"""The request to a keeper: the host's `AttemptSpec` after its way through JSON."""

from __future__ import annotations

from engine.keeper import proc, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CgroupPath:
    """One cgroup of the attempt: its version, the controllers at work in it, its folder."""

    __slots__ = ("controllers", "is_joined", "path", "version")

    def __init__(self, content: dict[str, Any]) -> None:
        self.version: int = content["version"]
        self.controllers: list[str] = content["controllers"]
        self.path: str = content["path"]
        self.is_joined: bool = content["is_joined"]


class Request:
    """One attempt to run; field by field what `AttemptSpec` and `Profile` say."""

    def __init__(self, content: dict[str, Any]) -> None:
        profile = content["profile"]
        self.attempt: str = content["attempt"]
        self.directory: str = content["directory"]
        self.argv: list[str] = content["argv"]
        self.cwd: str = content["cwd"]
        self.mark: str = content["mark"]
        self.env: dict[str, str] = {**dict(content["env"]), proc.MARK: self.mark}
        self.first_input: bytes = wire.as_bytes(content["first_input"])
        self.keeps_stdin: bool = content["keeps_stdin"]
        self.terminal: list[int] | None = content["terminal"]
        self.limits: dict[str, float | None] = content["limits"]
        self.kinds: dict[str, dict[str, Any]] = content["kinds"]
        self.grace_s: float = content["grace_s"]
        self.is_held: bool = content["is_held"]
        self.is_tethered: bool = content["is_tethered"]
        self.wrapper: list[str] = profile["wrapper"]
        self.landlock_rules: list[tuple[str, str]] = profile["landlock_rules"]
        self.landlock_is_scoped: bool = profile["landlock_is_scoped"]
        self.seccomp: bytes = bytes.fromhex(profile["seccomp"])
        self.has_pid_namespace: bool = profile["has_pid_namespace"]
        self.rlimits: list[tuple[str, int]] = profile["rlimits"]
        self.is_fenced = bool(self.landlock_rules or self.landlock_is_scoped or self.seccomp)
        self.cgroups = [CgroupPath(each) for each in profile["cgroups"]]
        self.disk_paths: list[str] = profile["disk_paths"] or [self.cwd]
        self.oom_score_adj: int = profile["oom_score_adj"]
