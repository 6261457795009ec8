"""From inks to terminal styles, for one theme and one kind of terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.color import Color
from rich.style import Style

from tui.ink import Ink, Role, that_does
from tui.theming import Theme

if TYPE_CHECKING:  # the first frame needs nothing of the engine
    from engine.terminal.pens import Color as TerminalColor
    from engine.terminal.pens import Pen

_WORDS = (Role.ADDED_WORD, Role.REMOVED_WORD)
_LINE_GROUNDS = (Role.ADDED_GROUND, Role.REMOVED_GROUND)
_BELOW_TRUECOLOR = {
    True: {Role.SELECTION: 236, Role.ADDED_WORD: 22, Role.REMOVED_WORD: 88},
    False: {Role.SELECTION: 254, Role.ADDED_WORD: 157, Role.REMOVED_WORD: 217},
}
"""The grounds that stay apart on 256 colors; line grounds would fall together and are left out."""
_PLAIN_FILLS = frozenset(
    {
        Role.BACKGROUND,
        Role.SELECTION,
        Role.WAITING_FILL,
        Role.CLASH,
        Role.FAILED,
        Role.WAITING,
        Role.ACCENT,
        Role.MUTED,
    }
)
_MOST_STYLES = 4096


class Palette:
    """Inks as terminal styles, for one theme and one kind of terminal."""

    def __init__(self, theme: Theme, *, is_plain: bool = False, has_truecolor: bool = True) -> None:
        self.theme = theme
        self.is_plain = is_plain
        self.has_truecolor = has_truecolor
        self._styles: dict[Ink, Style] = {}

    def style(self, ink: Ink) -> Style:
        """The style of an ink; what a click on it means has none."""
        ink = that_does(ink, "") if ink.does else ink
        style = self._styles.get(ink)
        if style is None:
            style = self._plain(ink) if self.is_plain else self._colored(ink)
            if len(self._styles) > _MOST_STYLES:  # a program may draw in any color there is
                self._styles.clear()
            self._styles[ink] = style = _drawn(style, ink.pen, self.is_plain) if ink.pen else style
        return style

    @property
    def paper(self) -> Style:
        """The style of an empty cell."""
        return self.style(Ink())

    def _plain(self, ink: Ink) -> Style:
        changed = ink.ground in _WORDS
        return Style(
            bold=ink.bold or changed,
            italic=ink.italic,
            underline=ink.underline or changed,
            reverse=(ink.ground in _PLAIN_FILLS) != ink.is_selected,
        )

    def _colored(self, ink: Ink) -> Style:
        ground = ink.ground or Role.BACKGROUND
        is_marked = ink.is_selected and ground is Role.SELECTION  # on the row under a cursor
        if ink.is_selected:
            ground = Role.SELECTION
        return Style(
            color=self._color(ink.role),
            bgcolor=self._ground(ground),
            reverse=is_marked,
            bold=ink.bold,
            italic=ink.italic,
            underline=ink.underline,
        )

    def _color(self, role: Role) -> Color:
        return Color.parse(self.theme.colors[role])

    def _ground(self, role: Role) -> Color:
        if not self.has_truecolor:
            if role in _LINE_GROUNDS:
                role = Role.BACKGROUND
            fixed = _BELOW_TRUECOLOR[self.theme.is_dark].get(role)
            if fixed is not None:
                return Color.from_ansi(fixed)
        return self._color(role)


def _drawn(style: Style, pen: Pen, is_plain: bool) -> Style:  # noqa: FBT001 - a private step
    """Return a style as a program in a terminal wants it drawn."""
    color, ground = (None, None) if is_plain else (_color(pen.color), _color(pen.ground))
    return style + Style(
        color=color,
        bgcolor=None if style.reverse else ground,
        bold=pen.is_bold,
        dim=pen.is_dim,
        italic=pen.is_italic,
        underline=pen.is_underlined,
        strike=pen.is_struck,
        conceal=pen.is_hidden,
        reverse=pen.is_reversed != bool(style.reverse),
    )


def _color(color: TerminalColor) -> Color | None:
    if color is None:
        return None
    return Color.from_rgb(*color) if isinstance(color, tuple) else Color.from_ansi(color)
