"""Objects written as files of their own, without a git process to write them.

Only commits that we make up ourselves: their bytes are right by construction. It does not know how
to check what somebody else made.
"""

import os
import secrets
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


def write_commits(objects: Path, contents: Mapping[str, bytes]) -> None:
    """Put commits, by their ids, into a folder of ours where git looks for objects."""
    for oid, content in contents.items():
        place = objects / oid[:2] / oid[2:]
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(_packed(content))


def keep_commit(objects: Path, oid: str, content: bytes) -> None:
    """Put a commit into a repository as git does: whole and read-only, or not at all.

    Synced, unlike what git makes of it by itself: a ref will name it.
    """
    place = objects / oid[:2] / oid[2:]
    if place.exists():
        return
    place.parent.mkdir(exist_ok=True)
    partial = place.with_name(f"tmp_obj_{secrets.token_hex(8)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_packed(content))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            place.hardlink_to(partial)
    finally:
        partial.unlink(missing_ok=True)


def _packed(content: bytes) -> bytes:
    return zlib.compress(b"commit %d\0" % len(content) + content, 1)
