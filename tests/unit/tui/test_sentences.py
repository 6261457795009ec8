"""Two sentences on the message line are ended and spaced as two sentences."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import EngineError, whole_of
from engine.messages.commands import Accepted, Command, Refused, Reply
from engine.messages.events import OutputAppended, Told
from engine.messages.results import Badge, UndoneLanding
from engine.phases import Phase
from tests.support.consoles import opened
from tests.support.message_page import messages, said
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.app import Options
from tui.words.outcomes import not_said
from tui.words.sentences import two_sentences

ROOT = Path(__file__).parents[3]
RUNNING, REVIEW = "implement/worker_1", "port/worker_1"
pytestmark = pytest.mark.anyio

_FIXED_KEY = re.compile(
    r"(?<![\w'…<{`./+\-])(?:[b-zB-HJ-Z](?=,? [a-z]|[.,;]? *$)"
    r"|(?:esc|enter|(?<=[;:] )a)(?= [a-z]+s\b|[.,]))"
)
_OF_A_DIALOG = {
    "enter goes there",
    "enter revokes the one under the cursor",
    "the current result; t, i mark the side of a line, ≠ is open",
}
"""Dialogs have keys that no key file changes; the letters beside a line are no keys."""


@pytest.mark.parametrize(
    ("first", "then", "shown"),
    [
        ("it has stopped", "", "it has stopped"),
        ("it has stopped", "its work is kept", "it has stopped. Its work is kept."),
        ("it has stopped.", "Its work is kept.", "it has stopped. Its work is kept."),
        ("it landed", "u undoes it", "it landed. u undoes it."),
        ("one more", "dig/worker_3 joins", "one more. dig/worker_3 joins."),
        ("Stop it?", "`plait cancel` does too", "Stop it? `plait cancel` does too."),
    ],
)
def test_two_sentences_end_in_a_period_each(first: str, then: str, shown: str):
    assert "".join(span.text for span in two_sentences(first, then)) == shown


def test_an_error_and_its_hint_are_two_sentences():
    for text in ("it is gone", "it is gone."):
        assert whole_of(EngineError(text, hint="Make another.")) == "it is gone. Make another."
    assert whole_of(EngineError("it is gone")) == "it is gone"
    assert whole_of(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("undone", "said"),
    [
        (UndoneLanding(target="main", by="ada"), "ada undid its landing on main"),
        (UndoneLanding(target="main"), "its landing on main was undone"),
    ],
    ids=["by a user", "in a journal of an earlier version"],
)
async def test_a_landing_that_was_undone_is_no_landing_that_failed(
    undone: UndoneLanding, said: str
):
    more = {"error": "its landing on main was undone", "undone": undone}
    badges = frozenset({Badge.LAND_REFUSED})
    view = changed(csvlite(), REVIEW, badges=badges, **more)
    async with opened(view) as console:
        console.app.session.worker = REVIEW
        await console.shows(f"port/io.py: {said}. It can land again; d opens its diff.")
        assert "could not land" not in console.text
        assert console.text.count(said) == 2, "on the message line and on its card"
        await console.do("go_inbox")
        await console.shows(f"landing {said}")
        await console.do("yes")
    approved = changed(view, REVIEW, badges=badges | {Badge.APPROVED})
    async with opened(approved) as console:
        console.app.session.worker = REVIEW
        await console.shows("port/io.py is approved. L lands it.")


@pytest.mark.parametrize(
    ("opened_diff", "read_only", "then"),
    [
        (False, False, "It can land again; d opens its diff."),
        (True, False, "It can land again: a approves it."),
        (True, True, "It can land again; d opens its diff."),
    ],
)
async def test_a_sentence_names_only_keys_that_work_now(
    *, opened_diff: bool, read_only: bool, then: str
):
    view = changed(csvlite(), REVIEW, undone=UndoneLanding(target="main"))
    async with opened(view, read_only=read_only) as console:
        session = console.app.session
        session.worker = REVIEW
        if opened_diff:
            attempt = session.worker_of("2f1c", REVIEW).attempt
            session.opened_diffs.add(("2f1c", REVIEW, attempt))
        await console.shows(f"port/io.py: its landing on main was undone. {then}")
        for screen in ("go_fleet", "go_inbox", "go_worker"):
            await console.do(screen)
            assert then in console.text
    cancelled = changed(csvlite(), REVIEW, phase=Phase.CANCELLED)
    async with opened(cancelled, read_only=read_only) as console:
        console.app.session.worker = REVIEW
        await console.shows("port/io.py is cancelled")
        assert ("r tries again." in console.text) is not read_only


async def test_on_a_diff_no_sentence_says_that_its_key_opens_the_diff():
    async with opened() as console:
        console.app.session.worker = REVIEW
        await console.shows("d opens its diff.")
        await console.do("diff")
        await console.until(lambda: console.screen.kind == "diff")
        assert "d opens its diff." not in console.text


async def test_the_outcome_of_a_stop_is_two_sentences():
    def answer(_: Command) -> Reply:
        return Accepted("asked to stop; its work is kept")

    port = FakePort(csvlite(), answer=answer)
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("no", "no")
        await console.shows(f"… {RUNNING} is asked to stop. Its work is kept.")
        told = Told(run="2f1c", at=NOW, event=OutputAppended(worker=RUNNING, attempt=1, offset=0))
        shown = changed(replace(port.shown, at=NOW + 2), RUNNING, phase=Phase.CANCELLED)
        port.tell(told, view=shown)
        await console.shows(f"✓ {RUNNING} has stopped: it is cancelled. Its work is kept.")


async def test_a_refused_command_is_named_not_claimed():
    def refuse(_: Command) -> Reply:
        return Refused("it has ended", hint="r starts another attempt")

    async with opened(port=FakePort(csvlite(), answer=refuse)) as console:
        console.app.session.worker = RUNNING
        await console.do("no", "no")
        await console.shows(f"✗ stop {RUNNING} refused: it has ended. r starts another attempt.")


def loose_joins(source: str) -> Iterator[str]:
    """Yield the parts of a message that two spaces hold apart, in place of a period."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "").startswith("say"):
            for part in (each for arg in node.args for each in ast.walk(arg)):
                if isinstance(part, ast.Constant | ast.JoinedStr):
                    text = said(part)
                    yield from [text] if text.strip() and "  " in (text[:2], text[-2:]) else ()


