"""Keys act on what is on screen: they alone move the cursor, and each waits for the last one."""

from dataclasses import replace

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.messages.asked import Question
from engine.messages.commands import (
    Accepted,
    Approve,
    Command,
    Land,
    Refused,
    Reply,
    RetryWorker,
    Seen,
    StopWorker,
    UndoLanding,
)
from engine.messages.events import OutputAppended, Told
from engine.messages.results import Badge, Change, EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite
from tui.keys import SCREENS, actions_on, default_keymap
from tui.kit import screen as base
from tui.kit import session
from tui.kit.dialogs import HelpPage, Picker
from tui.screens.worker.reading import SearchLine

pytestmark = [pytest.mark.anyio, pytest.mark.long]
ASKING, FAILED, REVIEW = "implement/worker_2", "port/worker_2", "port/worker_1"
RUNNING = "implement/worker_1"
SEEN = Seen(tree="b1b1b1b1", attempt=1)
_APPROVED = frozenset({Badge.APPROVED})


def _port(view: EngineView | None = None, **more: object) -> FakePort:
    diff = diff_of_reader(is_live=False)
    diffs = {REVIEW: diff, RUNNING: diff_of_reader()}
    return FakePort(view or csvlite(), diffs=diffs, **more)  # type: ignore[arg-type]


# The cursor.


@pytest.mark.parametrize("screen", ["fleet", "worker", "diff", "inbox"])
async def test_no_view_moves_the_cursor_even_before_it_was_first_moved(screen: str):
    async with opened(port=_port()) as console:
        first = console.app.session.worker
        assert first == ASKING
        await console.do(f"go_{screen}")
        question = Question(id="q9", text="and now?", asked_at=NOW - 9999, is_permission=True)
        view = changed(csvlite(at=NOW + 1), ASKING, questions=(), phase=Phase.RUNNING)
        await console.tell(changed(view, RUNNING, questions=(question,)))
        assert console.app.session.worker == first


async def test_the_cursor_rests_on_nothing_where_its_worker_is_gone():
    async with opened(port=_port()) as console:
        view = csvlite(at=NOW + 1)
        run = view.runs[0]
        await console.tell(replace(view, runs=(replace(run, steps=(run.steps[2],)),)))
        await console.do("no", "no", "retry", "yes")
        assert console.port.commands == []
        await console.shows("no worker is under the cursor")
        await console.do("down", "retry")
        hit = [c.worker for c in console.port.commands if isinstance(c, RetryWorker)]
        assert hit == [console.app.session.worker]


async def test_a_diff_stays_with_its_worker_while_another_begins_to_need_a_human():
    """`d` on one of two workers, wait: the header named the other one without a key."""
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        view = changed(csvlite(at=NOW + 1), REVIEW, phase_since=NOW - 9999)
        await console.tell(changed(view, RUNNING, phase=Phase.COLLECTING))
        assert RUNNING in console.text.split("\n")[1]


async def test_a_run_that_takes_the_screen_of_one_that_ended_gets_none_of_its_keys():
    ended = csvlite()
    old = replace(ended.runs[0], ended_at=NOW - 1)
    async with opened(port=_port(replace(ended, runs=(old,)))) as console:
        console.app.session.marks.add(RUNNING)
        await console.do("no")
        new = replace(csvlite().runs[0], run="9999", started_at=NOW)
        await console.tell(replace(ended, runs=(old, new), at=NOW + 1))
        await console.do("no", "no", "retry")
        assert [c for c in console.port.commands if c.run == "9999"] == []
        assert console.app.session.marks == set()


