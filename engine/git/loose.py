"""Commits laid out for one call of git to read, without a git process to write them.

Only for what we make up ourselves, in a folder of ours: nothing here is checked or synced, and it
does not know how a user's repository wants its objects. What is to last goes through git.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path


def write_commits(objects: Path, contents: Mapping[str, bytes]) -> None:
    """Put commits, by their ids, into a folder that git is told to look for objects in."""
    for oid, content in contents.items():
        place = objects / oid[:2] / oid[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(b"commit %d\0" % len(content) + content, 1))
