"""A human who looks elsewhere is notified: over a real D-Bus, and by the window of a real tmux."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tests.support.console_pty import CALLING, ROOT, process_in_pty
from tests.support.processes import wait_until
from tui.words.attention import desktop_words

pytestmark = pytest.mark.anyio
_ODD = 'it\'s <b>odd</b> & "so" \\ [1]'


@contextmanager
def _bus(folder: Path) -> Iterator[tuple[str, Path]]:
    """A session bus of its own without anybody who shows notifications, and what is said on it."""
    heard = folder / "heard"
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address=1"], stdout=subprocess.PIPE
    )
    assert daemon.stdout is not None
    address = daemon.stdout.readline().decode().strip()
    env = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": address}
    rule = "interface='org.freedesktop.Notifications'"
    with heard.open("wb") as out:
        monitor = subprocess.Popen(["dbus-monitor", "--session", rule], stdout=out, env=env)
    try:
        yield address, heard
    finally:
        for process in (monitor, daemon):
            process.terminate()
            process.wait()
        daemon.stdout.close()


@pytest.mark.needs("dbus")
async def test_what_is_said_over_dbus_is_said_word_for_word(tmp_path: Path) -> None:
    with _bus(tmp_path) as (address, heard):
        await wait_until(lambda: "NameAcquired" in heard.read_text())
        env = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": address}
        await anyio.run_process(desktop_words("gdbus", _ODD), env=env, check=False)
        said = _ODD.replace("&", "&amp;").replace("<", "&lt;")
        await wait_until(lambda: f'string "{said}"' in heard.read_text())


@pytest.mark.needs("dbus")
async def test_a_console_calls_over_dbus_and_by_the_terminal_where_nobody_takes_that(
    tmp_path: Path,
) -> None:
    with _bus(tmp_path) as (address, heard):
        await wait_until(lambda: "NameAcquired" in heard.read_text())
        with process_in_pty(CALLING, DBUS_SESSION_BUS_ADDRESS=address, TMUX="") as console:
            console.wait_written(b"]9;implement/worker_2 needs you\x07")
            # The monitor writes down what it hears in its own time.
            said = 'string "implement/worker_2 needs you"'
            await wait_until(lambda: said in heard.read_text())
            console.press(b"\x11")
            assert console.end() == 0


@pytest.mark.needs("tmux")
async def test_the_window_of_tmux_says_who_needs_a_human_until_the_console_ends(
    tmp_path: Path,
) -> None:
    words = ("tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null")
    env = {name: value for name, value in os.environ.items() if name not in {"TMUX", "TMUX_PANE"}}

    async def tmux(*more: str) -> str:
        done = await anyio.run_process([*words, *more], env=env, check=False)
        return done.stdout.decode().strip()

    async def says(wanted: str, *more: str) -> None:
        with anyio.fail_after(30):
            while wanted not in await tmux(*more):  # noqa: ASYNC110 - tmux sets no event of ours
                await anyio.sleep(0.05)

    script = tmp_path / "calling.py"
    script.write_text(CALLING)
    run = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))}"
    place = ("-x", "100", "-y", "30", "-c", str(ROOT), "-e", f"PYTHONPATH={ROOT}")
    await tmux("new-session", "-d", *place, "sh")
    try:
        await tmux("send-keys", f"{run}; echo left=$((40+2))", "Enter")
        await says("3 need you", "show-options", "-wv", "@plait")
        await tmux("send-keys", "C-q")
        await says("left=42", "capture-pane", "-p")
        assert "@plait" not in await tmux("show-options", "-w")
    finally:
        await tmux("kill-server")
