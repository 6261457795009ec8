"""Read refs from the files in which git keeps them, where it keeps them in files.

A file for each ref comes first, and then `packed-refs`. Git packs a ref before it removes the file,
so whoever reads in this order misses none.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.git.settings import Entries

_KNOWN = {"extensions.objectformat", "extensions.partialclone", "extensions.preciousobjects"}
"""Extensions that say nothing about worktrees, nor about the place of refs."""
_ID = re.compile(rb"(?!0+\s*$)([0-9a-f]{40}(?:[0-9a-f]{24})?)\s*")
_ODD = re.compile(r"[\0-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.$|^\.|/\.|\.lock(?:/|$)")
"""No name of a ref holds this; git passes over a file of such a name."""


def has_ref_files(entries: Entries) -> bool:
    """Say if a repository with this configuration keeps refs as files, for all worktrees alike."""
    named = {key for key, _ in entries}
    extensions = {key for key in named if key.startswith("extensions.")}
    # Git writes the version into every repository: where it is missing, the listing failed.
    return "core.repositoryformatversion" in named and extensions <= _KNOWN


def refs_in_files(common_dir: str, prefixes: Sequence[str]) -> dict[str, str] | None:
    """Return the refs that are or lie below the prefixes, with the objects that they name.

    None where a file says anything else than an object, or cannot be read, or has an odd name.
    """
    if any(_ODD.search(prefix) for prefix in prefixes):
        return None  # git would take it for a pattern
    try:
        loose = {ref: said for prefix in prefixes for ref, said in _loose(common_dir, prefix)}
        packed = _content(f"{common_dir}/packed-refs") or b""
    except OSError:
        return None
    found = {ref: oid for prefix in prefixes for ref, oid in _packed(packed, os.fsencode(prefix))}
    for ref, said in loose.items():
        match = _ID.fullmatch(said)
        if match is None or _ODD.search(ref):
            return None
        found[ref] = match[1].decode()
    return found


def _loose(common_dir: str, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield refs that have files of their own; of a symbolic one nothing that is an object."""
    if not os.path.isdir(f"{common_dir}/{prefix}"):  # noqa: PTH112 - names are joined to it
        paths = [prefix]
    else:
        paths = [
            f"{folder.removeprefix(common_dir + '/')}/{name}"
            for folder, _, names in os.walk(f"{common_dir}/{prefix}", onerror=_fail)
            for name in names
        ]
    for path in paths:
        place = f"{common_dir}/{path}"
        said = b"" if os.path.islink(place) else _content(place)  # noqa: PTH114
        if said is not None:
            yield path, said


def _fail(error: OSError) -> None:
    """Raise what `os.walk` would pass over; a folder that has just gone is none."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _content(file: str) -> bytes | None:
    try:
        return Path(file).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _packed(packed: bytes, prefix: bytes) -> Iterator[tuple[str, str]]:
    """Yield the refs of some lines `ID NAME`."""
    place = -1
    while (place := packed.find(b" " + prefix, place + 1)) >= 0:
        end = packed.find(b"\n", place)
        name = packed[place + 1 : end if end >= 0 else len(packed)]
        if name == prefix or name.startswith(prefix + b"/"):
            start = packed.rfind(b"\n", 0, place) + 1
            yield os.fsdecode(name), packed[start:place].decode(errors="replace")
