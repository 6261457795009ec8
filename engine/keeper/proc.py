"""Processes as /proc tells of them: who descends from whom, who they are, what they use.

Reads only; every process may be gone at any moment, and is then not reported.
"""

# ruff: noqa: PTH110, PTH208
# A keeper must not load pathlib: 2 MB in each of many.

from __future__ import annotations

import os

from engine.system import IS_PORTABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
if IS_PORTABLE or TYPE_CHECKING:
    from engine.keeper import portable

MARK = "PLAIT_MARK"
"""The environment variable that holds an attempt's mark."""
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TTY_MAJOR, _PTS_MAJORS = 4, range(136, 144)
_EXEC_LOOKS, _EMPTY_LOOKS = 1000, 3
_PF_KTHREAD = 0x00200000
_HALF_PAGE = 2048
"""/proc fills a page before it gives one out: less than half of it is the end of a file."""


class Process:
    """One line of /proc/PID/stat."""

    __slots__ = (
        "cpu_s",
        "is_kernels",
        "name",
        "parent",
        "pid",
        "rss",
        "start",
        "state",
        "threads",
        "tty",
    )

    def __init__(self, pid: int, text: bytes) -> None:
        name_end = text.rindex(b")")
        fields = text[name_end + 2 :].split()
        self.pid = pid
        self.name = text[text.index(b"(") + 1 : name_end].decode(errors="replace")
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.tty = int(fields[4])
        self.is_kernels = bool(int(fields[6]) & _PF_KTHREAD)
        self.cpu_s = sum(map(int, fields[11:15])) * _TICK_S  # with the children it waited for
        self.threads = int(fields[17])
        self.start = int(fields[19])
        self.rss = int(fields[21]) * _PAGE

    @classmethod
    def known(cls, pid: int, facts: portable.Facts) -> Process:
        """The same from what another system tells."""
        made = cls.__new__(cls)
        made.pid, made.tty, made.is_kernels = pid, -1, False
        made.name, made.state, made.parent, made.cpu_s, made.threads, made.start, made.rss = facts
        return made

    @property
    def is_dead(self) -> bool:
        """A zombie: it only waits for somebody to notice."""
        return self.state in "ZX"

    @property
    def terminal(self) -> str:
        """The terminal it belongs to, such as `pts/3`; empty where it has none."""
        if self.tty < 0:
            return portable.terminal(self.pid)
        major = self.tty >> 8 & 0xFFF
        minor = self.tty & 0xFF | self.tty >> 12 & 0xFFF00
        if major in _PTS_MAJORS:
            return f"pts/{minor + (major - _PTS_MAJORS[0]) * 256}"
        return f"tty{minor}" if major == _TTY_MAJOR else ""


def look(pid: int) -> Process | None:
    """That process, if it is there."""
    if IS_PORTABLE:
        known = portable.facts(pid)
        return Process.known(pid, known) if known else None
    text = read(f"/proc/{pid}/stat")
    return Process(pid, text) if text else None


def is_alive(pid: int, start: int) -> bool:
    """Tell whether the process that began at this tick still runs under this number."""
    process = look(pid)
    return process is not None and process.start == start and not process.is_dead


def boot_id() -> str:
    """Return a name for this boot of the machine; processes of another one are all dead."""
    if IS_PORTABLE:
        return portable.boot()
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def children(pid: int) -> list[int]:
    """The direct children of a process, whichever of its threads began them."""
    if not _HAS_CHILDREN:
        return [each.pid for each in filter(None, map(look, everybody())) if each.parent == pid]
    return _born(pid, _threads(pid))


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _born(pid: int, threads: list[str]) -> list[int]:
    found: list[int] = []
    for thread in threads:
        found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def descendants(pid: int) -> list[int]:
    """Everybody below a process, parents before their children."""
    below = children if _HAS_CHILDREN else _children_by_one_scan()
    found = list(below(pid))
    seen = set(found)
    for parent in found:  # grows while it is walked
        new = [child for child in below(parent) if child not in seen]
        seen.update(new)
        found += new
    return found


def population(pid: int) -> tuple[int, int]:
    """Return how many processes are below a process, and how many threads they have in all."""
    if not _HAS_CHILDREN:
        seen = [process for process in map(look, descendants(pid)) if process]
        return len(seen), sum(process.threads for process in seen)
    found, count = children(pid), 0
    known = set(found)
    for each in found:  # grows while it is walked
        threads = _threads(each)
        count += len(threads)
        new = [child for child in _born(each, threads) if child not in known]
        known.update(new)
        found += new
    return len(found), count


def everybody() -> list[int]:
    """Every process that can be seen."""
    if IS_PORTABLE:
        return portable.everybody()
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def marked(mark: str) -> list[int]:
    """Return everybody whose environment carries the mark, zombies left out."""
    if IS_PORTABLE:
        return [pid for pid in everybody() if portable.environment(pid).get(MARK) == mark]
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in everybody() if wanted in _environment(pid).split(b"\0")]


def _environment(pid: int) -> bytes:
    """Return the environment of a process, and wait while the process becomes another program.

    execve gives a process its new memory before it writes arguments and environment there. Until
    then both read as empty, and a process of ours would look like a stranger. So nothing is taken
    for an empty environment unless it stays empty beside arguments.
    """
    empty = 0
    for _ in range(_EXEC_LOOKS):
        if text := read(f"/proc/{pid}/environ"):
            return text
        empty = empty + 1 if read(f"/proc/{pid}/cmdline") else 0
        process = look(pid)
        if empty == _EMPTY_LOOKS or process is None or process.is_dead or process.is_kernels:
            break
        os.sched_yield()
    return b""


def proportional(pid: int) -> int | None:
    """Memory with shared pages divided among their sharers; None where it may not be read."""
    if IS_PORTABLE:
        return None
    total = 0
    rollup = read(f"/proc/{pid}/smaps_rollup")
    for line in rollup.splitlines():
        if line.startswith((b"Pss:", b"SwapPss:")):
            total += int(line.split()[1]) * 1024
    return total if rollup else None


def ancestors(pid: int) -> list[int]:
    """The process itself and everybody above it."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        process = look(pid)
        if process is None:
            break
        line.append(pid)
        pid = process.parent
    return line


def _children_by_one_scan() -> Callable[[int], list[int]]:
    below: dict[int, list[int]] = {}
    for process in filter(None, map(look, everybody())):
        below.setdefault(process.parent, []).append(process.pid)
    return lambda pid: below.get(pid, [])


def read(path: str) -> bytes:
    """Return a file of the kernel's, whole; empty where it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        part = os.read(fd, 1 << 16)
        parts = [part]
        while len(part) >= _HALF_PAGE:
            part = os.read(fd, 1 << 16)
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def folder(pid: int) -> str:
    """Return the working folder of a process; empty where it may not be known."""
    if IS_PORTABLE:
        return portable.folder(pid)
    try:
        return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115
    except OSError:
        return ""


def command(pid: int) -> bytes:
    """The words with which a process was started, each ended by a null byte."""
    return portable.command(pid) if IS_PORTABLE else read(f"/proc/{pid}/cmdline")


_HAS_CHILDREN = not IS_PORTABLE and os.path.exists(f"/proc/self/task/{os.getpid()}/children")
