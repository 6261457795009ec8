"""Large files by LFS: the contents behind pointers, which no fetch of commits brings along."""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile

_NAME = re.compile(r"[0-9a-f]{64}")


def take_large_files(sources: Iterable[str], common_dir: str) -> int:
    """Copy LFS contents from git directories into the user's, each proved by its name; how many."""
    taken = 0
    for source in sources:
        for folder, names, files in os.walk(Path(source, "lfs/objects")):
            names[:] = [name for name in names if not Path(folder, name).is_symlink()]
            for name in files:
                taken += bool(_NAME.fullmatch(name)) and _take(Path(folder, name), common_dir)
    return taken


def _take(file: Path, common_dir: str) -> bool:
    target = Path(common_dir, "lfs/objects", file.name[:2], file.name[2:4], file.name)
    if target.exists() or not stat.S_ISREG(file.lstat().st_mode):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=target.parent, delete=False) as copy:
        with file.open("rb") as read:
            shutil.copyfileobj(read, copy)
        copy.flush()
        os.fsync(copy.fileno())
    with Path(copy.name).open("rb") as written:
        is_genuine = hashlib.file_digest(written, "sha256").hexdigest() == file.name
    if is_genuine:
        Path(copy.name).replace(target)
    else:
        Path(copy.name).unlink()
    return is_genuine
