"""Test that keys typed behind the one that opens a shell are for the shell."""

import os
from pathlib import Path

import anyio
import pytest

from engine.messages.asked import Question
from engine.messages.results import Entrance
from tests.support.consoles import opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.app import Options
from tui.keys import default_keymap

pytestmark = pytest.mark.anyio
_WORKER = "implement/worker_1"
_OPTIONS = Options(  # noqa: S604 - how the console names its shells
    clock=lambda: NOW,
    is_plain=False,
    has_truecolor=True,
    shell=lambda *_: ("plait", "shell"),
)


class _Slow(FakePort):
    """An engine that takes its time to prepare a sandbox."""

    async def enter(self, run: str, worker: str) -> Entrance:
        await anyio.sleep(0.3)  # keys that are not held back are heard in this time
        return await super().enter(run, worker)


def _port(folder: Path) -> _Slow:
    env = {"PATH": os.environ["PATH"], "PS1": "% ", "SHELL": "/bin/sh", "HOME": str(folder)}
    return _Slow(csvlite(), entrances={_WORKER: Entrance(argv=(), env=env, folder=str(folder))})


@pytest.mark.parametrize("screen", ["go_fleet", "go_diff", "go_worker"])
async def test_a_burst_behind_the_key_of_a_shell_is_for_the_shell(tmp_path: Path, screen: str):
    async with opened(port=_port(tmp_path), options=_OPTIONS) as console:
        console.app.session.worker = _WORKER
        await console.do(screen)
        key = default_keymap().of(f"{console.screen.kind}.terminal")[0]
        await console.burst(f"{key}echo a$((40+2))x; exit\r")
        await console.shows("The shell of implement/worker_1 ended with exit code 0")
        assert not console.port.commands


async def test_a_shell_that_is_open_is_left_and_entered_as_often_as_one_likes(tmp_path: Path):
    async with opened(port=_port(tmp_path), options=_OPTIONS) as console:
        console.app.session.worker = _WORKER
        await console.do("go_worker")
        for _ in range(3):
            await console.do("terminal")
            await console.shows("leaves it")
            await console.do("detach")
            await console.shows("The shell keeps running", "types into it")
        await console.do("terminal")
        await console.burst("exit\r")
        await console.shows("The shell of implement/worker_1 ended with exit code 0")


async def test_no_key_of_the_console_stands_on_screen_while_keys_are_for_a_shell(tmp_path: Path):
    asked = Question(id="q", text="May I run make?", asked_at=NOW, is_permission=True)
    port = _port(tmp_path)
    port.shown = changed(port.shown, _WORKER, questions=(asked,))
    async with opened(port=port, options=_OPTIONS) as console:
        console.app.session.worker = _WORKER
        await console.do("go_worker")
        await console.shows("allow once", "? keys")
        await console.do("terminal")
        await console.shows("leaves it")
        assert "allow once" not in console.text
        assert "? keys" not in console.text
        await console.do("detach")
        await console.shows("allow once", "? keys")
        await console.do("terminal")
        await console.burst("exit\r")
        await console.shows("ended with exit code 0")
