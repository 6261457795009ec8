"""The facts about this machine, as plain data that can be kept for as long as it runs.

Knows which mechanisms there are and what forcing one off means; finding out is `probe`'s work.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from typing import Any, Self

from engine.errors import MechanismMissing
from engine.values import dataclass


class Mechanism(StrEnum):
    """Everything that can hold an attempt; the values are what PLAIT_FORCE_OFF understands."""

    BWRAP = "bwrap"
    OVERLAY = "overlay"
    LANDLOCK = "landlock"
    NETWORK_NAMESPACE = "netns"
    SECCOMP = "seccomp"
    CGROUP2 = "cgroup2"
    SYSTEMD = "systemd"
    CGROUP1 = "cgroup1"
    CGROUP_KILL = "cgroup-kill"
    NPROC = "nproc"
    SAMPLING = "sampling"


@dataclass(frozen=True, kw_only=True)
class MechanismFinding:
    """The result of trying one mechanism.

    Attributes:
        detail: What was read back, such as a version.
        reason: Why it does not work, in the words of whoever refused.
        fix: What to do about it.
    """

    mechanism: Mechanism
    works: bool
    detail: str = ""
    reason: str = ""
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    """A place where cgroups of ours can be made; `controllers` were tried one by one."""

    mechanism: Mechanism
    version: int
    controllers: tuple[str, ...]
    parent: str


@dataclass(frozen=True, kw_only=True)
class MachineSupport:
    """The mechanisms that this machine can enforce for this user.

    Attributes:
        identity: Kernel, boot, user and tools: what is cached holds while this stays the same.
        hierarchies: Where cgroups can be made, best first.
        root_only: As root, paths that other users may not read, which must be hidden by hand.
        bwrap: Path of bubblewrap.
        python: The words that start the interpreter for the launchers.
        python_home: Where that is installed.
        launcher: The Landlock launcher; the other one, `egress.py`, lies beside it.
        passwd: Files bound over `/etc/passwd` and `/etc/group`, for a user id without a name.
        filter_file: The filter of system calls for a program that no keeper starts.
        demanded: The rung of file isolation that PLAIT_SANDBOX insists on.
        forced_off: What PLAIT_SANDBOX and PLAIT_FORCE_OFF forbid.
    """

    identity: str
    uid: int
    findings: tuple[MechanismFinding, ...]
    hierarchies: tuple[Hierarchy, ...] = ()
    root_only: tuple[str, ...] = ()
    bwrap: str = "bwrap"
    python: tuple[str, ...] = ()
    python_home: str = ""
    launcher: str = ""
    passwd: tuple[str, ...] = ()
    filter_file: str = ""
    landlock_abi: int = 0
    demanded: str = ""
    forced_off: tuple[str, ...] = ()

    def finding(self, mechanism: Mechanism) -> MechanismFinding:
        """Return the finding about one mechanism."""
        for each in self.findings:
            if each.mechanism is mechanism:
                return each
        return MechanismFinding(mechanism=mechanism, works=False, reason="plait did not probe it")

    def has(self, mechanism: Mechanism) -> bool:
        """Say if a mechanism works here and is not forced off."""
        return self.finding(mechanism).works

    def to_json(self) -> dict[str, Any]:
        """The same as values that JSON knows."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave.

        Raises:
            KeyError, TypeError, ValueError: It was written by another version.
        """
        known: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in dict(data).items()
        }
        known["findings"] = tuple(
            MechanismFinding(**{**each, "mechanism": Mechanism(each["mechanism"])})
            for each in data["findings"]
        )
        known["hierarchies"] = tuple(
            Hierarchy(
                mechanism=Mechanism(each["mechanism"]),
                version=each["version"],
                controllers=tuple(each["controllers"]),
                parent=each["parent"],
            )
            for each in data["hierarchies"]
        )
        return cls(**known)


_RUNGS = ("bwrap", "landlock", "none")


def forced(machine: MachineSupport, env: Mapping[str, str]) -> MachineSupport:
    """The machine as PLAIT_SANDBOX and PLAIT_FORCE_OFF want it to be seen.

    Raises:
        MechanismMissing: One of them names something that does not exist.
    """
    demanded = env.get("PLAIT_SANDBOX", "")
    if demanded and demanded not in _RUNGS:
        raise MechanismMissing(
            dimension="files",
            wanted=f"PLAIT_SANDBOX={demanded}",
            found="no such value",
            fix=f"Possible values of PLAIT_SANDBOX: {', '.join(_RUNGS)}.",
        )
    # The rungs above the one demanded go. Below bwrap Landlock stays: it also closes sockets.
    above = _RUNGS[: _RUNGS.index(demanded)] if demanded else ()
    reasons = {Mechanism(rung): ("PLAIT_SANDBOX", demanded) for rung in above}
    reasons.update(_forced_off(env.get("PLAIT_FORCE_OFF", "")))
    findings = tuple(
        _off(each, *reasons[each.mechanism]) if each.mechanism in reasons else each
        for each in machine.findings
    )
    return replace(
        machine,
        findings=findings,
        hierarchies=tuple(each for each in machine.hierarchies if each.mechanism not in reasons),
        demanded=demanded,
        forced_off=tuple(sorted(reasons)),
    )


def _off(finding: MechanismFinding, variable: str, value: str) -> MechanismFinding:
    reason, fix = f"forced off by {variable}={value}", f"Unset {variable}."
    return replace(finding, works=False, reason=reason, fix=fix)


def _forced_off(text: str) -> dict[Mechanism, tuple[str, str]]:
    reasons: dict[Mechanism, tuple[str, str]] = {}
    for word in filter(None, (each.strip() for each in text.split(","))):
        if word not in list(Mechanism):
            raise MechanismMissing(
                dimension="sandbox",
                wanted=f"PLAIT_FORCE_OFF={text}",
                found=f"there is no mechanism {word!r}",
                fix=f"PLAIT_FORCE_OFF can name {', '.join(Mechanism)}.",
            )
        reasons[Mechanism(word)] = "PLAIT_FORCE_OFF", text
    return reasons
