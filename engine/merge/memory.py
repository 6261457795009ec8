"""Answers given before, to be offered when the same hunk comes again.

A memory is a value: it is handed in, shown, corrected and kept by others. It never answers by
itself. A hunk is known by its three texts without their common indentation and without blanks at
line ends, whichever side is the target.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from engine.merge.packing import pack, unpack
from engine.merge.text import ConflictHunk, Lines, split_lines

_VERSION = 1


class Remembered(NamedTuple):
    """One answer: the text without its indentation, how often it was given, and when in words."""

    key: str
    text: bytes
    times: int
    note: str
    confirmed: bool


@dataclass(frozen=True)
class Memory:
    """The remembered answers, by the keys of their hunks."""

    answers: Mapping[str, Remembered] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Remembered]:
        return iter(self.answers.values())

    def learned(self, hunk: ConflictHunk, text: bytes, *, note: str = "") -> "Memory":
        """With this answer for the hunk; another answer than the one known takes its place."""
        key, indent = memory_key(hunk), _indent(hunk)
        plain = _dedented(text, indent)
        if plain is None:
            return self
        known = self.answers.get(key)
        again = known is not None and known.text == plain
        entry = Remembered(
            key=key,
            text=plain,
            times=known.times + 1 if known and again else 1,
            note=note,
            confirmed=bool(known and again and known.confirmed),
        )
        return Memory({**self.answers, key: entry})

    def recall(self, hunk: ConflictHunk) -> tuple[bytes, Remembered] | None:
        """The answer for this hunk with the hunk's own indentation, and what is known of it."""
        known = self.answers.get(memory_key(hunk))
        if known is None:
            return None
        indent = _indent(hunk)
        lines = (indent + line if line.strip() else line for line in split_lines(known.text))
        return b"".join(lines), known

    def confirmed(self, key: str) -> "Memory":
        """With this answer marked as looked at and right."""
        return Memory({**self.answers, key: self.answers[key]._replace(confirmed=True)})

    def forgotten(self, key: str) -> "Memory":
        """Without this answer."""
        return replace(
            self, answers={name: kept for name, kept in self.answers.items() if name != key}
        )

    def to_json(self) -> dict[str, object]:
        """The answers as plain data for `json`."""
        return {
            "version": _VERSION,
            "answers": [{**known._asdict(), "text": pack(known.text)} for known in self],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> "Memory":
        """The memory that `to_json` wrote."""
        answers = data.get("answers")
        if data.get("version") != _VERSION or not isinstance(answers, list):
            raise ValueError(f"a merge memory of version {data.get('version')!r}")
        known = (Remembered(**{**answer, "text": unpack(answer["text"])}) for answer in answers)
        return cls({answer.key: answer for answer in known})


def memory_key(hunk: ConflictHunk) -> str:
    """Return the key under which a hunk is remembered."""
    indent = _indent(hunk)
    base, *sides = (_normal(lines, indent) for lines in (hunk.base, hunk.target, hunk.incoming))
    name = hashlib.blake2b(digest_size=16)
    for text in (base, *sorted(sides)):
        name.update(b"%d:" % len(text))
        name.update(text)
    return name.hexdigest()


def _normal(lines: Lines, indent: bytes) -> bytes:
    return b"\n".join(line.removeprefix(indent).rstrip() for line in lines)


def _indent(hunk: ConflictHunk) -> bytes:
    """The blanks that every line of the three texts begins with."""
    said = [line for line in (*hunk.base, *hunk.target, *hunk.incoming) if line.strip()]
    if not said:
        return b""
    first, last = min(said), max(said)
    same = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
        min(len(first), len(last)),
    )
    shared = first[:same]
    return shared[: len(shared) - len(shared.lstrip(b" \t"))]


def _dedented(text: bytes, indent: bytes) -> bytes | None:
    """The text without that indentation; None where a line of it does not have it."""
    lines = split_lines(text)
    if any(line.strip() and not line.startswith(indent) for line in lines):
        return None
    return b"".join(line.removeprefix(indent) for line in lines)
