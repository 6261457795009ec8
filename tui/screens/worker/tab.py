"""Stand for one tab of a worker: a controller that draws rows."""

from typing import ClassVar, NamedTuple

from engine.messages.results import WorkerView
from tui.ink import Row
from tui.kit.screen import Controller
from tui.words.scene import Scene


class Shown(NamedTuple):
    """Hold what a tab may draw from; `attempt` is the one that is looked at."""

    worker: WorkerView
    scene: Scene
    attempt: int
    cells: int


class Tab(Controller):
    """Rows about one worker. A tab may have keys of its own, as any controller."""

    name: ClassVar[str]
    title: ClassVar[str]

    def draw(self, of: Shown) -> list[Row]:
        """Return the rows."""
        raise NotImplementedError
