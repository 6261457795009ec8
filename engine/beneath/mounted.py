"""Tell if a process of ours still has a folder mounted: it writes there wherever the folder goes.

A mount of a sandbox names an inode. A shell that a human opened there, or what it started, outlives
the agent.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROCESSES = Path("/proc")
_ESCAPED = {9: rb"\011", 10: rb"\012", 32: rb"\040", 92: rb"\134"}
_ROOT = 3


def is_mounted(folder: Path) -> bool:
    """Return True if a folder, known by its last two names, is in a mount of any process of ours.

    The kernel lists the root of a mount by its present path on the file system. That begins
    anywhere, so only its end is compared.
    """
    words = os.fsencode(f"/{folder.parent.name}/{folder.name}/")
    needle = b"".join(_ESCAPED.get(one, bytes([one])) for one in words)
    return any(needle in root + b"/" for root in _roots())


def _roots() -> Iterator[bytes]:
    """Yield the roots of the mounts of each namespace of which a process can be asked."""
    seen = set()
    for name in os.listdir(_PROCESSES):  # noqa: PTH208 - names, of many
        with suppress(OSError):  # it has ended, or is somebody else's
            if not name.isdigit() or (of := _namespace(name)) in seen:
                continue
            content = Path(_PROCESSES, name, "mountinfo").read_bytes()
            seen.add(of)
            yield from (line.split(b" ", _ROOT + 1)[_ROOT] for line in content.splitlines())


def _namespace(pid: str) -> str:
    """Return the name of a process's mounts; its own number where only those may be read."""
    try:
        return os.readlink(f"{_PROCESSES}/{pid}/ns/mnt")  # noqa: PTH115 - a `Path` costs more
    except PermissionError:
        if os.stat(f"{_PROCESSES}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - as above
            raise
        return pid
