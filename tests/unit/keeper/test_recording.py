"""The format of recordings: frames whole or not there, wherever a file was torn."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.keeper import recording
from engine.keeper.recording import ERR, IN, NOTE, OUT, Recorder, parse

pieces = st.lists(st.tuples(st.sampled_from([OUT, ERR, IN]), st.binary(min_size=1, max_size=60)))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def recorder(folder: int) -> Iterator[Recorder]:
    made = Recorder(folder)
    yield made
    made.close()


def bytes_of(folder: Path) -> bytes:
    return (folder / recording.FILE).read_bytes()


def test_the_first_frame_names_the_format(folder: int, tmp_path: Path) -> None:
    Recorder(folder).close()
    ((_, stream, data),), _ = parse(bytes_of(tmp_path))
    assert stream == NOTE
    assert data.startswith(b"recording 1 ")


def test_a_size_is_where_the_next_frame_begins(recorder: Recorder, tmp_path: Path) -> None:
    recorder.add(OUT, b"one")
    middle = recorder.size
    recorder.add(ERR, b"two")
    frames, used = parse(bytes_of(tmp_path)[middle:])
    assert [(stream, data) for _, stream, data in frames] == [(ERR, b"two")]
    assert middle + used == recorder.size == len(bytes_of(tmp_path))


@given(pieces, st.data())
def test_a_file_torn_anywhere_gives_the_frames_before_the_tear(
    parts: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    whole = b"".join(frame(stream, text) for stream, text in parts)
    cut = data.draw(st.integers(0, len(whole)))
    frames, used = parse(whole[:cut])
    assert [(stream, text) for _, stream, text in frames] == parts[: len(frames)]
    assert used <= cut
    assert len(frames) == len(parts) or cut - used < len(frame(*parts[len(frames)]))


@given(pieces, st.binary(min_size=1, max_size=40))
def test_zeros_and_garbage_after_a_power_cut_are_no_frames(
    parts: list[tuple[int, bytes]], garbage: bytes
) -> None:
    whole = b"".join(frame(stream, text) for stream, text in parts)
    for tail in (bytes(64), b"\0" + garbage):
        frames, used = parse(whole + tail)
        assert len(frames) == len(parts)
        assert used == len(whole)


def test_what_the_disk_refuses_is_written_later_and_only_once(
    recorder: Recorder, tmp_path: Path
) -> None:
    reading = os.open(tmp_path / recording.FILE, os.O_RDONLY)
    good, recorder._fd = recorder._fd, reading  # writing to it fails
    recorder.add(OUT, b"first")
    recorder.add(NOTE, b"second")
    assert recorder.is_clogged
    assert not recorder.retry()
    recorder._fd = good
    assert recorder.retry()
    frames, used = parse(bytes_of(tmp_path))
    assert [data for _, _, data in frames[1:]] == [b"first", b"second"]
    assert used == recorder.size
    os.close(reading)


def frame(stream: int, data: bytes) -> bytes:
    return recording._HEADER.pack(recording._MAGIC, stream, 0, len(data), 7) + data
