"""`plait braid`: how the strands of a run were woven into its branch, in a terminal or as SVG."""

import argparse
from functools import partial
from html import escape
from pathlib import Path

from engine.api import Braid, TurnKind, read_braid
from tui.commands.base import EXIT_OK, add_repo, in_loop, put, say
from tui.commands.streams import is_unicode
from tui.words.braid import BRANCH, BraidRow, braid_rows, braid_text
from tui.words.clean import clean

_STEP, _LANE, _LEFT = 22, 16, 18
_COLORS = ("#2a9d8f", "#e76f51", "#5b8def", "#c77dff", "#e9b44c", "#52b788", "#ef476f", "#8d99ae")
_TRUNK = "#6c757d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the run, and where the picture goes."""
    add_repo(parser)
    parser.add_argument("run_id", nargs="?", default="", metavar="RUN")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="a picture instead of text")


def run(args: argparse.Namespace) -> int:
    """Draw, without changing anything."""
    return in_loop(partial(_braid, args))


async def _braid(args: argparse.Namespace) -> int:
    braid = await read_braid(args.repo, args.run_id)
    if args.svg is not None:
        args.svg.write_text(svg(braid), encoding="utf-8")
        put(str(args.svg))
        return EXIT_OK
    put(f"run {braid.run.run} ({clean(braid.run.name)}): {braid.run.outcome}")
    for line in braid_text(braid, is_unicode=is_unicode()):
        put(line)
    if not braid.turns:
        say("no worker has started")
    return EXIT_OK


def svg(braid: Braid) -> str:
    """A braid as a picture that needs nothing beside it."""
    rows = braid_rows(braid)
    lanes = max((max(row.above | row.below | {row.lane}) for row in rows), default=BRANCH)
    text_x = _x(lanes) + _LANE
    width = text_x + 8 * max((len(row.words) for row in rows), default=10)
    height = (len(rows) + 1) * _STEP
    parts = [part for number, row in enumerate(rows) for part in _row(row, number, text_x)]
    trunk = f'<line x1="{_x(0)}" y1="0" x2="{_x(0)}" y2="{height}" stroke="{_TRUNK}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" stroke-width="3" fill="none"'
        ' font-family="ui-monospace, monospace" font-size="13">'
        f"<title>{escape(clean(braid.run.name))} {braid.run.run}</title>"
        '<rect width="100%" height="100%" fill="#fbfbf9"/>'
        f"{trunk}{''.join(parts)}</svg>\n"
    )


def _x(lane: int) -> int:
    return _LEFT + lane * _LANE


def _color(lane: int) -> str:
    return _TRUNK if lane == BRANCH else _COLORS[(lane - 1) % len(_COLORS)]


def _row(row: BraidRow, number: int, text_x: int) -> list[str]:
    """One turn: the lanes that pass, the strand that turns, its words."""
    top, middle, bottom = number * _STEP, number * _STEP + _STEP // 2, (number + 1) * _STEP
    parts = [_path(lane, f"M{_x(lane)} {top}V{bottom}") for lane in sorted(row.above & row.below)]
    lane, x, trunk = row.lane, _x(row.lane), _x(BRANCH)
    if row.kind is TurnKind.LANDED:
        parts.append(_path(lane, f"M{x} {top}C{x} {bottom} {trunk} {top} {trunk} {bottom}"))
        parts.append(f'<circle cx="{trunk}" cy="{bottom}" r="5" fill="{_color(lane)}"/>')
    elif lane not in row.above and lane != BRANCH:
        parts.append(_path(lane, f"M{trunk} {top}C{trunk} {bottom} {x} {top} {x} {bottom}"))
    elif lane not in row.below and lane != BRANCH:
        parts.append(_path(lane, f"M{x} {top}V{middle}m-5 0h10"))
    if row.kind is TurnKind.CONFLICTED:
        cross = f"M{x - 5} {middle - 5}l10 10m0 -10l-10 10"
        parts.append(f'<path d="{cross}" stroke="#d00000"/>')
    parts.append(f'<text x="{text_x}" y="{middle + 5}" fill="#222">{escape(row.words)}</text>')
    return parts


def _path(lane: int, way: str) -> str:
    return f'<path d="{way}" stroke="{_color(lane)}"/>'
