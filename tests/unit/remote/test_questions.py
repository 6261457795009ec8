"""What may be asked over the socket is what the port offers, and every answer can be written."""

from inspect import iscoroutinefunction

import pytest

from engine.remote.client import RemoteEngine
from engine.remote.server import _MAY_BE_ASKED, _hints
from engine.store.codec_types import codec_of


def test_the_server_answers_what_the_client_can_ask():
    asked = {
        name
        for name, made in vars(RemoteEngine).items()
        if iscoroutinefunction(made) and not name.startswith("_")
    }
    assert asked - {"leave"} == _MAY_BE_ASKED


@pytest.mark.parametrize("name", sorted(_MAY_BE_ASKED))
def test_whatever_is_asked_and_answered_can_be_written(name: str):
    for kind in _hints(name).values():
        assert codec_of(kind)
