"""The questions that standing gits answer: objects, differences of trees, merges, moves of refs.

Knows how each question is put and where its answer ends. Each gives None, or False, where there is
no answer: the caller then starts a git of its own, which also says what is wrong.
"""

import secrets
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from anyio.streams.buffered import BufferedByteReceiveStream as Said

from engine.git.plumbing.standing import StandingGits, StandingKind

_OBJECTS = StandingKind(words=("cat-file", "--batch-command"))
DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_DIFFERENCE = StandingKind(words=(*DIFF, "--stdin"))
_MERGE = StandingKind(
    words=("merge-tree", "--write-tree", "-z", "--messages", "--stdin"),
    since=(2, 39),
    flushes_since=(2, 49),
    lends=True,
)
_REFS_LIFE_S = 1.0
_DONE = b"start: ok\nprepare: ok\ncommit: ok\n"
_MOST = 1 << 30

P = TypeVar("P", bound=Hashable)


async def objects(
    gits: StandingGits[P], names: Sequence[str], where: P
) -> list[tuple[str, bytes] | None] | None:
    """Return ids and bytes of what names mean, in order; None for one that means nothing."""
    if any("\n" in name for name in names):
        return None

    async def read(said: Said) -> list[tuple[str, bytes] | None]:
        return [await _object(said) for _ in names]

    question = "".join(f"contents {name}\n" for name in names).encode(errors="surrogateescape")
    return await gits.ask(_OBJECTS, where, question, read)


async def sizes(gits: StandingGits[P], oids: Sequence[str], where: P) -> list[int | None] | None:
    """Return the sizes of objects in bytes, in order; None for one that is missing."""

    async def read(said: Said) -> list[int | None]:
        return [size_in(await said.receive_until(b"\n", _MOST)) for _ in oids]

    question = "".join(f"info {oid}\n" for oid in oids).encode()
    return await gits.ask(_OBJECTS, where, question, read)


def size_in(line: bytes) -> int | None:
    """Return the number at the end of a line; None where there is none."""
    word = line.rpartition(b" ")[2]
    return int(word) if word.isdigit() else None


async def _object(said: Said) -> tuple[str, bytes] | None:
    words = (await said.receive_until(b"\n", _MOST)).split(b" ")
    if len(words) != 3 or not words[2].isdigit():  # noqa: PLR2004 (id, kind, size)
        return None
    content = await said.receive_exactly(int(words[2]) + 1)
    return words[0].decode(), content[:-1]


async def difference(gits: StandingGits[P], old: str, new: str, where: P) -> bytes | None:
    """Return the answer of `diff-tree -r -z --raw` for two trees, by their ids."""
    # Nobody can guess this end: the answer holds file names that an agent chose.
    end = f"end {secrets.token_hex(16)}\n".encode()
    head = f"{old} {new}\n".encode()

    async def read(said: Said) -> bytes:
        # What git does not understand it sends back, and with it all that came before.
        answer = await said.receive_until(end, _MOST)
        if not answer.startswith(head):
            raise ValueError("git's answer is not a pair of trees")
        return answer.removeprefix(head)

    return await gits.ask(_DIFFERENCE, where, head + end, read)


async def merge(
    gits: StandingGits[P], pair: tuple[str, str], where: P, lent: Mapping[str, bytes]
) -> list[bytes] | None:
    """Return the fields of the answer of `merge-tree -z --messages` for two lent commits."""
    question = " ".join(pair).encode() + b"\n"
    return await gits.ask(_MERGE, where, question, _merge_fields, lent=lent)


async def _merge_fields(said: Said) -> list[bytes]:
    async def field() -> bytes:
        return await said.receive_until(b"\0", _MOST)

    if await field() not in {b"0", b"1"}:
        raise ValueError("git's answer is not that of a merge")
    found = [await field()]
    while part := await field():
        found.append(part)
    found.append(b"")
    while count := await field():
        if not count.isdigit():
            raise ValueError("git mixes advice into its answer, and nothing marks its end")
        found += [count, *[await field() for _ in range(int(count) + 2)]]
    return [*found, b""]


async def moves(gits: StandingGits[P], steps: bytes, say: str, where: P) -> bool:
    """Move refs as `update-ref --stdin -z` is asked to, all or none; say if they were moved.

    False also where a git died over it: then nobody knows, and the refs have to be looked at.
    """
    words = ("update-ref", "--stdin", "-z", "-m", say)
    kind = StandingKind(words=words, writes=True, life_s=_REFS_LIFE_S)

    async def read(said: Said) -> bool:
        return await said.receive_exactly(len(_DONE)) == _DONE

    question = b"start\0%sprepare\0commit\0" % steps
    return bool(await gits.ask(kind, where, question, read))
