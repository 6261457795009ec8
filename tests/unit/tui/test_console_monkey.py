"""Any keys in any order: the console goes on, draws the whole screen, and stays clean."""

import os
from dataclasses import replace
from random import Random

import pytest

from engine.messages.asked import Question
from engine.messages.results import Badge, EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import opened, strips_on
from tests.support.world import NOW, FakePort, changed, csvlite, log_lines, many
from tui.keys import default_keymap

pytestmark = [pytest.mark.anyio, pytest.mark.long]
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
            if console.screen.box.writing:
                console.screen.box.box_sent("some text")
            await console.keys(*[sign for key in keys for sign in _signs(key)])
            port.tell(view=replace(chance.choice(views), at=NOW + turn))
            await console.pilot.pause()
            assert not console.is_leaving, keys
            await console.until(lambda: bool(console.text.strip()))  # a new one mounts first
            console.screen.draw()
            widths = {strip.cell_length for strip in strips_on(console.app)}
            assert widths == {console.app.size.width}, keys
