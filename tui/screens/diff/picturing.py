"""Show a picture of a change as a picture: before and after, on a terminal that can draw it."""

import os
import struct
import sys
import termios
from functools import partial
from io import BytesIO
from math import sqrt
from typing import NamedTuple

from engine.messages.diffs import FileSides
from engine.messages.pictures import Picture, picture_of
from tui.kit.outside import in_terminal
from tui.kit.screen import Board, Controller
from tui.screens.diff.graphics import (
    CLOSE,
    FORGET,
    OPEN,
    Terminal,
    ask_terminal,
    at,
    kitty_pixels,
    kitty_png,
    raw_mode,
    sixel_pixels,
    wait_key,
    write_all,
)
from tui.screens.diff.layout import Part
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.png import MOST_PIXELS, Raster, png_pixels
from tui.screens.diff.reading import Reading
from tui.words.clean import clean
from tui.words.cutting import cut_path

_CANNOT = "this terminal draws no pictures; one with kitty's graphics or sixels does"
_TOP = 4
"""The row that pictures begin at; above it stands what they are."""
_MOST_LARGER = 8
_MOST_HANDED = 50_000_000
"""So many pixels are handed to a terminal that decodes them itself, four bytes for each."""
_MOST_SIXELS = 1_000_000
"""So many pixels are drawn as sixels: they take some two seconds."""
_PILLOW = {"JPEG", "WEBP", "GIF"}
_UNREADABLE = (OSError, ValueError, SyntaxError, EOFError, OverflowError, struct.error)
"""The errors of Pillow with a damaged file."""


class _Side(NamedTuple):
    """One side of a picture: its name for people, its bytes, and what they say they are."""

    name: str
    data: bytes
    picture: Picture | None


