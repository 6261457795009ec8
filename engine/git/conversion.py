"""The attributes in force where files are taken out of a tree that an agent left.

Attributes convert contents: line endings, encodings, LFS. Those of the base are the user's, and
are followed. Those that the agent left must neither change a byte of its work nor make git fail, so
the file `info/attributes` of a git directory of ours overrides them.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from anyio import to_thread

from engine.beneath import EntryKind, WalkEntry, list_tree, read_file
from engine.git.runner import Repo
from engine.git.trees import Attributes

RESET = b"* !text !crlf !eol !ident !filter !working-tree-encoding\n"
"""Takes back what the files of a tree say."""
RAW = b"* -text !eol !ident !filter !working-tree-encoding\n"
"""Lets nothing be converted, whatever the user's configuration says."""
_NAME = b".gitattributes"
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


async def attributes_of(repo: Repo, base: str) -> bytes:
    """Return what the attribute files of a commit say, as one file for its top."""

    async def read() -> bytes:
        folder = await Attributes(repo).folder(base)
        return flattened(await to_thread.run_sync(_files, Path(folder)))

    return await repo.cache.of(("flat attributes", base), read)


def _files(folder: Path) -> dict[bytes, bytes]:
    entries = [one for one in list_tree(folder) if isinstance(one, WalkEntry)]
    names = [one.path for one in entries if one.kind is EntryKind.FILE and one.path.endswith(_NAME)]
    contents = [read_file(folder, os.fsdecode(name)) for name in names]
    return {
        name: data for name, data in zip(names, contents, strict=True) if isinstance(data, bytes)
    }


def flattened(files: Mapping[bytes, bytes]) -> bytes:
    """Say in one file what attribute files say in their folders, those of deeper folders last."""
    lines: list[bytes] = []
    for path in sorted(files, key=lambda path: (path.count(b"/"), path)):
        folder = path.rpartition(b"/")[0]
        content = files[path].removeprefix(b"\xef\xbb\xbf")
        lines += content.splitlines() if not folder else _moved(folder, content)
    return b"".join(line + b"\n" for line in lines)


def _moved(folder: bytes, content: bytes) -> Iterator[bytes]:
    """Give the lines of a folder's file as they would be said at the top."""
    for line in content.splitlines():
        pattern, said = _split(line.strip(b" \t\r"))
        if not pattern or pattern.startswith((b"#", b"!", b"[attr]")):
            continue  # a comment, or what git does not take in a folder
        is_anchored = b"/" in pattern.rstrip(b"/")
        middle = b"/" if is_anchored else b"/**/"
        yield _quoted(_literal(folder) + middle + pattern.lstrip(b"/")) + b" " + said


def _split(line: bytes) -> tuple[bytes, bytes]:
    match = _QUOTED.match(line)
    if match:
        return _ESCAPE.sub(_unescaped, match[1]), line[match.end() :].strip()
    pattern, _, said = line.replace(b"\t", b" ").partition(b" ")
    return pattern, said.strip()


def _unescaped(match: re.Match[bytes]) -> bytes:
    said = match[1]
    return bytes([int(said, 8) & 0xFF]) if len(said) > 1 else _LETTERS.get(said, said)


def _literal(folder: bytes) -> bytes:
    """Return a pattern that means this folder alone."""
    return re.sub(rb"([\\*?\[])", rb"\\\1", folder)


def _quoted(pattern: bytes) -> bytes:
    inner = re.sub(rb'(["\\])', rb"\\\1", pattern)
    return b'"' + re.sub(rb"[\x00-\x1f]", lambda m: b"\\%03o" % m[0][0], inner) + b'"'
