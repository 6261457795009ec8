"""What standing gits are asked: objects, differences of trees, merges, moves of refs.

Knows how each question is put and where its answer ends. Each gives None, or False, where there is
no answer: the caller then starts a git of its own, which also says what is wrong.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from anyio.streams.buffered import BufferedByteReceiveStream as Said

from engine.git.runner import Repo, Where
from engine.git.standing import Kind

_OBJECTS = Kind(words=("cat-file", "--batch-command"))
DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_DIFFERENCE = Kind(words=(*DIFF, "--stdin"))
_MERGE = Kind(
    words=("merge-tree", "--write-tree", "-z", "--messages", "--stdin"),
    flushes_since=(2, 49),
    lends=True,
)
_STDIN_SINCE = (2, 39)
_REFS_LIFE_S = 1.0
_DONE = b"start: ok\nprepare: ok\ncommit: ok\n"
_MOST = 1 << 30


async def objects(
    repo: Repo, names: Sequence[str], where: Where
) -> list[tuple[str, bytes] | None] | None:
    """Ids and bytes of what some names mean, in order; None for one that means nothing."""
    if any("\n" in name for name in names):
        return None

    async def read(said: Said) -> list[tuple[str, bytes] | None]:
        return [await _object(said) for _ in names]

    question = "".join(f"contents {name}\n" for name in names).encode(errors="surrogateescape")
    return await repo.standing.ask(_OBJECTS, where, question, read)


async def sizes(repo: Repo, oids: Sequence[str], where: Where) -> list[int | None] | None:
    """How many bytes some objects have, in order; None for one that is missing."""

    async def read(said: Said) -> list[int | None]:
        return [size_in(await said.receive_until(b"\n", _MOST)) for _ in oids]

    question = "".join(f"info {oid}\n" for oid in oids).encode()
    return await repo.standing.ask(_OBJECTS, where, question, read)


def size_in(line: bytes) -> int | None:
    """The number at the end of a line; None where there is none."""
    word = line.rpartition(b" ")[2]
    return int(word) if word.isdigit() else None


async def _object(said: Said) -> tuple[str, bytes] | None:
    words = (await said.receive_until(b"\n", _MOST)).split(b" ")
    if len(words) != 3 or not words[2].isdigit():  # noqa: PLR2004 (id, kind, size)
        return None
    content = await said.receive_exactly(int(words[2]) + 1)
    return words[0].decode(), content[:-1]


async def difference(repo: Repo, old: str, new: str, where: Where) -> bytes | None:
    """What `diff-tree -r -z --raw` says of two trees, by their ids."""
    end = f"end {secrets.token_hex(16)}\n".encode()
    head = f"{old} {new}\n".encode()

    async def read(said: Said) -> bytes:
        # What git does not understand it sends back, and with it all that came before.
        answer = await said.receive_until(end, _MOST)
        if not answer.startswith(head):
            raise ValueError("these are no trees")
        return answer.removeprefix(head)

    return await repo.standing.ask(_DIFFERENCE, where, head + end, read)


async def merge(
    repo: Repo, pair: tuple[str, str], where: Where, lent: Mapping[str, bytes]
) -> list[bytes] | None:
    """The fields of the answer of `merge-tree -z --messages` for two of some lent commits."""
    if repo.version < _STDIN_SINCE:
        return None
    question = " ".join(pair).encode() + b"\n"
    return await repo.standing.ask(_MERGE, where, question, _merge_fields, lent=lent)


async def _merge_fields(said: Said) -> list[bytes]:
    async def field() -> bytes:
        return await said.receive_until(b"\0", _MOST)

    if await field() not in {b"0", b"1"}:
        raise ValueError("this is no answer of a merge")
    found = [await field()]
    while part := await field():
        found.append(part)
    found.append(b"")
    while count := await field():
        if not count.isdigit():
            raise ValueError("git gives advice here, and does not say where it ends")
        found += [count, *[await field() for _ in range(int(count) + 2)]]
    return [*found, b""]


async def moves(repo: Repo, steps: bytes, say: str, where: Where) -> bool:
    """Whether refs were moved as `update-ref --stdin -z` is told to, all or none.

    False also where a git died over it: then nobody knows, and the refs have to be looked at.
    """
    words = ("update-ref", "--stdin", "-z", "-m", say)
    kind = Kind(words=words, writes=True, life_s=_REFS_LIFE_S)
    if where.git_dir == repo.common_dir:
        where = replace(where, git_dir=None)

    async def read(said: Said) -> bool:
        return await said.receive_exactly(len(_DONE)) == _DONE

    question = b"start\0%sprepare\0commit\0" % steps
    return bool(await repo.standing.ask(kind, where, question, read))