class Picturing(Controller):
    """Show the picture under the cursor, until a key is pressed."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._terminal: Terminal | None = None

    @property
    def pane(self) -> DiffPane:
        """Return what is on screen."""
        return self.screen.does(Reading).pane

    @property
    def is_here(self) -> bool:
        """Say if the cursor is on a picture."""
        place, diff = self.pane.place, self.pane.diff
        if place is None or diff is None or place.part not in {Part.FILE, Part.NOTE}:
            return False
        file = diff.files[place.file]
        return file.is_picture and not file.hunks

    def show(self) -> None:
        """Ask for both sides, and draw them."""
        if self._terminal is not None and not self._terminal.can_draw:
            self.refuse("open", _CANNOT)
            return
        self.screen.begin_outside(partial(self._show, self.run_id, self.pane.path))

    async def _show(self, run: str, path: str) -> None:
        reading = self.screen.does(Reading)
        found = await self.session.bridge.sides(
            run,
            self.here().worker,
            (path,),
            attempt=reading.attempt,
            against=reading.against,
        )
        if isinstance(found, str):
            self.refuse("open", found)
        elif not found or found[0].is_cut:
            self.refuse("open", "it is too large to be shown")
        else:
            problem = await in_terminal(self.screen.app, partial(self._draw, found[0]))
            if problem:
                self.refuse("open", problem)

    def _draw(self, file: FileSides) -> str:
        """Draw on the terminal that is given away; says why that cannot be, or nothing."""
        try:
            line = os.open(os.ttyname(sys.__stdin__.fileno()), os.O_RDWR | os.O_NOCTTY)  # type: ignore[union-attr]
        except (OSError, ValueError):
            return "there is no terminal to draw on"
        try:
            with raw_mode(line):
                terminal = self._terminal = ask_terminal(line)
                if not terminal.can_draw:
                    return _CANNOT
                write_all(line, OPEN)
                try:
                    write_all(line, page(file, terminal))
                    wait_key(line)
                finally:
                    write_all(line, (FORGET if terminal.has_kitty else b"") + CLOSE)
        except (OSError, termios.error) as error:
            return f"the terminal does not answer: {error}"
        finally:
            os.close(line)
        return ""


def page(file: FileSides, terminal: Terminal) -> bytes:
    """Return what draws both sides of a picture side by side, in the same scale."""
    sides = [
        _Side(name, data, picture_of(data))
        for name, data in (("before", file.old), ("after", file.new))
        if data is not None
    ]
    columns, rows = terminal.cells
    box = (columns // max(len(sides), 1) - 2, rows - _TOP)
    title = f"{cut_path(clean(file.path), max(columns - 20, 10))}   any key closes it"
    found = [at(2, 1), title.encode()]
    scale = min((_scale(side.picture, box, terminal) for side in sides), default=1.0)
    for number, side in enumerate(sides):
        column = 2 + number * (columns // len(sides))
        found.append(at(column, 2))
        found.append(_label(side, scale)[: box[0]].encode())
        found.append(at(column, _TOP))
        found.append(_drawn(side, scale, terminal, box))
    return b"".join(found)


def _scale(picture: Picture | None, box: tuple[int, int], terminal: Terminal) -> float:
    """Return how much smaller it must be to fit; a small one is drawn some whole times larger."""
    if picture is None:
        return _MOST_LARGER
    cell = terminal.cell
    fits = min(box[0] * cell[0] / picture.width, box[1] * cell[1] / picture.height)
    if not terminal.has_kitty:
        fits = min(fits, sqrt(_MOST_SIXELS / (picture.width * picture.height)))
    return fits if fits < 1 else min(int(fits), _MOST_LARGER)


def _label(side: _Side, scale: float) -> str:
    if side.picture is None:
        return f"{side.name}: no picture"
    size = f"{side.picture.width} × {side.picture.height}"  # noqa: RUF001 - the sign for it
    larger = f", {scale:.0f} times as large" if scale > 1 else ""
    smaller = f", at {scale:.0%}" if scale < 1 else ""
    return f"{side.name}: {side.picture.kind}, {size} pixels{larger}{smaller}"


def _drawn(side: _Side, scale: float, terminal: Terminal, box: tuple[int, int]) -> bytes:
    """Return what draws one side; in words, why that cannot be."""
    if side.picture is None:
        return b""
    if side.picture.width * side.picture.height > _MOST_HANDED:
        return _too_many(_MOST_HANDED).encode()
    width = max(round(side.picture.width * scale), 1)
    height = max(round(side.picture.height * scale), 1)
    cells = tuple(
        -(-size // cell) for size, cell in zip((width, height), terminal.cell, strict=True)
    )
    size = (min(cells[0], box[0]), min(cells[1], box[1]))
    if terminal.has_kitty and side.picture.kind == "PNG":
        return kitty_png(side.data, *size)
    raster = _pixels(side)
    if isinstance(raster, str):
        return raster.encode()
    if terminal.has_kitty:
        return kitty_pixels(raster, *size)
    return sixel_pixels(raster, width, height)


def _pixels(side: _Side) -> Raster | str:
    if side.picture is None:
        return "it is not a picture"
    if side.picture.kind == "PNG":
        found = png_pixels(side.data)
        return f"it cannot be drawn: {found}" if isinstance(found, str) else found
    if side.picture.width * side.picture.height > MOST_PIXELS:
        return _too_many(MOST_PIXELS)
    try:
        from PIL import Image  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        return f"drawing a {side.picture.kind} needs Pillow: pip install 'plait[pictures]'"
    try:
        with Image.open(BytesIO(side.data), formats=sorted(_PILLOW)) as opened:
            if opened.width * opened.height > MOST_PIXELS:  # its head may say something else
                return _too_many(MOST_PIXELS)
            made = opened.convert("RGBA")
            return Raster(made.width, made.height, made.tobytes())
    except (*_UNREADABLE, Image.DecompressionBombError) as error:
        return f"it cannot be drawn: {clean(str(error))}"


def _too_many(most: int) -> str:
    return f"it has more than {most // 1_000_000} million pixels"
