"""Make folders and files for their owner alone, whatever the umask; no other module may do so.

`mkdir(mode=0o700, parents=True)` does not: the mode is that of the last folder only, and those on
the way are made for everybody.
"""

import os
import stat
from pathlib import Path

PRIVATE = 0o700
_OTHERS = 0o077


def private_folder(folder: Path) -> Path:
    """Make a folder and whatever is missing above it, each for its owner alone; return it.

    A folder that is there already stays as it is.

    Raises:
        OSError: One of them cannot be made, or is no folder.
    """
    try:
        folder.mkdir(PRIVATE)
    except FileNotFoundError:
        private_folder(folder.parent)
        folder.mkdir(PRIVATE, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
    return folder


def tightened(folder: Path) -> Path:
    """Make a folder of plait's own private, or take from others what an older version gave them.

    A folder of somebody else's is left alone.
    """
    private_folder(folder)
    found = folder.stat()
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & _OTHERS:
        folder.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    return folder


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that only its owner may read.

    Raises:
        FileExistsError: Something is there already.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
