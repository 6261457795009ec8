"""Conflicts made by two independent edits of real code, with the text that has both.

What a human would answer is known here because it is how the conflict was made; so this shows
whether the rules work, and says nothing about how often humans answer so.
"""

import inspect
import random
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

from engine.merge import ConflictHunk, merge_texts

Edit = Callable[[str], str]


class Case(NamedTuple):
    """A hunk, the text that has both edits, and what the edits were."""

    hunk: ConflictHunk
    answer: bytes
    story: str


def _renamed(line: str) -> str:
    return re.sub(r"\bself\b", "this", line)


def _with_argument(line: str) -> str:
    return re.sub(r"\)(\s*(?:->.*)?:\s*)$", r", extra=None)\1", line.rstrip()) + "\n"


def _indented(line: str) -> str:
    return "    " + line


def _remarked(line: str) -> str:
    return line.rstrip() + "  # checked\n"


def _negated(line: str) -> str:
    return re.sub(r"\b(if|while) (?!not)", r"\1 not ", line)


def _quoted(line: str) -> str:
    return line.replace("'", '"')


def _numbered(line: str) -> str:
    return re.sub(r"\b\d+\b", lambda number: str(int(number[0]) + 7), line)


EDITS: tuple[Edit, ...] = (
    _renamed,
    _with_argument,
    _indented,
    _remarked,
    _negated,
    _quoted,
    _numbered,
)


def cases(modules: tuple[ModuleType, ...], *, seed: int = 1, most: int = 400) -> Iterator[Case]:
    """Conflicts from the source of these modules: two edits of one line, in either order alike."""
    dice = random.Random(seed)
    lines = [
        line for module in modules for line in inspect.getsource(module).splitlines(keepends=True)
    ]
    found = 0
    while found < most:
        line = dice.choice(lines)
        one, other = dice.sample(EDITS, 2)
        case = _case(line, one, other)
        if case:
            found += 1
            yield case


def _case(line: str, one: Edit, other: Edit) -> Case | None:
    """The conflict of two edits, if both change the line and their order does not matter."""
    mine, theirs, both = one(line), other(line), one(other(line))
    if line in (mine, theirs) or both != other(one(line)) or mine == theirs:
        return None
    texts = (f"above\n{text}below\n".encode() for text in (line, mine, theirs))
    (hunk,) = merge_texts(*texts).hunks
    return Case(hunk, both.encode(), f"{one.__name__} and {other.__name__}")
