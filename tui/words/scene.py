"""Everything that a screen may draw from at one moment, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.messages.events import Told
from engine.messages.results import EngineView, RunView
from tui.ink import Role


class Banner(NamedTuple):
    """Take the place of the run line when something is wrong with everything."""

    chip: str
    sentence: str
    role: Role = Role.FAILED


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One moment of the console.

    Attributes:
        now: Wall-clock seconds; all ages and durations are counted to it.
        cpu: Per worker, its latest shares of one core in percent, oldest first.
        told: The latest events of the run, newest last.
        marks: Workers that the user has marked.
        fresh: Workers whose output arrived within the last half second.
        risen: Workers that began to need a human a moment ago.
        widths: The cells that columns were dragged to, by their names.
        keys: The key of each idea, as it is written on screen.
        opened: Workers whose diff has been opened: their changes may be approved.
        forbidden: Ideas that this console refuses whatever is under the cursor.
        is_alone: There is nothing but the screen that the console began on.
        is_plain: Without colors, beads are the phases' glyphs instead of blocks.
    """

    view: EngineView
    run: RunView | None
    now: float
    cpu: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    told: tuple[Told, ...] = ()
    marks: frozenset[str] = frozenset()
    fresh: frozenset[str] = frozenset()
    risen: frozenset[str] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    opened: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    banner: Banner | None = None
    is_alone: bool = False
    is_plain: bool = False

    def key(self, idea: str) -> str:
        """The key of an idea, as it is written on screen."""
        return self.keys.get(idea, "")
