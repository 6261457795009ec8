"""What trees hold, asked in few processes: entries at paths, what was moved, many blobs at once."""

from collections.abc import Mapping, Sequence

from engine.git.objects import parse_entry, read_blobs
from engine.git.runner import HERE, Call, Repo, Where

Entries = Mapping[bytes, tuple[str, str]]
"""Mode and object by path; what is no file, link or submodule is not there."""

BIG_BLOB = 8 << 20
"""A version above it is not compared line by line: it can be chosen as a whole."""

_AT_ONCE = 200
_DIRECTORY = "040000"


async def entries_of(
    repo: Repo, tree: str, paths: Sequence[bytes], where: Where = HERE
) -> dict[bytes, tuple[str, str]]:
    """What a tree has at these paths."""
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
    """Every file of a folder of a tree."""
    words = ("ls-tree", "-r", "-z", "--full-tree", "--name-only", tree, "--", _word(folder))
    names = (await repo.read(*words, where=where)).split(b"\0")
    return tuple(name for name in names if name.startswith(folder + b"/"))


async def moves(repo: Repo, old: str, new: str, where: Where = HERE) -> dict[bytes, bytes]:
    """The old name of every file that was moved between two trees, by its new one."""
    words = ("diff-tree", "-r", "-z", "-M", "--name-status", "--diff-filter=R", old, new, "--")
    fields = iter((await repo.read(*words, where=where)).split(b"\0"))
    found: dict[bytes, bytes] = {}
    for letter in fields:
        if letter:
            before = next(fields)
            found[next(fields)] = before
    return found


async def contents_of(repo: Repo, oids: Sequence[str], where: Where = HERE) -> dict[str, bytes]:
    """The bytes of many blobs; those that are too big to compare are left out."""
    if not oids:
        return {}
    asked = "".join(f"{oid}\n" for oid in oids).encode()
    words = ("cat-file", "--batch-check=%(objectname) %(objectsize)")
    listing = (await repo.read(*words, call=Call(stdin=asked), where=where)).decode()
    sizes = [line.split(" ") for line in listing.split("\n") if line]
    small = [oid for oid, size in sizes if size.isdigit() and int(size) <= BIG_BLOB]
    blobs = await read_blobs(repo, small, where)
    return dict(zip(small, blobs, strict=True))


def _word(path: bytes) -> str:
    """A path as a word of a command; no byte of it is lost."""
    return path.decode(errors="surrogateescape")