@pytest.mark.parametrize("key", ["", "?"])
async def test_the_cursor_comes_to_rest_in_a_run_that_an_engine_takes_up_after_another(
    monkeypatch: pytest.MonkeyPatch, key: str
):
    """Help was opened while the engine took up one run after another: then no worker was chosen."""
    monkeypatch.setattr(session, "_REST_S", 0.0)
    later = csvlite().runs[0]
    first = replace(later, run="0001", started_at=later.started_at - 60)
    view = csvlite()
    async with opened(port=FakePort(EngineView(repository="csvlite"))) as console:
        if key:
            await console.press(key)
        await console.tell(replace(view, runs=(first,), at=NOW + 1))
        await console.tell(replace(view, runs=(first, later), at=NOW + 2))
        await console.until(lambda: console.app.session.worker == ASKING)
        run = console.app.session.run
        assert run is not None
        assert run.run == later.run


async def test_a_key_that_comes_keeps_the_cursor_from_coming_to_rest(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(session, "_REST_S", 3600.0)
    old = csvlite().runs[0]
    new = replace(old, run="9999", started_at=old.started_at + 1)
    async with opened(port=_port()) as console:
        await console.tell(replace(csvlite(at=NOW + 1), runs=(old, new)))
        assert console.app.session.worker == ""
        console.app.session.rest(console.screen.fingered_at)
        assert console.app.session.worker == ""


_NAMES = [worker.worker for worker in csvlite().runs[0].workers]
_moves = st.tuples(
    st.sampled_from(_NAMES),
    st.sampled_from(list(Phase)),
    st.sampled_from(["t1", "t2", "t3"]),
    st.integers(1, 3),
)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from(["no", "retry", "land", "yes"]), _moves), max_size=6),
    st.sampled_from(["fleet", "worker", "diff"]),
    st.sampled_from(_NAMES),
)
def test_whatever_the_engine_tells_between_keys_an_act_hits_what_was_on_screen(
    turns: list[tuple[str, tuple[str, Phase, str, int]]], screen: str, name: str
):
    async def play() -> None:
        async with opened(port=_port()) as console:
            console.app.session.worker = name
            await console.do(f"go_{screen}")
            for turn, (idea, (other, phase, tree, attempt)) in enumerate(turns, 1):
                if idea not in {action.idea for action in actions_on(console.screen.kind)}:
                    continue  # a key before it may have led to another screen
                shown = console.app.session.worker_view
                sent = len(console.port.commands)
                change = Change(head="h", tree=tree, files=1)
                moved = changed(
                    replace(console.port.shown, at=NOW + turn),
                    other,
                    phase=phase,
                    change=change,
                    attempt=attempt,
                )
                # The view has come to the console, and nobody has drawn it yet.
                console.port.shown = moved
                console.app.session.bridge.view = moved
                assert console.app.session.worker_view == shown
                await console.do(idea)
                for command in console.port.commands[sent:]:
                    assert getattr(command, "worker", name) == name
                    seen = getattr(command, "seen", None)
                    assert seen is None or shown is None or seen.attempt == shown.attempt
                await console.tell(moved)

    anyio.run(play)


# Typed ahead.


def _opens() -> list[tuple[str, str]]:
    """Every key of one sign on every screen."""
    keymap = default_keymap()
    return [
        (screen, key)
        for screen in SCREENS
        for key in {key for action in actions_on(screen) for key in keymap.of(action.id)}
        if len(key) == 1 and key != "q"
    ]


@pytest.mark.parametrize("screen", SCREENS)
async def test_what_is_typed_behind_a_key_that_opens_a_box_belongs_to_the_box(screen: str):
    opened_something = 0
    view = changed(csvlite(), REVIEW, badges=_APPROVED)
    async with opened(port=_port(view)) as console:
        for key in sorted(key for on, key in _opens() if on == screen):
            await _begin(console, screen)
            await console.burst(key)
            kind = _open_box(console)
            await _close(console)
            if not kind:
                continue
            opened_something += 1
            await _begin(console, screen)
            console.port.commands.clear()
            await console.burst(f"{key}xXaL")
            assert console.typed.endswith("xXaL"), (key, console.typed)
            assert console.port.commands == [], key
            await _close(console)
    assert opened_something >= 2


async def _begin(console: Console, screen: str) -> None:
    console.app.session.worker = RUNNING
    console.app.session.drafts.clear()
    await console.app.switch_mode(screen)
    await console.burst("")
    await console.until(lambda: bool(console.text.strip()))


