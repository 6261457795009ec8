"""A shell of the console on a real terminal: drawn, typed into, resized, flooded, ended."""

import gc
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from engine.messages.results import Entrance
from engine.terminal.redraw import screen_text
from tests.support.processes import wait_until
from tui.terminals.shell import Shell, shell_words

pytestmark = pytest.mark.anyio

_PID = re.compile(r"pid=(\d+)=")


@asynccontextmanager
async def _running(folder: Path, *program: str) -> AsyncIterator[Shell]:
    shell = Shell(lambda: None, rows=10, columns=60)
    entrance = Entrance(argv=(), env={"PATH": os.environ["PATH"], "PS1": "% "}, folder=str(folder))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shell.run, entrance, program)
        yield shell
        shell.end()


async def _shows(shell: Shell, wanted: str) -> None:
    await _until(lambda: wanted in screen_text(shell.terminal), shell)


async def _until(is_so: Callable[[], bool], shell: Shell) -> None:
    with anyio.move_on_after(30):
        while not is_so():  # noqa: ASYNC110 - what another process does sets no event
            await anyio.sleep(0.01)
    assert is_so(), screen_text(shell.terminal)


async def test_a_shell_is_typed_into_and_told_its_size(tmp_path: Path) -> None:
    async with _running(tmp_path, "sh") as shell:
        shell.write(b"stty size; basename $PWD\r")
        await _shows(shell, "10 60")
        await _shows(shell, tmp_path.name)
        shell.resize(20, 90)
        shell.write(b"stty size\r")
        await _shows(shell, "20 90")
        shell.write(b"exit 3\r")
        await _until(lambda: shell.ended == "ended with exit code 3", shell)
        assert not shell.is_well


async def test_job_control_and_interrupts_reach_the_program(tmp_path: Path) -> None:
    async with _running(tmp_path, "bash", "--norc", "-i") as shell:
        shell.write(b"sh -c 'echo on$((3+4)); exec sleep 1000'; echo came$((1+1))\r")
        await _shows(shell, "on7")  # it has the terminal: what is only echoed may not have begun
        shell.write(b"\x03")
        shell.write(b"echo back$((40+2))\r")
        await _shows(shell, "back42")
        assert "came2" not in screen_text(shell.terminal)


async def test_a_program_that_takes_the_whole_screen_gives_it_back(tmp_path: Path) -> None:
    script = "import curses; curses.wrapper(lambda w: (w.addstr(3, 4, 'FULL'), w.getch()))"
    async with _running(tmp_path, "sh") as shell:
        shell.write(f'echo before; {shlex.quote(sys.executable)} -c "{script}"\r'.encode())
        await _shows(shell, "\n\n\n    FULL")
        assert shell.terminal.grid.is_alternate
        shell.write(b"q")
        await _shows(shell, "before")
        assert not shell.terminal.grid.is_alternate


async def test_a_question_to_the_terminal_is_answered_to_the_program(tmp_path: Path) -> None:
    ask = "stty -icanon -echo min 6; printf '\\033[6n'; dd bs=6 count=1 2>/dev/null | od -c"
    async with _running(tmp_path, "sh", "-c", ask) as shell:
        await _shows(shell, "033   [   1   ;   1   R")


async def test_what_a_shell_left_behind_ends_with_it(tmp_path: Path) -> None:
    async with _running(tmp_path, "bash", "--norc", "-i") as shell:
        shell.write(b"sleep 1001 & echo pid=$!=\r")
        # What is typed before the shell is ready is on screen twice.
        await _until(lambda: bool(_PID.search(screen_text(shell.terminal))), shell)
        pid = int(_PID.findall(screen_text(shell.terminal))[0])
        assert psutil.pid_exists(pid)
        shell.end()
        await _until(lambda: bool(shell.ended), shell)
    await wait_until(lambda: not psutil.pid_exists(pid))


async def test_a_program_that_heeds_no_hang_up_ends_with_its_shell(tmp_path: Path) -> None:
    script = tmp_path / "hangs.py"
    script.write_text(
        "import os, signal, time\n"
        "for number in (1, 2, 15):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "print(os.getpid(), '=', flush=True)\n"
        "time.sleep(999)\n"
    )
    async with _running(tmp_path, "bash", "--norc", "-i") as shell:
        shell.write(f"clear; {shlex.quote(sys.executable)} hangs.py\r".encode())
        await _until(lambda: " =" in screen_text(shell.terminal), shell)
        pid = int(screen_text(shell.terminal).split(" =")[0].split()[-1])
        shell.end()
        await _until(lambda: bool(shell.ended), shell)
    await wait_until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    """Tell if a process runs; one that nobody has waited for yet has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_flood_is_drawn_while_the_loop_goes_on(tmp_path: Path) -> None:
    flood = "i=0; while [ $i -lt 40 ]; do seq 1 20000; i=$((i+1)); done; echo the-end"
    async with _running(tmp_path, "sh", "-c", flood) as shell:
        turns = 0
        with anyio.move_on_after(120):
            while not shell.ended:
                await anyio.sleep(0.001)
                turns += 1
        assert "the-end" in screen_text(shell.terminal)
        assert shell.terminal.grid.scrolled == 800_001 - 9
        assert turns > 20
        assert len(shell.terminal.grid.history) == shell.terminal.grid.history.maxlen


async def test_a_program_that_is_not_there_says_so(tmp_path: Path) -> None:
    async def run() -> str:
        shell = Shell(lambda: None, rows=5, columns=60)
        await shell.run(Entrance(argv=(), env={}, folder=str(tmp_path / "gone")), ["true"])
        return shell.ended

    assert await run() == "could not be started: No such file or directory"
    gc.collect()  # what earlier tests left is not to go in between
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count, and no paths
    for _ in range(20):
        await run()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208 - likewise


async def test_the_users_shell_is_taken_where_it_is_there(tmp_path: Path) -> None:
    async with _running(tmp_path, *shell_words()) as shell:
        shell.write(b"echo $((6*7))\r")
        await _shows(shell, "42")
