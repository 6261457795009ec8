"""The tabs of a worker beside its log: each says which rows it shows."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.messages.results import WorkerView
from tui.ink import Page, Row
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


class Tab(NamedTuple):
    """A tab: its title, and its rows."""

    title: str
    draw: Callable[[Shown], Page | list[Row]]


TABS: Mapping[str, Tab] = {
    "events": Tab(
        "Events", lambda of: events_tab(of.scene.told, of.worker.worker, of.scene.now, of.cells)
    ),
    "prompt": Tab("Prompt", lambda of: prompt_tab(of.worker, of.cells)),
    "limits": Tab("Limits", lambda of: limits_tab(of.worker, of.cells)),
    ATTEMPTS: Tab("Attempts", lambda of: attempts_tab(of.worker, of.scene, of.attempt, of.cells)),
}
TITLES = {LOG: "Log"} | {name: tab.title for name, tab in TABS.items()}