def _open_box(console: Console) -> str:
    if console.screen.box.writing:
        return "box"
    if isinstance(console.app.focused, SearchLine):
        return "line"
    return "list" if isinstance(console.app.screen, Picker | HelpPage) else ""


async def _close(console: Console) -> None:
    console.screen.ask = None
    if console.screen.box.writing:
        console.screen.box.box_closed()
    if console.app.screen is not console.screen or _open_box(console) == "line":
        await console.press("escape")
    console.app.sequence = ""


async def test_text_behind_a_key_whose_box_cannot_be_opened_is_dropped_with_its_burst():
    """`R` on an agent that runs is refused; its text must not run as commands."""
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.burst("Rxx")
        await console.shows("R refused")
        assert console.screen.ask is None
        assert console.port.commands == []
        await anyio.sleep(0.03)  # no hand is faster: what comes then is a key of its own
        await console.do("no")
        assert console.screen.ask is not None


@pytest.mark.parametrize("screen", SCREENS)
async def test_a_slash_takes_text_on_every_screen(screen: str):
    async with opened(port=FakePort(csvlite())) as console:
        await _begin(console, screen)
        await console.burst("/audit")
        assert console.typed == "audit"
        assert console.port.commands == []


async def test_keys_behind_one_that_opens_a_screen_are_for_that_screen():
    """`d` opens the diff, and the `X` behind it was heard by Fleet: it stops the run there."""
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.burst("2/audit")
        assert console.screen.kind == "worker"
        assert console.typed == "audit"
        assert console.port.commands == []


async def test_a_key_behind_an_act_is_read_when_the_act_was_answered():
    """`a L` in one burst: landing wants the approval, and the approval is there by then."""

    def answer(command: Command) -> Reply:
        if isinstance(command, Approve):
            port.shown = changed(replace(port.shown, at=NOW + 1), REVIEW, badges=_APPROVED)
        return Accepted()

    port = _port(answer=answer)
    async with opened(port=port) as console:
        console.app.session.worker = REVIEW
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.burst("aL")
        kinds = [type(command) for command in port.commands]
        assert kinds == [Approve]
        await console.shows("1 binary file could not be shown")
        await console.burst("L")
        assert [type(command) for command in port.commands] == [Approve, Land]


async def test_a_paste_is_no_row_of_keys():
    from textual import events  # noqa: PLC0415  beside what it is about

    async with opened(port=_port()) as console:
        console.app.post_message(events.Paste("xxXX"))
        await console.burst("/")
        assert console.port.commands == []


# Identities and outcomes.


async def test_an_act_that_was_overtaken_is_refused_and_the_screen_shows_what_is_there():
    def answer(command: Command) -> Reply:
        assert isinstance(command, Land)
        port.shown = changed(replace(port.shown, at=NOW + 1), REVIEW, attempt=2)
        return Refused("port/worker_1 has changed since you looked", hint="Look at it again.")

    port = _port(changed(csvlite(), REVIEW, badges=_APPROVED), answer=answer)
    async with opened(port=port) as console:
        console.app.session.worker = REVIEW
        await console.do("land")
        assert port.commands == [Land(worker=REVIEW, run="2f1c", seen=SEEN)]
        await console.shows("changed since you looked")
        here = console.app.session.worker_view
        assert here is not None
        assert here.attempt == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"phase": Phase.LANDED, "landed": "abcdef0123456"}, "landed as abcdef012"),
        (
            {"phase": Phase.CONFLICTED, "conflicts": ("src/io.py",)},
            "did not land: it has conflicts",
        ),
        (
            {"phase": Phase.REVIEWING, "error": "the target has moved since you looked"},
            "did not land",
        ),
    ],
)
async def test_a_landing_ends_in_what_came_of_it(more: dict[str, object], said: str):
    def answer(_: Command) -> Reply:
        port.shown = changed(replace(port.shown, at=NOW + 1), REVIEW, phase=Phase.LANDING)
        return Accepted("merging, checking")

    port = _port(changed(csvlite(), REVIEW, badges=_APPROVED), answer=answer)
    async with opened(port=port) as console:
        console.app.session.worker = REVIEW
        await console.do("land")
        await console.shows("… landing port/worker_1")
        await console.do("undo")
        await console.shows("port/worker_1 is landing")
        port.tell(_moved(), view=changed(replace(port.shown, at=NOW + 2), REVIEW, **more))
        await console.shows(said)
        assert "landing port/worker_1" not in console.message


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_an_outcome_does_not_wipe_away_a_newer_message_before_it_was_read(
    monkeypatch: pytest.MonkeyPatch, *, is_waiting: bool
):
    monkeypatch.setattr(base, "_READ_S", 3600.0 if is_waiting else 0.0)
    port = _port(answer=lambda _: Accepted())
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("no", "no")
        await console.shows(f"{RUNNING} is asked to stop")
        console.app.session.worker = FAILED
        await console.do("retry")
        await console.shows(f"{FAILED} starts again")
        ended = changed(replace(port.shown, at=NOW + 2), RUNNING, phase=Phase.CANCELLED)
        await console.tell(ended)
        said = f"{FAILED} starts again" if is_waiting else f"{RUNNING} has stopped"
        await console.shows(said)
        assert said in console.message


