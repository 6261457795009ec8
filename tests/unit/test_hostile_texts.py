"""Texts of an agent are read in time that grows with its length alone, or not at all."""

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from engine.errors import AgentError
from engine.merge.editing import keys_marked
from engine.messages.pictures import picture_of
from engine.redaction import Redactor
from engine.review.risks import coverage
from engine.work import asking
from tui.screens.worker.lines import PATH
from tui.words.cutting import cut_command

TAG = b"[hunk aaaaaaaaaaaaaaaaaaaa]"


def answer(text: bytes) -> None:
    with suppress(AgentError):
        asking._answer(text.decode())


def covered(text: bytes) -> None:
    coverage._by_file(coverage._cobertura(text.decode()))


def redacted(text: bytes) -> None:
    Redactor().text(text.decode())


PIECES: dict[str, tuple[Callable[[bytes], object], bytes, int]] = {
    "an answer without an end": (answer, b"<<<ANSWER\n", 20_000),
    "markers without an end": (keys_marked, b"<<<<<<< x " + TAG + b"\n", 4000),
    "markers whose ends are far": (
        lambda text: keys_marked(text + text.replace(b"<", b">")),
        b"<<<<<<< x " + TAG + b"\n",
        2000,
    ),
    "classes without an end": (covered, b"<class filename=", 20_000),
    "lines without an end": (covered, b'<line number="1" ', 20_000),
    "a picture of one byte": (lambda text: picture_of(b"\xff\xd8" + text), b"\xff", 4_000_000),
    "a picture of segments": (
        lambda text: picture_of(b"\xff\xd8" + text), b"\xff\xe0\x00\x02", 1_000_000),
    "beginnings of keys": (redacted, b"-----BEGIN PRIVATE KEY-----.", 4000),
    "beginnings of tokens": (redacted, b"1eyJhbGciOi", 10_000),
    "tokens whose end is none": (lambda text: redacted(text + b".eyJa"), b"1eyJhbGciOi", 10_000),
    "schemes": (lambda text: redacted(text + b"://"), b"a.", 20_000),
    "names of secrets": (redacted, b"_pwd", 10_000),
    "a long command": (lambda text: cut_command(text.decode(), 80), b"_", 20_000),
    "a path without an end": (lambda text: PATH.search(text.decode()), b"a/", 10_000),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_four_times_the_text_takes_no_more_than_eight_times_the_time(name: str):
    read, piece, count = PIECES[name]
    short = max(taken(read, piece * (count // 4)) for _ in range(2))
    long = min(taken(read, piece * count) for _ in range(2))
    assert long < max(8 * short, 0.05)


def taken(read: Callable[[bytes], object], text: bytes) -> float:
    began = time.process_time()
    read(text)
    return time.process_time() - began


@pytest.mark.parametrize("before", ["", "x ", "1", '"', "\\n", "a=", "eyJ1"])
def test_a_token_is_found_in_its_word_whatever_stands_before(before: str):
    word = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
    assert word not in Redactor().text(f"{before}{word} after")


def test_a_key_is_redacted_though_another_one_begins_without_an_end():
    whole = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow_a-b*c\n-----END RSA PRIVATE KEY-----"
    said = Redactor().text(f"-----BEGIN PRIVATE KEY-----\n{whole}\nafter")
    assert "MIIEow" not in said
    assert said.endswith("\nafter")
