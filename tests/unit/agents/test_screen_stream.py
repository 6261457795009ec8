"""An agent without a protocol: only its own signals count, and whatever is typed is an answer."""

import pytest

from engine.agents.agent_events import Asked, Heard, ProtocolReply, Started, TurnEnded, Withdrawn
from engine.agents.contract import Ending, LaunchRequest
from engine.agents.on_screen.adapter import TerminalAdapter
from engine.agents.on_screen.stream import ScreenStream
from engine.errors import AgentError
from engine.plan.model import AgentChoice

NOTICE = b"\x1b]9;which name?\x07"


def _request(**options: str) -> LaunchRequest:
    argv = ("agent", "{prompt}")
    choice = AgentChoice(name="x", adapter="terminal", argv=argv, options=options)
    return LaunchRequest(choice=choice, prompt="do it", workspace="/w", home="/h")


def _stream(**options: str) -> ScreenStream:
    return TerminalAdapter().parser(_request(**options))


def test_a_program_gets_a_terminal_and_its_prompt_as_an_argument() -> None:
    launch = TerminalAdapter().launch(_request())
    assert launch.argv == ("agent", "do it")
    assert launch.terminal == (40, 120)
    assert launch.keeps_stdin
    assert launch.env["TERM"] == "xterm-256color"


def test_a_notice_is_a_question_and_what_a_human_types_answers_it() -> None:
    stream = _stream()
    asked = stream.feed("out", b"name> " + NOTICE)
    assert asked == [Started(None, None), Asked(id="screen-1", text="which name?")]
    assert stream.feed("in", b"he") == []
    assert stream.feed("in", b"llo\r") == [Withdrawn("screen-1")]


def test_an_answer_from_a_card_is_typed_with_enter() -> None:
    stream = _stream()
    stream.feed("out", NOTICE)
    assert stream.answer("screen-1", "hello") == b"hello\r"
    assert stream.answer("another", "hello") is None
    stream.feed("out", b"\x1b[?2004h")
    assert stream.answer("screen-1", "hello") == b"\x1b[200~hello\x1b[201~\r"


def test_a_later_notice_takes_the_place_of_the_one_before() -> None:
    stream = _stream()
    stream.feed("out", NOTICE)
    events = stream.feed("out", b"\x1b]777;notify;agent;really?\x07")
    assert events == [Withdrawn("screen-1"), Asked(id="screen-2", text="agent: really?")]


def test_a_bell_asks_once() -> None:
    stream = _stream()
    assert isinstance(stream.feed("out", b"\x07")[1], Asked)
    assert stream.feed("out", b"\x07\x07") == []


@pytest.mark.parametrize("drawn", [b"Do you want to proceed? (y/n)", b"ERROR failed", b"\x1b[2J"])
def test_nothing_is_ever_read_from_its_screen(drawn: bytes) -> None:
    stream = _stream()
    assert stream.feed("out", drawn) == [Started(None, None)]
    assert stream.finish(Ending(exit_code=0)).ok


def test_signals_that_are_not_wanted_ask_nobody() -> None:
    stream = _stream(asks_by="prompt")
    assert stream.feed("out", NOTICE + b"\x07") == [Started(None, None)]
    assert isinstance(stream.feed("out", b"\x1b]133;B\x07")[0], Asked)
    assert stream.feed("out", b"\x1b]133;C\x07") == [Withdrawn("screen-1")]
    with pytest.raises(AgentError, match="`asks_by` cannot be 'screen'"):
        _stream(asks_by="screen")


def test_its_word_that_it_is_done_ends_its_turn() -> None:
    stream = _stream()
    stream.feed("out", NOTICE)
    done = stream.feed("out", b"\x1b]777;notify;plait;done\x07")
    assert done == [Withdrawn("screen-1"), TurnEnded(is_ok=True)]


def test_a_question_to_its_terminal_is_answered_though_nobody_looks() -> None:
    assert _stream().feed("out", b"\x1b[6n")[1:] == [ProtocolReply(b"\x1b[1;1R")]


def test_a_prompt_is_typed_once_the_program_takes_a_paste() -> None:
    stream = _stream(prompt_via="typed")
    assert stream.feed("out", b"starting") == [Started(None, None)]
    assert not stream.owed
    prompt = b"\x1b[200~do it\x1b[201~\r"
    assert stream.feed("out", b"\x1b[?2004h") == [ProtocolReply(prompt)]
    assert [*stream.owed] == [prompt]
    assert stream.feed("in", prompt) == []
    assert not stream.owed
    assert stream.feed("out", b"\x1b[?2004l\x1b[?2004h") == []


def test_words_said_to_it_are_typed_and_heard() -> None:
    stream = _stream()
    assert stream.steer("faster") == b"faster\r"
    assert stream.feed("in", b"faster\r") == [Heard("faster")]


def test_its_verdict_is_its_exit_code_and_a_proof() -> None:
    stream = _stream()
    stream.feed("out", b"last words\r\n")
    well = stream.finish(Ending(exit_code=0))
    assert (well.ok, well.needs_proof, well.text) == (True, True, "last words")
    assert not stream.finish(Ending(exit_code=1)).ok
    assert not _stream(proof="exit").finish(Ending(exit_code=0)).needs_proof
