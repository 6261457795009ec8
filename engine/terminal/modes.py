"""Hold the modes of a terminal that a program sets, and that whoever types must know."""

from dataclasses import dataclass

_SWITCHES = {
    1: "has_application_cursor",
    6: "is_origin_relative",
    7: "wraps",
    25: "shows_cursor",
    1004: "tells_focus",
    1006: "has_long_mouse",
    2004: "takes_paste",
}
_MOUSE = frozenset({9, 1000, 1002, 1003})
_ANSI = {4: "inserts", 20: "breaks_lines"}


@dataclass
class Modes:
    """Hold what a program has switched on.

    Attributes:
        mouse: The number of the mode by which it wants to hear of the mouse; 0 for none.
        has_application_cursor: Arrow keys are reported as those of an application.
        has_long_mouse: The mouse is reported in the long form, which has no limit of columns.
        takes_paste: A paste is reported with marks around it.
        breaks_lines: A line feed also returns to the first column.
    """

    has_application_cursor: bool = False
    is_origin_relative: bool = False
    wraps: bool = True
    shows_cursor: bool = True
    tells_focus: bool = False
    has_long_mouse: bool = False
    takes_paste: bool = False
    inserts: bool = False
    breaks_lines: bool = False
    mouse: int = 0

    def switch(self, number: int, *, on: bool, is_private: bool) -> None:
        """Switch a mode; one that is not known stays what it is."""
        name = (_SWITCHES if is_private else _ANSI).get(number)
        if name is not None:
            setattr(self, name, on)
        elif is_private and number in _MOUSE:
            self.mouse = number if on else 0

    def switched(self) -> str:
        """Return the sequences that switch a new terminal to these modes."""
        new = Modes()
        found = ""
        for names, mark in ((_SWITCHES, "?"), (_ANSI, "")):
            for number, name in names.items():
                is_on = getattr(self, name)
                if is_on != getattr(new, name):
                    found += f"\x1b[{mark}{number}{'h' if is_on else 'l'}"
        return found + (f"\x1b[?{self.mouse}h" if self.mouse else "")
