"""Export an attempt as an asciicast (version 2), for the players that people have already.

A program that had a terminal of its own is played as it wrote, byte for byte. What any other wrote
is a protocol more often than not: of those the log is played, a line at a time.
"""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import TYPE_CHECKING

from engine.keeper.recording import NOTE, OUT, began_at, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.messages.logs import LogLine

_ROWS, _COLUMNS = 40, 120


def cast_of_terminal(recording: Path) -> bytes:
    """Return a cast of what a program wrote on its terminal."""
    frames, _ = parse(recording.read_bytes())
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    notes = (began_at(data) for _, stream, data in frames if stream == NOTE)
    began = next((at for at in notes if at is not None), 0.0)
    told = ((at, decode(data)) for at, stream, data in frames if stream == OUT)
    return _cast(began, told)


def cast_of_log(lines: Sequence[LogLine]) -> bytes:
    """Return a cast of a log; nothing in it acts on the terminal that plays it."""
    began = lines[0].at if lines else 0.0
    told = ((line.at - began, f"{_shown(line.text)}\r\n") for line in lines)
    return _cast(began, told)


def _cast(began: float, told: Iterable[tuple[float, str]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in _rows(began, told)).encode()


def _rows(began: float, told: Iterable[tuple[float, str]]) -> Iterator[object]:
    yield {"version": 2, "width": _COLUMNS, "height": _ROWS, "timestamp": int(began)}
    latest = 0.0
    for at, text in told:
        latest = max(latest, at)  # a player takes no step back
        if text:
            yield [round(latest, 6), "o", text]


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
