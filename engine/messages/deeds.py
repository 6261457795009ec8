"""Fold a log to what a worker did lately: its words, its tools, and long outputs.

A long output is one deed, however long it is: it never pushes out what the agent said.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from engine.messages.logs import LogKind
from engine.values import dataclass

MOST = 12
"""So many deeds are told, and so many of the last lines of an output."""
_LONGEST = 2000
_LOOKED_AT = 16_000
_BAD = re.compile(r"\b(?:FAILED|FAIL|ERROR|Error:|Traceback|fatal:|panic:)|^E  ", re.MULTILINE)
_RESULT = re.compile(r"(?:exit \d+|done|failed|denied)(?:, [\d.:]+(?: s)?)?")
Piece = tuple[float, LogKind, str, int]
"""Lines as they came, as one text, and how many: taken apart only if they are read at all."""
_OUTPUTS = frozenset({LogKind.TOOL_END, LogKind.ERROR, LogKind.OUTPUT})


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One thing that a worker did, as a tile shows it.

    Attributes:
        at: When it began, in wall-clock seconds.
        text: What was said, or the tool and what it is about; empty for output of no tool.
        result: How a tool ended: `exit 1, 3.1 s`.
        error: The first line of the output that tells of a failure.
        tail: The last lines of the output.
        count: How many lines of output there were.
    """

    at: float
    kind: LogKind
    text: str = ""
    result: str = ""
    error: str = ""
    tail: tuple[str, ...] = ()
    count: int = 0


def lately(newest_first: Iterable[Piece]) -> tuple[Deed, ...]:
    """Return what was done last, oldest first, from the pieces of a log, newest first."""
    return tuple(reversed(list(islice(_deeds(newest_first), MOST))))


def tells_failure(line: str) -> bool:
    """Return whether a line of output tells of a failure."""
    return _BAD.search(line) is not None


def _deeds(pieces: Iterable[Piece]) -> Iterator[Deed]:
    """Yield each run of pieces that belong together; a tool has its output behind it."""
    run: list[Piece] = []
    for piece in pieces:
        if run and not _goes_on(piece[1], run[-1][1]):
            yield _deed(run)
            run = []
        run.append(piece)
    if run:
        yield _deed(run)


def _goes_on(kind: LogKind, later: LogKind) -> bool:
    """Return whether a piece begins what a later one goes on with."""
    if later in {LogKind.TOOL_END, LogKind.ERROR} and kind is LogKind.TOOL:
        return True
    return later in _OUTPUTS and kind in _OUTPUTS


def _deed(run: list[Piece]) -> Deed:
    """Return the deed of pieces that belong together, newest first."""
    at, kind, first, _ = run[-1]
    if kind not in _OUTPUTS | {LogKind.TOOL}:
        return Deed(at=at, kind=kind, text=first[-_LONGEST:])
    is_tool = kind is LogKind.TOOL
    outputs = run[:-1] if is_tool else run
    result = ""
    if is_tool and outputs and _RESULT.fullmatch(outputs[-1][2]):
        result, outputs = outputs[-1][2], outputs[:-1]
    text = "\n".join(said for _, _, said, _ in reversed(outputs[:MOST]))[-_LOOKED_AT:]
    lines = [line[:_LONGEST] for line in text.split("\n") if line.strip()]
    return Deed(
        at=at,
        kind=kind,
        text=first[:_LONGEST] if is_tool else "",
        result=result,
        error=next(filter(tells_failure, lines), ""),
        tail=tuple(lines[-MOST:]),
        count=sum(count for *_, count in outputs),
    )
