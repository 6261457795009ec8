"""What may be asked over the socket is what the port offers, and every answer can be written."""

import json
from inspect import iscoroutinefunction
from typing import Any

import pytest

from engine.messages.commands import ChooseHunk
from engine.port.client import RemoteEngine
from engine.port.server import ASKABLE, _hints
from engine.store.codec import codec_of, dump
from tests.support.review_consoles import WHO, ReviewPort, conflicted_view, imports, io_py


def test_the_server_answers_what_the_client_can_ask():
    asked = {
        name
        for name, made in vars(RemoteEngine).items()
        if iscoroutinefunction(made) and not name.startswith("_")
    }
    assert asked | {"events"} == set(ASKABLE)


@pytest.mark.parametrize("name", sorted(set(ASKABLE) - {"leave", "events"}))
def test_whatever_is_asked_and_answered_can_be_written(name: str):
    for kind in _hints(name).values():
        assert codec_of(kind)


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
    one = await port.conflicts("2f1c", WHO)
    action = ChooseHunk(path="src/csvlite/io.py", hunk=0, choice="target")
    two = await port.resolve("2f1c", WHO, action)
    client = Telling(one, two, one)
    first = await client.conflicts("2f1c", WHO)
    second = await client.resolve("2f1c", WHO, action)
    third = await client.conflicts("2f1c", WHO)
    assert (first, second, third) == (one, two, one)
    assert [new is old for new, old in zip(second.files, first.files, strict=True)] == [False, True]
