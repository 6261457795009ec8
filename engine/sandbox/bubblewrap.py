"""The highest rung of file isolation: a view carried out by bubblewrap, as the words of its call.

Knows bubblewrap's options and their traps; what is to be seen, and the limits, come from others.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from engine.sandbox import caches, outlet, seccomp
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.request import ConfineRequest, NetworkAccess
from engine.sandbox.view import Access, BindMount, View

_STATUS = ("--json-status-fd", "{status_fd}")
_TMP = Path("/tmp")  # noqa: S108 - the sandbox's own
_VAR_LINKS = (("../run", "/var/run"), ("../run/lock", "/var/lock"), ("/tmp", "/var/tmp"))  # noqa: S108
_MEMORY_FOLDERS_MB = 1024


def words(machine: MachineSupport, request: ConfineRequest, view: View) -> tuple[str, ...]:
    """The wrapper: bubblewrap and its options, to be put before the agent's own words."""
    return (
        machine.bwrap,
        *_STATUS,
        "--die-with-parent",
        *_namespaces(machine, request),
        *_mounts(request, view),
        *_names(machine),
        *_sealed_proc(machine, request),
        *outlet.mounts(request),
        *caches.mounts(machine, request),
        "--remount-ro",
        "/",
        "--chdir",
        str(request.workspace.resolve()),
        "--",
        *_process_limit(machine, request),
        *outlet.inside(machine, request),
    )


def system_calls(machine: MachineSupport) -> bytes:
    """Return the filter of system calls: a pid namespace keeps other processes out of reach.

    A socket to the host of a virtual machine knows no network namespace.
    """
    if not machine.has(Mechanism.SECCOMP):
        return b""
    return seccomp.program(os.uname().machine, "ordinary", is_among_others=False)


def without_keeper(wrapper: tuple[str, ...]) -> tuple[str, ...]:
    """The same words for a program that no keeper starts.

    It stays tied to the thread that starts it, which must wait for it: without that tie, killing
    bubblewrap from outside would leave everything in it alive.
    """
    return tuple(word for word in caches.without_layers(wrapper) if word not in _STATUS)


def _namespaces(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    # Without `--cap-drop ALL` root keeps every capability and remounts what is read-only. The
    # cgroup namespace stays shared: runtimes size their heaps by the limit they read there.
    yield from ("--cap-drop", "ALL", "--unshare-user", "--unshare-pid", "--unshare-ipc")
    yield "--unshare-uts"
    if request.network is not NetworkAccess.OPEN:
        yield "--unshare-net"
    if not request.needs_own_sandbox:
        yield "--disable-userns"
    # A look keeps the user's id: git takes every file of another owner than its index says for
    # changed, reads all of them again and stores what it cannot freshen a second time.
    if machine.uid == 0 and not request.is_read_only:
        yield from ("--uid", "1000", "--gid", "1000")
    if not request.has_terminal:
        yield "--new-session"  # a terminal agent would lose its controlling terminal by it


def _mounts(request: ConfineRequest, view: View) -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    size = str(_memory_folder_bytes(request))
    yield from ("--size", size, "--tmpfs", "/dev/shm")  # noqa: S108 - the sandbox's own
    # `/dev` itself is a folder in memory without a size: nothing is to be put there.
    yield from ("--remount-ro", "/dev")
    if not any(sight.inside == _TMP for sight in view.sights):
        yield from ("--perms", "1777", "--size", size, "--tmpfs", str(_TMP))
    yield from ("--dir", "/run")
    for target, link in _VAR_LINKS:
        yield from ("--symlink", target, link)
    sealed: list[str] = []
    for sight in view.sights:
        yield from _mount(sight, sealed)
    for place in view.links:
        yield from ("--symlink", str(place.readlink()), str(place))
    # What lies in memory only would be lost without a word: better refuse to write there.
    for folder in sealed:
        yield from ("--remount-ro", folder)


def _mount(sight: BindMount, sealed: list[str]) -> Iterator[str]:
    inside, outside = str(sight.inside), str(sight.outside)
    if sight.access is Access.HIDDEN:
        if sight.inside.is_dir() and not sight.inside.is_symlink():
            sealed.append(inside)
            yield from ("--tmpfs", inside)
        elif not sight.inside.is_symlink():
            yield from ("--ro-bind", os.devnull, inside)
    elif sight.inside == sight.outside and sight.inside.is_symlink():
        yield from ("--symlink", str(sight.outside.readlink()), inside)
    else:
        yield from ("--bind" if sight.access is Access.WRITE else "--ro-bind", outside, inside)


def _sealed_proc(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Root may write `/proc/sys` without any capability, and `core_pattern` runs what it names.

    An agent with a sandbox of its own must write its `uid_map`, so for it only the machine's own
    entries are sealed. The kernel then also refuses it a fresh `/proc`, which would be unsealed.
    """
    if machine.uid != 0:
        return
    if not request.needs_own_sandbox:
        yield from ("--remount-ro", "/proc")
        return
    for entry in sorted(Path("/proc").iterdir()):
        is_machines = not entry.name.isdigit() and not entry.is_symlink()
        if is_machines and (entry.is_dir() or entry.stat().st_mode & stat.S_IWUSR):
            yield from ("--ro-bind", str(entry), str(entry))


def _memory_folder_bytes(request: ConfineRequest) -> int:
    """A folder in memory gets half of the memory allowed, and never more than the disk allowed."""
    limits = request.limits
    allowed = [_MEMORY_FOLDERS_MB]
    if limits.memory_mb is not None:
        allowed = [max(limits.memory_mb // 2, 1)]
    if limits.disk_mb is not None:
        allowed.append(limits.disk_mb)
    return min(allowed) << 20


def _names(machine: MachineSupport) -> Iterator[str]:
    """A name for the user id inside: programs ask for it, and some fail when there is none."""
    for source, target in zip(machine.passwd, ("/etc/passwd", "/etc/group"), strict=False):
        yield from ("--ro-bind", source, target)


def _process_limit(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """Set inside, RLIMIT_NPROC counts this sandbox alone; outside, everything of the user's."""
    counted = any("pids" in each.controllers for each in machine.hierarchies)
    limit = request.limits.pids
    if limit is not None and not counted and machine.has(Mechanism.NPROC):
        yield from ("prlimit", f"--nproc={limit}:{limit}", "--")
