"""Read trees in few processes: entries at paths, moves, many blobs at once."""

from collections.abc import Iterator, Mapping, Sequence

from engine.git.objects import parse_entry, read_blobs, read_objects, read_sizes
from engine.git.runner import HERE, Repo, Where

Entries = Mapping[bytes, tuple[str, str]]
"""Mode and object by path; what is no file, link or submodule is not there."""

BIG_BLOB = 8 << 20
"""A version above it is not compared line by line: it can be chosen as a whole."""

_AT_ONCE = 200
_DIRECTORY = "040000"


async def entries_of(
    repo: Repo, tree: str, paths: Sequence[bytes], where: Where = HERE
) -> dict[bytes, tuple[str, str]]:
    """Return a tree's entries at these paths."""
    folders = {path.rpartition(b"/")[0] for path in paths}
    if any(map(_is_odd, folders)):
        return await _listed(repo, tree, paths, where)
    names = [f"{tree}:{_word(folder)}/" if folder else f"{tree}^{{tree}}" for folder in folders]
    trees = await read_objects(repo, names, where)
    there = {
        folder: dict(_entries(one[1], len(repo.zero) // 2))
        for folder, one in zip(folders, trees, strict=True)
        if one is not None
    }
    split = [(path, *path.rpartition(b"/")) for path in paths]
    found = {path: there.get(folder, {}).get(name) for path, folder, _, name in split}
    return {path: entry for path, entry in found.items() if entry and entry[0] != _DIRECTORY}


def _is_odd(folder: bytes) -> bool:
    """Return whether git would misread a name on a line of its input, or as relative."""
    return b"\n" in folder or folder.split(b"/", 1)[0] in {b".", b".."}


def _entries(content: bytes, width: int) -> Iterator[tuple[bytes, tuple[str, str]]]:
    """Yield the entries of a raw tree: names, with modes and objects."""
    place = 0
    while place < len(content):
        end = content.index(b"\0", place)
        mode, _, name = content[place:end].partition(b" ")
        place = end + 1 + width
        yield name, (mode.decode().zfill(6), content[end + 1 : place].hex())


async def _listed(
    repo: Repo, tree: str, paths: Sequence[bytes], where: Where
) -> dict[bytes, tuple[str, str]]:
    found: dict[bytes, tuple[str, str]] = {}
    for start in range(0, len(paths), _AT_ONCE):
        names = [_word(path) for path in paths[start : start + _AT_ONCE]]
        words = ("ls-tree", "-z", "--full-tree", tree, "--", *names)
        for record in (await repo.read(*words, where=where)).split(b"\0"):
            entry = parse_entry(record) if record else None
            if entry and entry.mode != _DIRECTORY:
                found[entry.path] = (entry.mode, entry.oid)
    return found


async def entries_below(
    repo: Repo, tree: str, folder: bytes, where: Where = HERE
) -> tuple[bytes, ...]:
    """Return every file below a folder of a tree."""
    words = ("ls-tree", "-r", "-z", "--full-tree", "--name-only", tree, "--", _word(folder))
    names = (await repo.read(*words, where=where)).split(b"\0")
    return tuple(name for name in names if name.startswith(folder + b"/"))


async def moves(repo: Repo, old: str, new: str, where: Where = HERE) -> dict[bytes, bytes]:
    """Return the old name of every file moved between two trees, by its new name."""
    words = ("diff-tree", "-r", "-z", "-M", "--name-status", "--diff-filter=R", old, new, "--")
    fields = iter((await repo.read(*words, where=where)).split(b"\0"))
    found: dict[bytes, bytes] = {}
    for letter in fields:
        if letter:
            before = next(fields)
            found[next(fields)] = before
    return found


async def contents_of(repo: Repo, oids: Sequence[str], where: Where = HERE) -> dict[str, bytes]:
    """Return the bytes of many blobs; those too big to compare are left out."""
    if not oids:
        return {}
    sizes = await read_sizes(repo, oids, where)
    small = [
        oid for oid, size in zip(oids, sizes, strict=True) if size is not None and size <= BIG_BLOB
    ]
    blobs = await read_blobs(repo, small, where)
    return dict(zip(small, blobs, strict=True))


def _word(path: bytes) -> str:
    """Return a path as a command-line word, without losing a byte."""
    return path.decode(errors="surrogateescape")
