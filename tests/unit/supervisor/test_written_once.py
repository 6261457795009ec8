"""Which attempts are over, and whether what their keepers wrote stayed as it was."""

import shutil
from pathlib import Path

import pytest

from engine.supervisor.written_once import EndedAttempts, rewritten
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio


def begun(run: Path, number: int) -> Path:
    folder = run / f"a/worker_{number}/attempt_1"
    folder.mkdir(parents=True)
    (folder / "recording").write_text("x")
    return folder


def test_attempts_are_over_once_their_end_is_written_whoever_kept_them(tmp_path: Path) -> None:
    before, going_on = begun(tmp_path, 1), begun(tmp_path, 2)
    (before / "exit.json").write_text("{}")
    known = EndedAttempts(tmp_path)
    untold, told = begun(tmp_path, 3), begun(tmp_path, 4)
    known.add(told)
    assert known.folders() == (str(before),)
    for folder in (going_on, untold, told):
        (folder / "exit.json").write_text("{}")
    assert known.folders() == known.folders() == tuple(map(str, (before, going_on, told)))


async def test_what_was_written_again_is_named_and_what_is_gone_is_not(tmp_path: Path) -> None:
    folders = [begun(tmp_path, number) for number in (1, 2, 3)]
    since_ns = max((folder / "recording").lstat().st_ctime_ns for folder in folders)
    assert list(rewritten(map(str, folders), since_ns)) == []

    def writes_again() -> bool:
        (folders[1] / "recording").write_text("y")
        return (folders[1] / "recording").lstat().st_ctime_ns > since_ns

    await wait_until(writes_again, within_s=30)
    shutil.rmtree(folders[2])
    assert list(rewritten(map(str, folders), since_ns)) == [f"{folders[1]}/recording"]
