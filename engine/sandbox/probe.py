"""Finds out what this machine can enforce, by doing it and looking at what came of it.

Takes under a second, once: a private folder keeps the findings until the next boot, another kernel,
user or bubblewrap. A mechanism that is there and fails is tried again each time: the user may have
followed the advice, or the machine was short of something for a moment. A bubblewrap that is not
installed needs no second trial, because installing it changes the identity of the machine.
"""

import hashlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from engine.private import tightened
from engine.sandbox import bubblewrap, seccomp
from engine.sandbox.cgroups import sweep
from engine.sandbox.machine import MachineSupport, Mechanism, MechanismFinding, forced
from engine.sandbox.probe_cgroups import mounts, probe_cgroups
from engine.sandbox.request import NetworkAccess
from engine.sandbox.scope import probe_scope
from engine.sandbox.trials import SYSCTLS, Trial, find_bwrap, run, sysctl
from engine.system import IS_PORTABLE

_LAUNCHER = Path(__file__).parents[1] / "keeper" / "landlock.py"
_SANDBOX_ID = 1000
_PASSWD = Path("/etc/passwd")
_GROUP = Path("/etc/group")
_LINUX = Path("/proc/self/mountinfo")
_ELSEWHERE = (
    "this is not Linux",
    "Run plait on Linux (a virtual machine is enough) to have its agents confined.",
)


def probe(env: Mapping[str, str], cache_dir: Path) -> MachineSupport:
    """Probe what this machine can enforce, as PLAIT_SANDBOX and PLAIT_FORCE_OFF want it seen.

    Args:
        env: The user's environment.
        cache_dir: A folder for this user alone (it is made so), never shown to an attempt.

    Raises:
        MechanismMissing: One of the two variables names something that does not exist.
    """
    if IS_PORTABLE or not _LINUX.exists():
        return forced(_elsewhere(), env)
    tightened(cache_dir)
    identity = _identity(env)
    file = cache_dir / "machine.json"
    machine = _remembered(file, identity)
    if machine is None:
        machine = _probed(env, cache_dir.resolve(), identity)
        _remember(file, machine)
    sweep(machine.hierarchies)
    return forced(machine, env)


def _remembered(file: Path, identity: str) -> MachineSupport | None:
    try:
        machine = MachineSupport.from_json(json.loads(file.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    kept = (*machine.passwd, *filter(None, (machine.filter_file,)))
    is_whole = all(Path(each).is_file() for each in kept)
    return machine if machine.identity == identity and is_whole else None


def _remember(file: Path, machine: MachineSupport) -> None:
    has_bwrap = machine.has(Mechanism.BWRAP) and machine.has(Mechanism.NETWORK_NAMESPACE)
    has_landlock = machine.has(Mechanism.LANDLOCK) or not machine.landlock_abi
    is_bwrap_missing = not Path(machine.bwrap).is_absolute()
    if has_bwrap or (is_bwrap_missing and has_landlock):
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(machine.to_json()))
        fresh.replace(file)


def _identity(env: Mapping[str, str]) -> str:
    """Changes whenever something changes that a probe could have seen."""
    bwrap = find_bwrap(env)
    parts = (
        *Mechanism,
        Path("/proc/sys/kernel/random/boot_id").read_text(),
        os.uname().release,
        os.getuid(),
        [str(mount) for mount in mounts()],
        (bwrap, Path(bwrap).stat().st_mtime_ns) if bwrap else "",
        [sysctl(name) for name in SYSCTLS],
        (_LAUNCHER, os.path.realpath(sys.executable), sys.base_prefix),
        Path(seccomp.__file__).stat().st_mtime_ns,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _elsewhere() -> MachineSupport:
    """Return the support of a system without the kernel that all of this is about."""
    reason, fix = _ELSEWHERE
    missing = [each for each in Mechanism if each is not Mechanism.SAMPLING]
    return MachineSupport(
        identity="",
        uid=os.getuid(),
        findings=(
            *(
                MechanismFinding(mechanism=each, works=False, reason=reason, fix=fix)
                for each in missing
            ),
            MechanismFinding(mechanism=Mechanism.SAMPLING, works=True),
        ),
    )


def _probed(env: Mapping[str, str], cache_dir: Path, identity: str) -> MachineSupport:
    found, places = probe_cgroups()
    scope, scope_place = probe_scope(env)
    is_root = os.getuid() == 0
    bare = MachineSupport(
        identity=identity,
        uid=os.getuid(),
        findings=(*found, scope, MechanismFinding(mechanism=Mechanism.SAMPLING, works=True)),
        hierarchies=(*places, *((scope_place,) if scope_place else ())),
        root_only=tuple(_root_only()) if is_root else (),
        bwrap=find_bwrap(env) or "bwrap",
        python=(os.path.realpath(sys.executable), "-I", "-S"),
        python_home=sys.base_prefix,
        launcher=str(_LAUNCHER),
        passwd=_named_ids(cache_dir) if is_root else (),
    )
    version = run((*bare.python, bare.launcher, "abi"), env)
    said = version.stdout.strip() if version is not None else ""
    bare = replace(bare, landlock_abi=int(said) if said.isdigit() else 0)
    with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
        trial = Trial(bare, env, Path(folder))
        findings = (
            trial.bwrap(NetworkAccess.OPEN),
            trial.bwrap(NetworkAccess.NONE),
            trial.overlay(),
            trial.landlock(),
            trial.seccomp(),
            trial.nproc(),
        )
    return _with_filter(replace(bare, findings=(*findings, *bare.findings)), cache_dir)


def _with_filter(machine: MachineSupport, cache_dir: Path) -> MachineSupport:
    """Write the filter of system calls where a program without a keeper finds it."""
    code = bubblewrap.system_calls(machine)
    if not code:
        return machine
    file = cache_dir / "seccomp"
    file.write_bytes(code)
    return replace(machine, filter_file=str(file))


def _root_only() -> Iterator[str]:
    """Return what only root may read: as root, a sandbox does not hide it by itself."""
    for top, depth in (("/etc", 3), ("/var/lib", 1), ("/opt", 1)):
        yield from _unreadable(Path(top), depth)


def _unreadable(folder: Path, depth: int) -> Iterator[str]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        mode = entry.lstat().st_mode
        if stat.S_ISDIR(mode):
            if not mode & stat.S_IROTH:
                yield str(entry)
            elif depth > 1:
                yield from _unreadable(entry, depth - 1)
        elif stat.S_ISREG(mode) and not mode & stat.S_IROTH:
            yield str(entry)


def _named_ids(cache_dir: Path) -> tuple[str, ...]:
    """Copies of passwd and group in which the user id of the sandbox has a name."""
    names = (
        (_PASSWD, f"agent:x:{_SANDBOX_ID}:{_SANDBOX_ID}:agent:/:/bin/sh"),
        (_GROUP, f"agent:x:{_SANDBOX_ID}:"),
    )
    made = []
    for source, line in names:
        text = source.read_text(errors="replace") if source.exists() else ""
        if not any(entry.split(":")[2:3] == [str(_SANDBOX_ID)] for entry in text.splitlines()):
            text = f"{text.rstrip()}\n{line}\n".lstrip()
        target = cache_dir / source.name
        target.write_text(text)
        made.append(str(target))
    return tuple(made)
