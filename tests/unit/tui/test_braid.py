"""A braid as rows, as text and as a picture."""

from dataclasses import replace
from xml.etree import ElementTree as ET

from engine.api import Braid, StrandTurn, TurnKind
from engine.history.seam import AttemptRecord, RunRecord
from tui.commands.braid import svg
from tui.words.braid import braid_rows, braid_text

RUN = RunRecord(
    uid="u", run="a1b2c3", name="<fix>", repository="r", person="Ada", host="h", began=0.0
)
A, B, C = (f"write/worker_{i}" for i in (1, 2, 3))
TURNS = (
    (TurnKind.BEGAN, A, 1),
    (TurnKind.BEGAN, B, 1),
    (TurnKind.ENDED, A, 1),
    (TurnKind.BEGAN, C, 1),
    (TurnKind.BEGAN, B, 2),
    (TurnKind.CONFLICTED, C, 1),
    (TurnKind.LANDED, B, 2),
    (TurnKind.LANDED, C, 1),
    (TurnKind.UNDONE, C, 1),
)


def braid(*turns: tuple[TurnKind, str, int]) -> Braid:
    attempts = {
        (worker, number): AttemptRecord(
            worker=worker,
            attempt=number,
            step="write",
            agent="claude",
            outcome="failed",
            conflicts=2,
            usd=0.25,
            reviewer="ada",
            target="main",
            insertions=3,
            deletions=1,
        )
        for _, worker, number in turns
    }
    told = tuple(
        StrandTurn(at=float(at), kind=kind, worker=worker, attempt=number)
        for at, (kind, worker, number) in enumerate(turns)
    )
    return Braid(run=RUN, turns=told, attempts=attempts)


def test_strands_leave_the_branch_cross_and_come_back():
    assert list(braid_text(braid(*TURNS))) == [
        "├─╮    write/worker_1@1 begins  claude",
        "├─┼─╮  write/worker_2@1 begins  claude",
        "│ ╵ │  write/worker_1@1 ends  failed  $0.25",
        "├─╮ │  write/worker_3@1 begins  claude",
        "│ │ ●  write/worker_2@2 begins  claude",
        "│ ✗ │  write/worker_3@1 meets a conflict  2 files",
        "●─┼─╯  write/worker_2@2 lands  +3 -1  main  by ada  $0.25",
        "●─╯    write/worker_3@1 lands  +3 -1  main  by ada  $0.25",
        "├─╮    write/worker_3@1 is undone",
    ]


def test_a_failure_is_told_where_it_is_tried_again_and_a_rejection_with_who_did_it():
    told = braid((TurnKind.BEGAN, A, 1), (TurnKind.BEGAN, A, 2), (TurnKind.ENDED, A, 2))
    first, second = told.attempts[A, 1], told.attempts[A, 2]
    attempts = {
        (A, 1): replace(first, error=f"no idea\n\x1b[31m{'so long ' * 20}"),
        (A, 2): replace(second, outcome="cancelled", cause="USER"),
    }
    lines = [row.words for row in braid_rows(replace(told, attempts=attempts))]
    assert lines[0] == f"{A}@1 begins  claude"
    assert lines[1].startswith(f"{A}@2 begins  claude  after: no idea ")
    assert lines[1].endswith("…")
    assert "\x1b" not in lines[1]
    assert lines[2] == f"{A}@2 ends  cancelled  by ada  $0.25"


def test_a_terminal_without_unicode_gets_ascii():
    text = "".join(braid_text(braid(*TURNS), is_unicode=False))
    assert text.isascii()
    assert "x" in text


def test_a_lane_that_is_free_is_used_again():
    rows = braid_rows(braid(*TURNS))
    assert [row.lane for row in rows] == [1, 2, 1, 1, 2, 1, 2, 1, 1]


def test_a_picture_is_whole_and_escapes_names():
    picture = ET.fromstring(svg(braid(*TURNS)))  # noqa: S314 - our own
    said = [node.text for node in picture.iter() if node.tag.endswith("text")]
    assert said == [row.words for row in braid_rows(braid(*TURNS))]
    assert "<fix>" in (picture.findtext("{http://www.w3.org/2000/svg}title") or "")
    assert ET.fromstring(svg(braid())) is not None  # noqa: S314 - our own
