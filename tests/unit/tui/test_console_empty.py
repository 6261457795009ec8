"""A console without a run or a worker: every key says why it does nothing, and none fails."""

import pytest

from engine.messages.results import EngineView
from tests.support.consoles import Console, opened
from tests.support.world import csvlite
from tui.keys import actions_on
from tui.keys.table import SCREENS

pytestmark = [pytest.mark.anyio, pytest.mark.long]
_LEAVE = frozenset({"back", "quit", "quit_now", "to_shell", "detach"})


def _without_cursor(console: Console) -> None:
    console.app.session.worker = ""


VIEWS = {
    "no run": lambda: EngineView(repository="~/src/csvlite"),
    "no cursor": csvlite,
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("screen", SCREENS)
async def test_no_key_fails_where_there_is_nothing_under_the_cursor(screen: str, view: str):
    async with opened(VIEWS[view](), size=(100, 30)) as console:
        await console.do(f"go_{screen}")
        for action in actions_on(screen):
            if view == "no cursor":
                _without_cursor(console)
            if action.idea in _LEAVE:
                continue
            console.screen.action_idea(action.idea)
            await console.pilot.pause()
            assert not console.app.failures, action.id
            if console.app.screen.is_modal or console.screen.box.writing:
                await console.press("escape")
            if console.screen.kind != screen:
                await console.do(f"go_{screen}")
