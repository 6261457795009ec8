"""Show the lines round a conflict, with conflicts near it as they are decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tui.screens.review.offers import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import HunkView

_MOST = 3
"""So many lines round a conflict are known."""


def gap(hunk: HunkView, following: HunkView) -> int:
    """Return how many lines lie between two conflicts."""
    return following.line - hunk.line - _height(hunk)


def in_result(hunks: Sequence[HunkView], place: int) -> HunkView:
    """A conflict as it stands in the result: a neighbor's lines are those that were chosen.

    A neighbor that is open ends what is known of the result on its side.
    """
    above, below = _above(hunks, place), _below(hunks, place)
    line = line_in_result(hunks, place)
    return replace(hunks[place], line=line, before=above, after=below)


def line_in_result(hunks: Sequence[HunkView], place: int) -> int:
    """Return the line where a conflict begins once those above it are as they were decided."""
    decided = [(one, one.result) for one in hunks[:place]]
    grown = (len(lines_of(text)) - _height(one) for one, text in decided if text is not None)
    return hunks[place].line + sum(grown)


def _above(hunks: Sequence[HunkView], place: int) -> tuple[str, ...]:
    hunk = hunks[place]
    apart = gap(hunks[place - 1], hunk) if place else _MOST
    if apart >= _MOST:
        return hunk.before
    near, last = hunk.before[len(hunk.before) - apart :], hunks[place - 1].result
    if last is None:
        return near
    return (*_above(hunks, place - 1), *lines_of(last), *near)[-_MOST:]


def _below(hunks: Sequence[HunkView], place: int) -> tuple[str, ...]:
    hunk = hunks[place]
    apart = gap(hunk, hunks[place + 1]) if place + 1 < len(hunks) else _MOST
    if apart >= _MOST:
        return hunk.after
    near, following = hunk.after[:apart], hunks[place + 1].result
    if following is None:
        return near
    return (*near, *lines_of(following), *_below(hunks, place + 1))[:_MOST]


def _height(hunk: HunkView) -> int:
    return sum(line.sign != "-" for line in hunk.target)
