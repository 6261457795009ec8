"""Messages survive being cut into any pieces, and foreign ones harm nobody."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.keeper import wire


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(1, 40)))
def test_messages_arrive_whole_however_the_stream_is_cut(
    payloads: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(wire.encode({"data": wire.as_text(each)}) for each in payloads)
    inbox = wire.Inbox()
    got: list[dict[str, Any]] = []
    for cut in [*cuts, len(stream) or 1]:
        got += inbox.feed(stream[:cut])
        stream = stream[cut:]
    assert [wire.as_bytes(message["data"]) for message in got] == payloads


def test_what_is_no_message_is_an_empty_one() -> None:
    assert wire.Inbox().feed(b'nonsense\n[1]\n{"do":"go"}\n') == [{}, {}, {"do": "go"}]
