"""The second rung of file isolation: a view carried out by Landlock, as paths and their access.

Landlock only allows: what must be hidden below a folder that is shown is left out by allowing the
folder's other entries one by one. Nothing can lie over anything, so a `.git` file cannot be sealed.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.sandbox import seccomp
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.profile import Profile
from engine.sandbox.request import ConfineRequest, NetworkAccess
from engine.sandbox.view import Access, View

_DEVICES = tuple(
    Path("/dev", name)
    for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
)
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the machine's own
"""Named semaphores, and with them Python's `multiprocessing`, work nowhere else. It is one folder
for all of the user's processes, so its growth counts as the attempt's use of the disk."""
_SCOPE_ABI = 6


def rules(view: View) -> tuple[tuple[str, str], ...]:
    """The paths an attempt may use, for `Profile.landlock_rules`."""
    hidden = [sight.inside for sight in view.sights if sight.access is Access.HIDDEN]
    found: dict[str, str] = {}
    for sight in view.sights:
        # What is seen under another name than its own cannot be had without mounts.
        if sight.access is not Access.HIDDEN and sight.inside == sight.outside:
            for path in _without(sight.inside, hidden, view):
                found[str(path)] = sight.access.value
    found["/proc"] = Access.READ.value
    devices = (*_DEVICES, SHARED_MEMORY)
    found.update({str(path): Access.WRITE.value for path in devices if path.exists()})
    return tuple(found.items())


def is_scoped(machine: MachineSupport) -> bool:
    """Say if this kernel can also close abstract sockets and signals to the outside."""
    return machine.landlock_abi >= _SCOPE_ABI


def sockets(machine: MachineSupport, request: ConfineRequest) -> str:
    """Return which sockets may be made: unix ones lead to the user's daemons."""
    if not machine.has(Mechanism.SECCOMP):
        return "all"
    if request.network is NetworkAccess.NONE:
        return "none"
    return "ordinary" if request.holes.docker or request.holes.ssh_agent else "network"


def system_calls(machine: MachineSupport, request: ConfineRequest) -> str:
    """Return the filter of system calls, for `Profile.seccomp`."""
    families = sockets(machine, request)
    if families == "all":
        return ""
    return seccomp.program(os.uname().machine, families, is_among_others=True).hex()


def launcher(machine: MachineSupport, profile: Profile) -> tuple[str, ...]:
    """Words that put the fence of a profile before a program that no keeper starts."""
    scoped = ("--scoped",) if profile.landlock_is_scoped else ()
    flags = (*scoped, f"--seccomp={profile.seccomp}")
    pairs = [word for path, access in profile.landlock_rules for word in (access, path)]
    return (*machine.python, machine.launcher, "run", *flags, *pairs, "--")


def _without(folder: Path, hidden: Iterable[Path], view: View) -> Iterator[Path]:
    """A folder, or what is left of it when parts of it are to be hidden."""
    inner = [path for path in hidden if folder in path.parents]
    if not inner:
        yield folder
        return
    shown = {sight.inside for sight in view.sights if sight.access is not Access.HIDDEN}
    with os.scandir(folder) as entries:
        below = [Path(entry.path) for entry in entries]
    for path in below:
        if path not in inner and path not in shown:
            yield from _without(path, inner, view)
