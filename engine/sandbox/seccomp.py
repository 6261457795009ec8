"""The filter of system calls that stands around an attempt, as a program for the kernel.

Landlock and namespaces leave gaps, and this filter closes them. Every sandbox loses the calls that
no namespace parts (keyrings, rings, kernel programs, tracing by performance counters) and every
family of sockets that it is not to use. A sandbox that shares the machine's process ids (Landlock)
also loses the calls that change another process: its limits, its priority, its processors.

This module knows numbers and builds bytes; the keeper and bubblewrap load them.
"""

import errno
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from engine.errors import MechanismMissing
from engine.limits import Dimension
from engine.values import dataclass

_ALLOW = 0x7FFF0000
_ANSWER = 0x00050000
_ENDS = {
    "refuse": _ANSWER | errno.EACCES,
    "deny": _ANSWER | errno.EPERM,
    "unknown": _ANSWER | errno.ENOSYS,
    "allow": _ALLOW,
}
"""The ends of a call. Programs have a fallback for a call that the kernel does not know."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_AT_NUMBER, _AT_ARCHITECTURE = 0, 4
_X32 = 0x40000000
_LONGEST_JUMP = 255


class _Interface(NamedTuple):
    """The kernel interface of one kind of program: the kernel's name for it, and its numbers."""

    architecture: int
    numbers: dict[str, int]


_SINCE_2019 = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "process_mrelease": 448,
}
"""New calls have the same number everywhere."""
_NAMES = (
    *("socket", "ioctl", "add_key", "request_key", "keyctl", "bpf", "perf_event_open"),
    *("userfaultfd", "open_by_handle_at", "prlimit64", "sched_setaffinity"),
    *("sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority", "ioprio_set"),
    *("process_vm_readv", "process_vm_writev", "kcmp", "migrate_pages", "move_pages"),
)


def _interface(architecture: int, *numbers: int, **more: int) -> _Interface:
    named = dict(zip(_NAMES, numbers, strict=True))
    return _Interface(architecture, {**named, **_SINCE_2019, **more})


_X86_64 = _interface(
    0xC000003E,
    *(41, 16, 248, 249, 250, 321, 298, 323, 304, 302, 203, 144, 142, 314, 141, 251),
    *(310, 311, 312, 256, 279),
)
_I386 = _interface(
    0x40000003,
    *(359, 54, 286, 287, 288, 357, 336, 374, 342, 340, 241, 156, 154, 351, 97, 289),
    *(347, 348, 349, 294, 317),
    socketcall=102,
)
_GENERIC = (
    *(198, 29, 217, 218, 219, 280, 241, 282, 265, 261, 122, 119, 118, 274, 140, 30),
    *(270, 271, 272, 238, 239),
)
_ARM = _interface(
    0x40000028,
    *(281, 54, 309, 310, 311, 386, 364, 388, 371, 369, 241, 156, 154, 380, 97, 314),
    *(376, 377, 378, 400, 344),
    socketcall=102,
)
_MACHINES: dict[str, tuple[_Interface, _Interface | None]] = {
    "x86_64": (_X86_64, _I386),
    "aarch64": (_interface(0xC00000B7, *_GENERIC), _ARM),
    "riscv64": (_interface(0xC00000F3, *_GENERIC), None),
}
"""The 64-bit programs of each machine, then its 32-bit programs. These get no sockets at all: one
of their calls hides the family in memory, which a filter cannot read."""

_ABSENT = (
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "open_by_handle_at"),
)
"""Keyrings hold the user's tickets. A ring makes sockets behind the back of a filter. The others
open the kernel itself, and no build or test needs them."""
_ABSENT_AMONG_OTHERS = (
    *("pidfd_open", "pidfd_getfd", "pidfd_send_signal", "process_madvise", "process_mrelease"),
    *("process_vm_readv", "process_vm_writev", "kcmp", "migrate_pages", "move_pages"),
)
"""Calls that reach into a process by its id. A debugger goes on with ptrace, which Landlock keeps
to the sandbox's own processes."""
_OWN_ONLY = {
    "prlimit64": "limits",
    "sched_setaffinity": "first",
    "sched_setscheduler": "first",
    "sched_setparam": "first",
    "sched_setattr": "first",
    "setpriority": "priority",
    "ioprio_set": "ioprio",
}
"""Calls that may name the caller by 0 and nobody else, and where their arguments are read. A filter
cannot tell a child's id from a stranger's, so a process cannot name itself by its number either."""
_PRIO_USER, _IOPRIO_WHO_USER = 2, 3
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
FAMILIES = {
    "ordinary": (_UNIX, _INET, _INET6, _NETLINK),
    "network": (_INET, _INET6, _NETLINK),
    "none": (_NETLINK,),
}
"""The sockets that may be made. Netlink stays, because libraries list addresses by it; `socketpair`
stays too, because it reaches nobody. The other families reach past a network namespace (the host of
a virtual machine) or exist for nothing that an agent does."""


