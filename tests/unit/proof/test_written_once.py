"""Test which attempts are over, and whether what their keepers wrote stayed as it was."""

import shutil
import time
from pathlib import Path

from engine.proof.written_once import EndedAttempts


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
    assert known.count() == 1
    for folder in (going_on, untold, told):
        (folder / "exit.json").write_text("{}")
    assert known.count() == known.count() == 3
    of_the_next_engine = EndedAttempts(tmp_path)
    assert (of_the_next_engine.known, of_the_next_engine.count()) == (3, 4)
    known.file.write_text("".join(known.file.read_text().splitlines(keepends=True)[:2]))
    assert EndedAttempts(tmp_path).known == 1


def test_what_was_written_again_is_named_and_what_is_gone_is_not(tmp_path: Path) -> None:
    folders = [begun(tmp_path, number) for number in (1, 2, 3)]
    for folder in folders:
        (folder / "exit.json").write_text("{}")
    known = EndedAttempts(tmp_path)
    assert known.count() == 3
    since_ns = max((folder / "exit.json").lstat().st_ctime_ns for folder in folders)
    assert known.rewritten(3, since_ns) == []
    assert known.rewritten(3, 0) == []  # its own last words accuse nobody who began just then
    deadline = time.monotonic() + 30
    while (folders[1] / "recording").lstat().st_ctime_ns <= since_ns:
        assert time.monotonic() < deadline
        (folders[1] / "recording").write_text("y")
    shutil.rmtree(folders[2])
    (found,) = known.rewritten(3, since_ns)
    assert (found.place, found.path) == (1, f"{folders[1]}/recording")
    assert known.rewritten(1, since_ns) == []
