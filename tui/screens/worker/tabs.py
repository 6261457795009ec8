"""The tabs of a worker beside its log."""

from tui.ink import Row
from tui.screens.worker.environment import Environment
from tui.screens.worker.page import attempts_tab, limits_tab, prompt_tab
from tui.screens.worker.shells import SHELL
from tui.screens.worker.tab import Shown, Tab
from tui.screens.worker.takeover import SCREEN
from tui.words.happened import events_tab


class Events(Tab):
    """Show what was reported of the worker."""

    name, title = "events", "Events"

    def draw(self, of: Shown) -> list[Row]:
        return events_tab(of.scene.told, of.worker.worker, of.scene.now, of.cells)


class Prompt(Tab):
    """The prompt as its agent got it."""

    name, title = "prompt", "Prompt"

    def draw(self, of: Shown) -> list[Row]:
        return prompt_tab(of.worker, of.cells)


class Limits(Tab):
    """Show how each of its limits holds."""

    name, title = "limits", "Limits"

    def draw(self, of: Shown) -> list[Row]:
        return limits_tab(of.worker, of.cells)


class Attempts(Tab):
    """Its attempts; a click points at one, and a second one opens its log."""

    name, title = "attempts", "Attempts"

    def draw(self, of: Shown) -> list[Row]:
        return attempts_tab(of.worker, of.scene, of.attempt, of.cells)


LOG = "log"
TABS = (Events, Prompt, Limits, Attempts, Environment)
TITLES = {LOG: "Log"} | {tab.name: tab.title for tab in TABS} | {SHELL: "Shell", SCREEN: "Screen"}
