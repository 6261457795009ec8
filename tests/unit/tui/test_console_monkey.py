"""Any keys in any order: the console goes on, draws the whole screen, and stays clean."""

import os
from dataclasses import replace
from random import Random

import pytest
from textual import events

from engine.messages.results import Badge, EngineView, Question
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import (
    NOW,
    FakePort,
    changed,
    csvlite,
    log_lines,
    many,
    opened,
)
from tui.ink import row_width
from tui.keys import default_keymap
from tui.kit.keyed import KeyedScreen
from tui.kit.screen import BoardScreen

pytestmark = pytest.mark.anyio
_NOT = {"ctrl+q", "ctrl+z", "ctrl+c", "q"}
_KEYS = sorted({key for keys in default_keymap().keys.values() for key in keys} - _NOT)


def _views(chance: Random) -> list[EngineView]:
    """Views that follow each other without sense: phases jump, workers come and go."""
    views = [csvlite(), many(20), many(1), EngineView(repository="csvlite")]
    names = [worker.worker for worker in csvlite().runs[0].workers]
    for _ in range(4):
        question = Question(
            id="q", text="may I?\n" * chance.randint(1, 60), asked_at=NOW, is_permission=True
        )
        views.append(
            changed(
                csvlite(),
                chance.choice(names),
                phase=chance.choice(list(Phase)),
                questions=(question,) if chance.random() < 0.5 else (),
                badges=frozenset(chance.sample(list(Badge), 2)),
                attempt=chance.randint(0, 3),
                change=None,
            )
        )
    return views


def _signs(key: str) -> list[str]:
    """A chord is two keys; a named key is one."""
    return [key] if len(key) > 2 or "+" in key[1:] else list(key)


@pytest.mark.parametrize("seed", [1, 2] if "PLAIT_THOROUGH" in os.environ else [1])
async def test_any_keys_in_any_order_are_survived(seed: int):
    chance = Random(seed)
    views = _views(chance)
    diff = diff_of_reader()
    port = FakePort(
        csvlite(),
        logs={"implement/worker_1": log_lines(40)},
        diffs={"implement/worker_1": diff, "port/worker_1": diff},
    )
    async with opened(port=port, size=chance.choice([(80, 24), (120, 36), (45, 12)])) as console:
        for turn in range(45):
            keys = [chance.choice(_KEYS) for _ in range(5)]
            for sign in [sign for key in keys for sign in _signs(key)]:
                _hear(console.screen, sign)
            port.tell(view=replace(chance.choice(views), at=NOW + turn))
            await console.pilot.pause()
            assert not console.app._exit, keys
            await console.until(lambda: bool(console.screen.board.rows))  # a new one mounts first
            console.screen.draw()
            widths = {row_width(row) for row in console.screen.board.rows}
            assert widths == {console.app.size.width}, keys


def _hear(screen: BoardScreen, sign: str) -> None:
    """Press a key on the screen itself: hundreds of them in a second."""
    character = " " if sign == "space" else sign if len(sign) == 1 else None
    assert isinstance(screen, KeyedScreen)
    if screen.writing:
        screen.box_sent("some text")
    screen.hear_key(events.Key(sign, character))
