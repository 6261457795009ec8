"""Every kind of question has an answer of its type, and both can be written."""

import json
from typing import Any, get_type_hints

import pytest

from engine.messages.commands import ChooseHunk
from engine.messages.merging import DecideConflict, ReadConflicts
from engine.messages.questions import Ask, LeaveEngine, answer_type, question_kinds
from engine.port.client import RemoteEngine
from engine.port.port import EnginePort
from engine.run.answers import ANSWERS
from engine.store.codec import codec_of, dump
from tests.support.review_consoles import WHO, ReviewPort, conflicted_view, imports, io_py

KINDS = sorted(question_kinds().values(), key=lambda kind: kind.__name__)


def test_every_question_is_answered():
    assert set(KINDS) == {*ANSWERS, LeaveEngine}


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_answer_is_of_the_type_that_the_question_names(kind: type[Ask[Any]]):
    hints = get_type_hints(ANSWERS[kind])
    assert hints["question"] is kind
    assert hints["return"] in {answer_type(kind), type(answer_type(kind))}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_asked_and_answered_can_be_written(kind: type[Ask[Any]]):
    assert codec_of(kind)
    assert codec_of(answer_type(kind))


def test_the_port_asks_commands_tells_and_no_more():
    offered = {name for name in vars(EnginePort) if not name.startswith("_")}
    assert offered == {"command", "ask", "events"}
    assert offered <= set(dir(RemoteEngine))


class Telling(RemoteEngine):
    """A client whose engine has answered already."""

    def __init__(self, *answers: object) -> None:
        self._files = {}
        self._answers = [json.dumps(dump(answer)) for answer in answers]

    async def _ask(self, do: str, **fields: Any) -> Any:
        del do, fields
        return json.loads(self._answers.pop(0))


@pytest.mark.anyio
async def test_a_file_is_read_anew_only_where_the_answer_says_something_else_of_it():
    port = ReviewPort(conflicted_view(), files=(io_py(), imports()))
    one = await port.ask(ReadConflicts("2f1c", WHO))
    action = ChooseHunk(path="src/csvlite/io.py", hunk=0, choice="target")
    two = await port.ask(DecideConflict("2f1c", WHO, action))
    client = Telling(one, two, one)
    first = await client.ask(ReadConflicts("2f1c", WHO))
    second = await client.ask(DecideConflict("2f1c", WHO, action))
    third = await client.ask(ReadConflicts("2f1c", WHO))
    assert (first, second, third) == (one, two, one)
    assert [new is old for new, old in zip(second.files, first.files, strict=True)] == [False, True]