@dataclass(frozen=True)
class _Line:
    """One instruction: its code and number, and the labels to jump to if so and if not."""

    code: int
    number: int
    then: str = ""
    other: str = ""
    label: str = ""


@lru_cache(maxsize=16)
def program(machine: str, sockets: str, *, is_among_others: bool) -> bytes:
    """Return the filter as the kernel wants it.

    Args:
        machine: The machine's name, as `os.uname` tells it.
        sockets: A key of `FAMILIES`.
        is_among_others: The processes share the machine's process ids, so calls that change
            another process are refused too.

    Raises:
        MechanismMissing: No numbers are known for this machine.
    """
    if machine not in _MACHINES:
        raise MechanismMissing(
            dimension=Dimension.FILES,
            wanted="a filter of system calls",
            found=f"the system call numbers of {machine} are unknown",
            fix="Run plait on x86_64, aarch64 or riscv64.",
        )
    lines = tuple(_lines(*_MACHINES[machine], sockets, is_among_others=is_among_others))
    places = {line.label: place for place, line in enumerate(lines) if line.label}
    return b"".join(_packed(line, place, places) for place, line in enumerate(lines))


def _packed(line: _Line, place: int, places: dict[str, int]) -> bytes:
    jumps = [places[label] - place - 1 if label else 0 for label in (line.then, line.other)]
    if max(jumps) > _LONGEST_JUMP:
        raise OverflowError(f"a jump of {max(jumps)} lines is too long for the kernel")
    return struct.pack("=HBBI", line.code, *jumps, line.number)


def _lines(
    native: _Interface, narrow: _Interface | None, sockets: str, *, is_among_others: bool
) -> Iterator[_Line]:
    yield _Line(_LOAD, _AT_ARCHITECTURE)
    yield _Line(_EQUAL, native.architecture, then="native", other="" if narrow else "refuse")
    if narrow:
        yield _Line(_EQUAL, narrow.architecture, other="refuse")
        yield _Line(_LOAD, _AT_NUMBER)
        yield from _calls(narrow.numbers, "refuse", is_among_others=is_among_others)
    yield _Line(_LOAD, _AT_NUMBER, label="native")
    yield _Line(_AT_LEAST, _X32, then="refuse")
    yield from _calls(native.numbers, "socket", is_among_others=is_among_others)
    yield from _arguments(FAMILIES[sockets])
    for label, answer in _ENDS.items():
        yield _Line(_RETURN, answer, label=label)


def _calls(numbers: dict[str, int], to_socket: str, *, is_among_others: bool) -> Iterator[_Line]:
    """Send each call on its way, by its number."""
    ways = dict.fromkeys(_ABSENT, "unknown")
    if is_among_others:
        ways |= dict.fromkeys(_ABSENT_AMONG_OTHERS, "unknown") | _OWN_ONLY
    ways |= {"ioctl": "ioctl", "socket": to_socket, "socketcall": "refuse"}
    known = [(numbers[name], way) for name, way in ways.items() if name in numbers]
    for number, way in known[:-1]:
        yield _Line(_EQUAL, number, then=way)
    number, way = known[-1]
    yield _Line(_EQUAL, number, then=way, other="allow")


def _arguments(families: tuple[int, ...]) -> Iterator[_Line]:
    """Judge the calls whose arguments matter."""
    yield _Line(_LOAD, _low(0), label="socket")
    for family in families:
        yield _Line(_EQUAL, family, then="allow")
    yield _Line(_AT_LEAST, 0, then="refuse")
    # The kernel reads 32 bits of the request, so these alone are compared.
    yield _Line(_LOAD, _low(1), label="ioctl")
    yield _Line(_EQUAL, _TIOCSTI, then="deny")
    yield _Line(_EQUAL, _TIOCLINUX, then="deny", other="allow")
    yield _Line(_LOAD, _low(0), label="limits")
    yield _Line(_EQUAL, 0, then="allow")
    for half in (_low(2), _low(2) + 4):  # without new limits it only asks
        yield _Line(_LOAD, half)
        yield _Line(_EQUAL, 0, other="deny")
    yield _Line(_AT_LEAST, 0, then="allow")
    yield _Line(_LOAD, _low(0), label="priority")
    yield _Line(_EQUAL, _PRIO_USER, then="deny", other="second")
    yield _Line(_LOAD, _low(0), label="ioprio")
    yield _Line(_EQUAL, _IOPRIO_WHO_USER, then="deny", other="second")
    yield _Line(_LOAD, _low(1), label="second")
    yield _Line(_EQUAL, 0, then="allow", other="deny")
    yield _Line(_LOAD, _low(0), label="first")
    yield _Line(_EQUAL, 0, then="allow", other="deny")


def _low(argument: int) -> int:
    """Return where the lower half of an argument lies; all machines here put it first."""
    return 16 + 8 * argument
