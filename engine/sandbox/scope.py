"""A scope of the user's systemd around one attempt: cgroup limits for who may not make cgroups.

Knows `systemd-run` and `systemctl`. On version 1 hierarchies systemd takes the limits of a user's
scope without a word and does nothing, so the probe reads them back from inside one.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.limits import Limits
from engine.sandbox.cgroups import PREFIX, CgroupRefused
from engine.sandbox.machine import Hierarchy, Mechanism, MechanismFinding
from engine.sandbox.profile import Cgroup

_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_TIMEOUT_S = 5.0
_TRIAL = Limits(memory_mb=64, cpu_percent=50, pids=16)
_READ_BACK = (
    'g=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); echo "$g"; '
    'cat "$g/memory.max" "$g/cpu.max" "$g/pids.max"'
)
_EXPECTED = [str(64 << 20), "50000 100000", "16"]
_FIX = "Log in through systemd with cgroup version 2, so that `systemd-run --user --scope` works."


def bus(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which `systemd-run --user` finds its manager."""
    found = {name: env[name] for name in _BUS if name in env}
    found.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    return found


def words(name: str, limits: Limits, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words before a wrapper that start it in a scope of its own.

    The variables that lead to the user's manager are taken away again before the agent.
    """
    pairs = [f"{key}={value}" for key, value in bus(env).items()]
    forget = [word for key in _BUS for word in ("-u", key)]
    run = ("systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={PREFIX}{name}")
    properties = [f"--property={each}" for each in _properties(limits)]
    return ("env", *pairs, *run, *properties, "--", "env", *forget)


def group(place: Hierarchy, name: str) -> Cgroup:
    """The cgroup in which the scope of that name will appear."""
    path = Path(place.parent, f"{PREFIX}{name}.scope")
    return Cgroup(version=2, controllers=place.controllers, path=str(path), is_joined=False)


def limit(name: str, limits: Limits, env: Mapping[str, str]) -> None:
    """Change the limits of a living scope.

    Raises:
        CgroupRefused: systemd did not agree, or did not answer.
    """
    unit, properties = f"{PREFIX}{name}.scope", tuple(_properties(limits))
    try:
        subprocess.run(
            ["systemctl", "--user", "set-property", "--runtime", unit, *properties],
            env={"PATH": env.get("PATH", os.defpath), **bus(env)},
            check=True,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
    except subprocess.CalledProcessError as problem:
        raise CgroupRefused(unit, " ".join(properties), problem.stderr.strip()) from problem
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CgroupRefused(unit, " ".join(properties), str(problem)) from problem


def probe_scope(env: Mapping[str, str]) -> tuple[MechanismFinding, Hierarchy | None]:
    """Probe if a scope of the user's takes limits, read from inside one."""
    argv = [*words(f"probe-{os.getpid()}", _TRIAL, env), "sh", "-c", _READ_BACK]
    try:
        done = subprocess.run(
            argv,
            env={"PATH": env.get("PATH", os.defpath)},
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return _missing(str(problem)), None
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        return _missing(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""), None
    if lines[1:] != _EXPECTED:
        return _missing(f"the limits of a scope read {lines[1:]}, not {_EXPECTED}"), None
    place = Hierarchy(
        mechanism=Mechanism.SYSTEMD,
        version=2,
        controllers=("memory", "cpu", "pids"),
        parent=str(Path(lines[0]).parent),
    )
    return MechanismFinding(mechanism=Mechanism.SYSTEMD, works=True, detail=place.parent), place


def _missing(reason: str) -> MechanismFinding:
    return MechanismFinding(mechanism=Mechanism.SYSTEMD, works=False, reason=reason, fix=_FIX)


def _properties(limits: Limits) -> Iterator[str]:
    memory = "infinity" if limits.memory_mb is None else f"{limits.memory_mb}M"
    yield f"MemoryMax={memory}"
    yield f"MemorySwapMax={'infinity' if limits.memory_mb is None else 0}"
    yield f"CPUQuota={'' if limits.cpu_percent is None else f'{limits.cpu_percent}%'}"
    yield f"TasksMax={'infinity' if limits.pids is None else limits.pids}"
