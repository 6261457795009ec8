"""Draw a braid as rows: a lane for the branch and one for each strand, with words beside them.

Lanes are used again: a strand takes the first one that is free. A row is plain data, so that a
terminal and a picture draw the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.api import Braid, StrandTurn, TurnKind
from tui.words.clean import clean, clean_name
from tui.words.cutting import cut_end
from tui.words.figures import cost, some

BRANCH = 0
_LONGEST = 60
_SIGNS = {
    TurnKind.BEGAN: "begins",
    TurnKind.CONFLICTED: "meets a conflict",
    TurnKind.LANDED: "lands",
    TurnKind.UNDONE: "is undone",
    TurnKind.ENDED: "ends",
}


@dataclass(frozen=True, kw_only=True)
class BraidRow:
    """One turn, drawn.

    Attributes:
        lane: The lane of the strand that turns; `BRANCH` where only the branch does.
        above: The lanes with a strand above this row, without the branch.
        below: Those with one below it.
        words: What is said of it.
    """

    kind: TurnKind
    lane: int
    above: frozenset[int]
    below: frozenset[int]
    words: str


def braid_rows(braid: Braid) -> list[BraidRow]:
    """The rows of a braid, from the oldest turn to the newest."""
    lanes: dict[str, int] = {}
    rows = []
    for turn in braid.turns:
        above = frozenset(lanes.values())
        lane = lanes.get(turn.worker, BRANCH)
        if turn.kind is TurnKind.BEGAN and lane == BRANCH:
            lane = lanes[turn.worker] = _free(above)
        elif turn.kind in {TurnKind.LANDED, TurnKind.ENDED}:
            lanes.pop(turn.worker, None)
        elif turn.kind is TurnKind.UNDONE and lane == BRANCH:
            lane = lanes[turn.worker] = _free(above)
        below = frozenset(lanes.values())
        words = _words(braid, turn)
        rows.append(BraidRow(kind=turn.kind, lane=lane, above=above, below=below, words=words))
    return rows


def _free(taken: frozenset[int]) -> int:
    return next(lane for lane in range(1, len(taken) + 2) if lane not in taken)


def _words(braid: Braid, turn: StrandTurn) -> str:
    one = braid.attempts.get((turn.worker, turn.attempt))
    parts = [f"{turn.worker}@{turn.attempt} {_SIGNS[turn.kind]}"]
    if one is None:
        return parts[0]
    if turn.kind is TurnKind.BEGAN:
        parts.append(clean_name(" ".join(filter(None, (one.agent, one.model)))))
        before = braid.attempts.get((turn.worker, turn.attempt - 1))
        if before is not None and before.error:
            parts.append(f"after: {cut_end(clean(' '.join(before.error.split())), _LONGEST)}")
    elif turn.kind is TurnKind.CONFLICTED:
        parts.append(some(one.conflicts, "file"))
    elif turn.kind is TurnKind.LANDED:
        parts += [f"+{one.insertions} -{one.deletions}", clean_name(one.target)]
        parts.append(f"by {clean_name(one.reviewer)}" if one.reviewer else "by itself")
        parts.append(cost(one.usd) if one.usd else "")
    elif turn.kind is TurnKind.ENDED:
        is_users = one.cause == "USER" and one.reviewer
        why = f"by {clean_name(one.reviewer)}" if is_users else one.cause.lower()
        parts += [one.outcome, why, cost(one.usd) if one.usd else ""]
    return "  ".join(filter(None, parts))


@dataclass(frozen=True, kw_only=True)
class _Pens:
    """The characters that draw: of Unicode, or of ASCII."""

    line: str = "│"
    across: str = "─"
    cross: str = "┼"
    joint: str = "├"
    out: str = "╮"
    into: str = "╯"
    knot: str = "●"
    clash: str = "✗"
    end: str = "╵"
    undone: str = "○"


_ASCII = _Pens(
    line="|", across="-", cross="+", joint="+", out=".", into="'", knot="*", clash="x", end="'",
    undone="o",
)  # fmt: skip


def braid_text(braid: Braid, *, is_unicode: bool = True) -> Iterator[str]:
    """A braid in lines for a terminal."""
    pens = _Pens() if is_unicode else _ASCII
    rows = braid_rows(braid)
    width = max((max(row.above | row.below | {row.lane}) for row in rows), default=0)
    for row in rows:
        lanes = [_lane(row, lane, pens) for lane in range(1, width + 1)]
        yield f"{_branch(row, pens)}{''.join(lanes)}  {row.words}".rstrip()


def _reaches(row: BraidRow) -> bool:
    """Say if the strand is tied to the branch in this row."""
    is_new = row.lane not in row.above
    return row.kind is TurnKind.LANDED or (is_new and row.lane != BRANCH)


def _branch(row: BraidRow, pens: _Pens) -> str:
    if row.kind is TurnKind.LANDED:
        return pens.knot
    return pens.joint if _reaches(row) else pens.line


def _lane(row: BraidRow, lane: int, pens: _Pens) -> str:
    """One lane of a row, with what comes across from the branch on its left."""
    is_crossed = _reaches(row) and lane < row.lane
    left = pens.across if _reaches(row) and lane <= row.lane else " "
    if lane != row.lane:
        if lane in row.above:
            return left + (pens.cross if is_crossed else pens.line)
        return left + (pens.across if is_crossed else " ")
    if _reaches(row):
        return left + (pens.into if row.kind is TurnKind.LANDED else pens.out)
    return left + _sign(row, pens)


def _sign(row: BraidRow, pens: _Pens) -> str:
    return {
        TurnKind.CONFLICTED: pens.clash,
        TurnKind.ENDED: pens.end,
        TurnKind.UNDONE: pens.undone,
    }.get(row.kind, pens.knot)
