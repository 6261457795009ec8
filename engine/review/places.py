"""Find second places for a conflicted file: a free name beside it, and its text's new home."""

import re
from collections.abc import Mapping, Sequence

from engine.git.runner import HERE, Repo, Where
from engine.merge import FileSide, split_lines
from engine.review.reading import contents_of, entries_below, entries_of

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_TRIES = 4
_MOST_FILES = 60
_SHARE = 0.6


async def free_paths(
    repo: Repo,
    trees: Sequence[str],
    paths: Sequence[bytes],
    *,
    name: str,
    where: Where = HERE,
) -> Mapping[bytes, bytes]:
    """Return a free name beside each path, such as `logo.feature.png`."""
    if not paths:
        return {}
    offered = {path: [_beside(path, name, n) for n in range(1, _TRIES + 1)] for path in paths}
    every = [candidate for candidates in offered.values() for candidate in candidates]
    taken: set[bytes] = set()
    for tree in dict.fromkeys(trees):
        taken.update(await entries_of(repo, tree, every, where))
        for candidate in every:
            if await entries_below(repo, tree, candidate, where):
                taken.add(candidate)
    found: dict[bytes, bytes] = {}
    for path, candidates in offered.items():
        free = next((one for one in candidates if one not in taken), None)
        if free is not None:
            found[path] = free
            taken.add(free)
    return found


def _beside(path: bytes, name: str, number: int) -> bytes:
    folder, slash, file = path.rpartition(b"/")
    stem, dot, suffix = file.rpartition(b".")
    if not stem:
        stem, dot, suffix = file, b"", b""
    word = _UNFIT.sub("-", name).strip("-.") or "incoming"
    again = f"-{number}" if number > 1 else ""
    return folder + slash + stem + f".{word}{again}".encode() + dot + suffix


async def moved_home(
    repo: Repo, trees: tuple[str, str], lost: FileSide, where: Where = HERE
) -> FileSide | None:
    """Return the file that received most of a deleted file's text, if any.

    Git's own rename detection looks for a whole file that resembles it; this looks for its lines
    in whatever that side added or changed.
    """
    lines = _telling(lost.content or b"")
    if not lines:
        return None
    changed = await _changed(repo, trees, where)
    oids = [oid for _, _, before, after in changed for oid in (before, after) if oid.strip("0")]
    contents = await contents_of(repo, list(dict.fromkeys(oids)), where)
    best: tuple[float, FileSide] | None = None
    for path, mode, before, after in changed:
        gained = _telling(contents.get(after, b"")) - _telling(contents.get(before, b""))
        share = len(lines & gained) / len(lines)
        if share >= _SHARE and (best is None or share > best[0]):
            best = share, FileSide(path=path, mode=mode, blob=after, content=contents.get(after))
    return best[1] if best else None


def _telling(content: bytes) -> set[bytes]:
    """Return the lines that carry meaning."""
    return {stripped for line in split_lines(content) if len(stripped := line.strip()) > 1}


async def _changed(
    repo: Repo, trees: tuple[str, str], where: Where
) -> list[tuple[bytes, str, str, str]]:
    """Return files that a side added or changed: path, mode, old object, new object."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AM")
    fields = (await repo.read(*words, *trees, "--", where=where)).split(b"\0")
    found: list[tuple[bytes, str, str, str]] = []
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, before, after, _ = head.decode().removeprefix(":").split(" ")
        if mode.startswith("100"):
            found.append((path, mode, before, after))
    return found if len(found) <= _MOST_FILES else []
