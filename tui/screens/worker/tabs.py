"""The tabs of a worker beside its log: each says which rows it shows."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from engine.messages.results import WorkerView
from tui.ink import Row
from tui.screens.worker.page import attempts_tab, limits_tab, prompt_tab
from tui.words.happened import events_tab
from tui.words.scene import Scene

LOG, ATTEMPTS = "log", "attempts"


class Shown(NamedTuple):
    """Hold what a tab may draw from; `attempt` is the one that is looked at."""

    worker: WorkerView
    scene: Scene
    attempt: int
    cells: int


class Drawn(NamedTuple):
    """Hold the rows of a tab, and what a click on each of them means, if anything."""

    rows: Sequence[Row]
    targets: Sequence[str] = ()


class Tab(NamedTuple):
    """A tab: its title, and its rows."""

    title: str
    draw: Callable[[Shown], Drawn]


def _events(of: Shown) -> Drawn:
    return Drawn(events_tab(of.scene.told, of.worker.worker, of.scene.now, of.cells))


def _attempts(of: Shown) -> Drawn:
    rows = attempts_tab(of.worker, of.scene, of.attempt, of.cells)
    return Drawn(rows, [f"attempt:{number}" if number else "" for number in range(len(rows))])


TABS: Mapping[str, Tab] = {
    "events": Tab("Events", _events),
    "prompt": Tab("Prompt", lambda of: Drawn(prompt_tab(of.worker, of.cells))),
    "limits": Tab("Limits", lambda of: Drawn(limits_tab(of.worker, of.cells))),
    ATTEMPTS: Tab("Attempts", _attempts),
}
TITLES = {LOG: "Log"} | {name: tab.title for name, tab in TABS.items()}