def _moved() -> Told:
    return Told(run="2f1c", at=NOW, event=OutputAppended(worker=RUNNING, attempt=1, offset=0))


async def test_u_after_a_landing_asks_once_and_undoes_the_landing_not_an_older_mark():
    def answer(command: Command) -> Reply:
        landed = {"phase": Phase.LANDED, "landed": "abc"}
        undone = {"phase": Phase.REVIEWING, "landed": None}
        more = landed if isinstance(command, Land) else undone
        at = port.shown.at + 1
        port.shown = changed(replace(port.shown, at=at), REVIEW, **more)
        return Accepted()

    port = _port(changed(csvlite(), REVIEW, badges=_APPROVED), answer=answer)
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("mark")
        console.app.session.worker = REVIEW
        await console.press("escape")
        console.app.session.marks.clear()
        await console.do("land")
        await console.shows("landed as abc")
        await console.do("undo")
        await console.shows("Undo the landing of port/worker_1?")
        assert len(port.commands) == 1
        await console.do("undo")
        assert port.commands[1:] == [UndoLanding(worker=REVIEW, run="2f1c")]
        await console.shows("the change waits for review again")
        assert console.app.session.done[-1].said.startswith("the mark")


async def test_a_cut_diff_lands_only_by_a_word_and_a_binary_file_is_named():
    whole = diff_of_reader(is_live=False)
    cut = replace(whole.files[0], is_cut=True)
    port = _port(changed(csvlite(), REVIEW, badges=_APPROVED))
    port.diffs[REVIEW] = replace(whole, files=(cut, *whole.files[1:]))
    async with opened(port=port) as console:
        console.app.session.worker = REVIEW
        await console.do("diff")
        await console.shows("1 cut, 1 binary")
        await console.do("land")
        await console.shows("the diff was cut in src/csvlite/reader.py: type land")
        await console.type("land\n")
        assert port.commands == [Land(worker=REVIEW, run="2f1c", seen=SEEN)]
    port.commands.clear()
    port.diffs[REVIEW] = whole
    async with opened(port=port) as console:
        console.app.session.worker = REVIEW
        await console.do("diff", "land")
        await console.shows("1 binary file could not be shown: data/quotes.bin")
        assert port.commands == []
        await console.do("land")
        assert len(port.commands) == 1


async def test_a_stop_that_was_asked_about_hits_the_worker_it_named():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("no")
        await console.tell(changed(csvlite(at=NOW + 1), REVIEW, phase_since=NOW - 9999))
        await console.do("no")
        stops = [command for command in console.port.commands if isinstance(command, StopWorker)]
        assert [stop.worker for stop in stops] == [RUNNING]
