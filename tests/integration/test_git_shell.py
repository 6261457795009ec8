"""A shell that runs one command after another: what goes in and out, and what is left of it."""

import os
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
import pytest

from engine.git.plumbing.shell import Shell
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

ENV = {"PATH": os.defpath}
ENTER = ["env", "-i", f"PATH={os.defpath}", "sh"]


async def test_bytes_and_words_go_through_it_as_they_are(tmp_path: Path) -> None:
    odd = b"\0\n'\xff$(exit 3)\n"
    words = ("printf", "%s|", "a b", "line\nbreak", "it's", "$HOME;`exit 3`", "", "\udcff")
    async with Shell.opened(ENTER, env=ENV, folder=tmp_path) as shell:
        done = await shell.run(words, timeout_s=30)
        assert done.stdout == b"a b|line\nbreak|it's|$HOME;`exit 3`||\xff|"
        assert (await shell.run(["cat"], stdin=odd, timeout_s=30)).stdout == odd
        assert (await shell.run(["cat"], timeout_s=30)).stdout == b""  # not what was asked before
        failed = await shell.run(["sh", "-c", "echo why >&2; exit 7"], timeout_s=30)
        assert (failed.exit_code, failed.stderr) == (7, b"why\n")
        assert (await shell.run(["true"], timeout_s=30)).exit_code == 0


async def test_commands_asked_for_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    answers: dict[int, bytes] = {}
    async with Shell.opened(ENTER, env=ENV, folder=tmp_path) as shell:

        async def ask(number: int) -> None:
            done = await shell.run(["cat"], stdin=b"%d" % number, timeout_s=30)
            answers[number] = done.stdout

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(ask, number)
    assert answers == {number: b"%d" % number for number in range(8)}


@pytest.mark.parametrize("enter", [["sh", "-c", "echo no way in >&2; exit 4", "sh"], ["false"]])
async def test_a_place_that_cannot_be_entered_is_an_exit_code(
    tmp_path: Path, enter: list[str]
) -> None:
    async with Shell.opened(enter, env=ENV, folder=tmp_path) as shell:
        for _ in range(2):
            assert (await shell.run(["true"], timeout_s=30)).exit_code in {1, 4}


async def test_a_shell_that_is_killed_at_work_is_an_exit_code(tmp_path: Path) -> None:
    async with Shell.opened(ENTER, env=ENV, folder=tmp_path) as shell:
        done = await shell.run(["sh", "-c", "kill -9 $PPID; exec sleep 60"], timeout_s=30)
        assert done.exit_code


async def test_nothing_is_left_of_what_is_broken_off(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    words = ["sh", "-c", f"sleep 300 & echo $! > {begun}.draft; mv {begun}.draft {begun}; wait"]

    async def work() -> None:
        async with Shell.opened(ENTER, env=ENV, folder=tmp_path) as shell:
            await shell.run(words, timeout_s=300)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            while not begun.exists():  # noqa: ASYNC110 - a shell tells nobody
                await anyio.sleep(0.01)
            child = psutil.Process(int(begun.read_text()))
            group.cancel_scope.cancel()
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110 - nor a dying process
            await anyio.sleep(0.01)


async def test_a_command_that_takes_too_long_ends_with_its_shell(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        async with Shell.opened(ENTER, env=ENV, folder=tmp_path) as shell:
            await shell.run(["sleep", "300.125"], timeout_s=0.1)
    await wait_until(lambda: not _sleepers())


def _sleepers() -> list[psutil.Process]:
    """Return who below us still sleeps that long."""
    found: list[psutil.Process] = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it ends in this moment
            found += [one] if "300.125" in one.cmdline() else []
    return found
