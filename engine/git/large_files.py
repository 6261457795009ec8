"""Take in the contents behind the pointers of LFS: no fetch of commits brings them along.

Each is proved by its name, which is a digest of it.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from engine.beneath import EntryKind, WalkEntry, copy_as, list_tree

LARGE_FILES = "lfs/objects"
"""The folder of LFS contents in a git directory."""
_NAME = re.compile(rb"[0-9a-f]{64}")


def take_large_files(sources: Iterable[str], common_dir: str) -> int:
    """Copy LFS contents from git directories into the user's, each proved by its name; how many."""
    taken = 0
    for source in sources:
        for entry in list_tree(source, is_entered=_may_hold):
            if (
                isinstance(entry, WalkEntry)
                and entry.kind is EntryKind.FILE
                and _is_content(entry.path)
            ):
                taken += _take(source, entry.path, common_dir)
    return taken


def _may_hold(path: bytes) -> bool:
    return b"lfs/objects".startswith(path) or path.startswith(b"lfs/objects/")


def _is_content(path: bytes) -> bool:
    return path.startswith(b"lfs/objects/") and bool(_NAME.fullmatch(path.rpartition(b"/")[2]))


def _take(source: str, path: bytes, common_dir: str) -> bool:
    name = os.fsdecode(path.rpartition(b"/")[2])
    target = Path(common_dir, LARGE_FILES, name[:2], name[2:4], name)
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{name}.{secrets.token_hex(6)}")
    if not copy_as(source, path, target.parent, draft.name).files:
        return False
    with draft.open("rb") as written:
        is_genuine = hashlib.file_digest(written, "sha256").hexdigest() == name
        os.fsync(written.fileno())
    if is_genuine:
        draft.replace(target)
    else:
        draft.unlink()
    return is_genuine