def test_no_message_is_joined_by_two_spaces():
    found = {
        path.relative_to(ROOT).as_posix(): list(loose_joins(path.read_text()))
        for path in (ROOT / "tui").rglob("*.py")
    }
    assert {path: joins for path, joins in found.items() if joins} == {}


def test_a_loose_join_is_noticed():
    source = "screen.say(mark, Span(f'{name} has stopped  ', TEXT), hint and f'  {hint}')"
    assert {"{name} has stopped  ", "  {hint}"} <= set(loose_joins(source))


@pytest.mark.parametrize(
    ("note", "already", "left"),
    [
        ("asked to stop; its work is kept", "dig/worker_1 is asked to stop", "its work is kept"),
        ("rule 2 is revoked", "rule 2 is revoked: such requests come to you again", ""),
        ("its turn is interrupted", "dig/worker_1 is paused", "its turn is interrupted"),
    ],
)
def test_a_note_is_not_said_twice(note: str, already: str, left: str):
    assert not_said(note, already) == left


def fixed_keys(text: str) -> list[str]:
    """Return the keys that a text names by their signs, and not by what the key table has."""
    return _FIXED_KEY.findall(text)


def test_a_sentence_takes_its_keys_from_the_key_table():
    found = {
        f"{path.relative_to(ROOT)}: {text}": keys
        for room in ("words", "controllers", "screens")
        for path in (ROOT / "tui" / room).rglob("*.py")
        for text in messages(path.read_text())
        if text not in _OF_A_DIALOG and (keys := fixed_keys(text))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("L lands it.", ["L"]),
        ("it holds no slot; d opens its diff.", ["d"]),
        ("It can land again: a, then L.", ["a", "L"]),
        ("esc clears the marks.", ["esc"]),
        ("{land} lands it, `x` too; it is a plan, and I read A plan.", []),
    ],
)
def test_a_fixed_key_is_noticed(text: str, keys: list[str]):
    assert fixed_keys(text) == keys


async def test_a_sentence_names_the_keys_of_the_users_key_file(tmp_path: Path):
    (tmp_path / "keys.toml").write_text('[fleet]\nland = "ctrl+y"\n')
    options = Options(clock=lambda: NOW, is_plain=False, has_truecolor=True, config=tmp_path)
    approved = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}))
    async with opened(approved, options=options) as console:
        console.app.session.worker = REVIEW
        await console.shows("port/io.py is approved. ctrl+y lands it.")
