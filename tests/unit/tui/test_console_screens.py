"""The screens: each shows what it should, keys lead between them, and hidden ones cost nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.ids import RunId
from engine.messages.asked import Question
from engine.messages.commands import RetryWorker, Steer
from engine.messages.events import Answered, Asked, Told, WorkerMoved
from engine.messages.logs import LogKind
from engine.messages.questions import RunSummary, Standing
from engine.messages.results import EngineView
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import Console, opened
from tests.support.world import NOW, FakePort, changed, csvlite, log_lines, many
from tui.app import _SCREENS, Options, PlaitApp
from tui.bridge import LogGrew
from tui.ink import text_of
from tui.keys import SCREENS
from tui.kit.dialogs import HelpEntry, found_in, grouped
from tui.kit.inked import Inked
from tui.kit.opening import OpeningScreen
from tui.kit.screen import Board
from tui.screens.fleet.pane import WorkerTile
from tui.screens.worker.screen import WorkerScreen

pytestmark = pytest.mark.anyio
RUNNING = "implement/worker_1"


def _port() -> FakePort:
    reader = diff_of_reader()
    return FakePort(
        csvlite(), logs={RUNNING: log_lines(200)}, diffs={RUNNING: reader, "port/worker_1": reader}
    )


async def test_keys_lead_to_every_screen_and_back():
    async with opened(port=_port()) as console:
        for idea, kind in (
            ("go_worker", "worker"),
            ("go_diff", "diff"),
            ("go_inbox", "inbox"),
            ("go_plan", "plan"),
            ("go_runs", "runs"),
            ("go_fleet", "fleet"),
        ):
            await console.do(idea)
            assert console.screen.kind == kind
        await console.do("go_plan", "back")
        assert console.screen.kind == "fleet"


async def test_a_chord_that_leads_nowhere_or_is_left_does_nothing():
    async with opened() as console:
        await console.press("g", "§", "g", "escape")
        await console.shows("1 Fleet")
        assert console.screen.kind == "fleet"
        await console.press("g", "p")
        assert console.screen.kind == "plan"


async def test_a_chord_shows_what_can_follow_after_a_moment():
    async with opened() as console:
        await console.press("g")
        await console.shows("go_plan".removeprefix("go_"))
        await console.press("escape", "p")
        assert console.screen.kind == "fleet"


async def test_the_log_of_the_worker_under_the_cursor_is_followed():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("test_199", "FOLLOW", "LIMITS", "PREDICTED CLASH")
        console.port.logs[RUNNING] += log_lines(3, NOW)
        console.port.tell()
        await console.until(
            lambda: (
                isinstance(console.screen, WorkerScreen)
                and len(console.screen.reading.log.lines) == 203
            )
        )
        await console.do("up")
        await console.shows("HOLD")
        await console.do("follow")
        await console.shows("FOLLOW")


async def test_late_lines_of_another_log_do_not_get_into_this_one():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("test_199")
        late = LogGrew(("2f1c", "port/worker_3", 1), log_lines(3), is_new=False)
        console.app.post_message(late)
        await console.pilot.pause()
        assert isinstance(console.screen, WorkerScreen)
        assert len(console.screen.reading.log.lines) == 200


async def test_a_log_that_is_not_seen_is_not_read():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("test_199")
        await console.do("go_fleet")
        read = console.port.logs_read
        console.port.logs[RUNNING] += log_lines(1)
        await console.tell(csvlite(at=NOW + 1))
        assert console.port.logs_read == read


async def test_a_long_log_comes_in_pieces_and_whole():
    port = FakePort(csvlite(), logs={RUNNING: log_lines(3000)}, chunk=500)
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        screen = console.screen
        assert isinstance(screen, WorkerScreen)
        await console.until(
            lambda: (
                bool(screen.reading.log.lines) and "test_2999" in screen.reading.log.lines[-1].text
            )
        )


async def test_searching_a_log_goes_to_a_hit_and_escape_ends_it():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("test_199")
        await console.do("search")
        await console.type("test_14\n")
        await console.shows("/test_14: 3", "test_14")
        await console.do("leave")
        assert "/test_14" not in console.text


async def test_tabs_show_events_prompt_limits_and_attempts():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        moved = WorkerMoved(worker=RUNNING, attempt=1, before=Phase.QUEUED, after=Phase.RUNNING)
        console.port.tell(Told(run="2f1c", at=NOW, event=moved, seq=1))
        await console.do("go_worker", "right")
        await console.shows("● running")
        await console.do("right")
        await console.shows("Fix the quoted-field bug as planned.")
        await console.do("right")
        await console.shows("this file system has no quotas", "mount it with project quotas")
        await console.do("right")
        await console.shows("attempt 1")
        await console.do("open")
        await console.shows("FOLLOW")


async def test_a_link_in_the_log_opens_the_diff_at_its_line():
    port = _port()
    lines = log_lines(2)
    port.logs[RUNNING] = (
        replace(lines[1], kind=LogKind.SAYS, text="see src/csvlite/reader.py:85"),
    )
    async with opened(port=port) as console:
        console.app.session.worker = RUNNING
        await console.do("go_worker")
        await console.shows("reader.py:85")
        await console.do("open")
        await console.shows("_parse_quoted()")
        row = next(
            line for line in console.text.split("\n") if "▌" in line and "continue_quoted" in line
        )
        assert "85" in row


async def test_the_inbox_answers_in_place_and_goes_on_to_the_next():
    async with opened(port=_port()) as console:
        await console.do("go_inbox")
        await console.shows("WHAT IT COULD TOUCH", "own worktree", "JUST BEFORE", "3 wait for you")
        await console.do("yes", "yes")  # it has only just appeared
        answered = changed(csvlite(at=NOW + 1), "implement/worker_2", questions=())
        asked = Answered(
            worker="implement/worker_2", attempt=1, question="q1", answer="allow", by="you"
        )
        console.port.tell(Told(run="2f1c", at=NOW, event=asked, seq=3), view=answered)
        await console.shows("2 wait for you", "1 answered", "ANSWERED", "port/cli.py")


async def test_a_snoozed_item_goes_to_the_end_and_comes_back():
    async with opened() as console:
        await console.do("go_inbox", "pause")
        await console.shows("LATER")
        await console.do("undo")
        assert "LATER" not in console.text


async def test_a_narrow_inbox_has_a_row_for_each_item_and_says_what_lies_below():
    async with opened(port=_port(), size=(80, 24)) as console:
        await console.do("go_inbox")
        await console.shows("port/io.py  passed in its own tree", "more rows  pgdn")
        await console.shows("ANSWER", "later  it keeps waiting")
        await console.do("page_down")
        await console.shows("WHAT IT COULD TOUCH", "enforced")
        assert "more rows" not in console.text


async def test_a_card_lights_up_for_a_moment_when_its_worker_begins_to_need_you():
    async with opened(port=_port()) as console:
        await console.shows("NEEDS YOU")
        seen, draw = [], console.screen.draw

        def spy() -> None:
            seen.append(console.app.session.scene().risen)
            draw()

        console.screen.draw = spy  # type: ignore[method-assign]
        asks = Question(id="q9", text="May I?", asked_at=NOW)
        console.port.tell(view=changed(csvlite(at=NOW + 1), RUNNING, questions=(asks,)))
        await console.until(lambda: any(seen) and not seen[-1])
        assert {name for risen in seen for name in risen} == {RUNNING}


async def test_a_timer_that_goes_off_while_the_console_closes_harms_nothing():
    async with opened() as console:
        app = console.app
    assert not app.screen_stack
    app.redraw()


async def test_nothing_lights_up_where_nothing_moves():
    async with opened(port=_port(), options=Options(clock=lambda: NOW, is_plain=True)) as console:
        await console.shows("NEEDS YOU")
        asks = Question(id="q9", text="May I?", asked_at=NOW)
        console.port.tell(view=changed(csvlite(at=NOW + 1), RUNNING, questions=(asks,)))
        await console.shows("May I?")
        assert not console.app.session.risen


async def test_an_empty_inbox_says_so_and_where_to_go():
    async with opened(many(1)) as console:
        await console.do("go_inbox")
        await console.shows("Nothing waits for you.", "goes back to Fleet")


async def test_the_plan_shows_steps_time_and_the_step_under_the_cursor():
    async with opened() as console:
        await console.do("go_plan")
        await console.shows("design", "NEEDS YOU", "TIMELINE", "STEP implement", "►")
        await console.do("right")
        await console.shows("STEP tests")
        await console.do("left", "left")
        await console.shows("STEP design")
        await console.do("next", "open")
        assert console.screen.kind == "fleet"


async def test_a_plan_without_room_for_boxes_is_a_list():
    async with opened(size=(80, 24)) as console:
        await console.do("go_plan")
        await console.shows("STEPS", "implement", "after implement, port")


async def test_runs_are_listed_and_opened():
    view = csvlite()
    older = replace(view.runs[0], run="1111", name="older", started_at=NOW - 9000)
    async with opened(replace(view, runs=(older, view.runs[0]))) as console:
        await console.shows("fix 2f1c")
        await console.do("go_runs", "down", "open")
        await console.shows("older 1111")


async def test_a_run_begun_elsewhere_takes_the_screen_only_of_one_that_has_ended():
    view = csvlite()
    mine = view.runs[0]
    other = replace(mine, run="9999", name="other", started_at=NOW + 60)
    async with opened(view) as console:
        await console.shows("fix 2f1c")
        taken_up = replace(mine, run="5555", name="taken up", started_at=mine.started_at + 1)
        await console.tell(replace(view, runs=(mine, taken_up), at=NOW + 1))
        await console.shows("taken up 5555")
        await console.tell(replace(view, runs=(mine, other), at=NOW + 61))
        await console.do("go_runs")
        await console.shows("9999", "fix 2f1c")
        await console.tell(replace(view, runs=(replace(mine, ended_at=NOW), other), at=NOW + 62))
        await console.shows("other 9999")


async def test_runs_that_are_not_open_are_listed_and_read_from_their_journals():
    port = _port()
    port.past = [
        RunSummary(
            id=RunId("0aaa"),
            started=NOW - 900,
            standing=Standing.UNFINISHED,
            name="before",
            last=NOW,
        )
    ]
    async with opened(port=port) as console:
        await console.do("go_runs")
        await console.shows("0aaa", "before", "unfinished")
        await console.do("last", "open")
        await console.shows("there is no run 0aaa")
        port.closed["0aaa"] = replace(csvlite().runs[0], run="0aaa", name="before")
        await console.do("open")
        await console.shows("before 0aaa", "implement")
        assert console.screen.kind == "fleet"


async def test_a_diff_is_read_hunk_by_hunk():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("0 of 6 seen", "src/csvlite/reader.py")
        await console.do("mark")
        await console.shows("1 of 6 seen")
        await console.do("undo")
        await console.shows("0 of 6 seen")


async def test_comments_wait_until_all_are_sent_with_their_code():
    async with opened(port=_port()) as console:
        console.app.session.worker = RUNNING
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("next", "down", "comment")
        await console.type("why?\n")
        await console.shows("not sent yet", "1 to send")
        assert console.port.commands == []
        await console.do("send")
        command = console.port.commands[0]
        assert isinstance(command, Steer)
        assert command.text.startswith("[1] src/csvlite/reader.py:81\n> ")
        assert "\nwhy?\n\n" in command.text
        await console.shows(" sent ")


async def test_comments_on_a_finished_change_go_with_a_retry():
    async with opened(port=_port()) as console:
        console.app.session.worker = "port/worker_1"
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("next", "down", "comment")
        await console.type("why?\n")
        await console.do("send")
        assert isinstance(console.port.commands[0], RetryWorker)


async def test_a_worker_without_a_change_says_so_in_the_diff():
    async with opened(port=_port()) as console:
        console.app.session.worker = "port/worker_3"
        await console.do("diff")
        await console.shows("The diff could not be read: there is no change yet.")


async def test_before_the_first_run_the_ways_to_begin_are_shown():
    async with opened(EngineView(repository="csvlite"), size=(80, 24)) as console:
        await console.shows("No run yet in this repository.", "plait demo", "plait init")
        await console.do("go_worker")
        await console.shows("There is no worker yet.")
        for kind in ("worker", "diff", "compare", "review", "inbox", "plan", "runs"):
            await console.do(f"go_{kind}")
            assert console.screen.kind == kind
            assert console.text.split("\n")[-1].split("  ")[0].strip() == "1 fleet"
            assert "move" not in console.text


async def test_help_lists_keys_grays_with_reasons_and_searches():
    async with opened() as console:
        await console.do("help")
        await console.shows("Keys of Fleet", "MOVE", "esc closes", "sampled")
        await console.type("land")
        await console.shows("NOT NOW", "it has no approved change to land")
        await console.press("escape")
        assert "Keys of Fleet" not in console.text


@pytest.mark.parametrize("cells", [40, 72, 112, 168, 300])
def test_no_column_of_the_help_begins_within_an_entry(cells: int):
    said = " ".join(["a long sentence"] * 5)
    groups = ("MOVE", "ELSEWHERE", "NOT NOW")
    entries = [HelpEntry(name, f"key{n}", said) for name in groups for n in range(9)]
    rows = grouped(entries, cells)
    columns = max(min(cells // 42, 3), 1)
    share = (cells - 2 * (columns - 1)) // columns
    for column in range(columns):
        first = text_of([rows[0]])[column * (share + 2) :]
        assert first.startswith(("MOVE", "ELSEWHERE", "NOT NOW", "key")), first
    whole = " ".join(text_of(rows).split())
    assert all(whole.count(f"key{n} ") == len(groups) for n in range(9))


def test_help_finds_a_key_by_the_word_of_the_footer():
    entries = (HelpEntry("MOVE", "E", "the file", also="edit file"), HelpEntry("MOVE", "j", "down"))
    assert [entry.text for entry in found_in(entries, "edit")] == ["the file"]


async def test_a_worker_is_picked_by_name():
    async with opened() as console:
        await console.do("pick")
        await console.type("sniff\n")
        assert console.app.session.worker == "port/worker_3"


async def test_a_theme_is_worn_at_once_by_all_screens():
    async with opened() as console:
        await console.do("show_theme")
        await console.type("linen\n")
        assert console.app.session.palette.theme.name == "linen"
        assert console.app.palette.theme.name == "linen"


async def test_leaving_asks_what_becomes_of_live_workers():
    async with opened() as console:
        await console.do("back")
        await console.shows("workers are live", "leave them running", "Nothing is lost either way.")
        await console.press("escape")
        assert "leave them running" not in console.text
        await console.do("back")
        await console.press("enter")
        await console.until(lambda: not console.app.is_running or console.is_leaving)
    assert console.port.commands == []


async def test_the_key_that_asked_to_leave_leaves_when_it_comes_again():
    async with opened() as console:
        await console.do("back")
        await console.shows("leave them running")
        await console.press("q")
        await console.until(lambda: console.is_leaving)
    assert console.port.commands == []


async def test_leaving_can_stop_the_workers():
    async with opened() as console:
        await console.do("back")
        await console.press("s")
        await console.until(lambda: console.is_leaving)
    assert [type(c).__name__ for c in console.port.commands] == ["StopRun"]


async def test_nothing_alive_means_no_question():
    settled = changed(many(1), "port/worker_1", phase=Phase.LANDED)
    async with opened(settled) as console:
        await console.do("back")
        await console.until(lambda: console.is_leaving)


async def test_a_run_that_has_ended_has_no_live_workers():
    view = changed(many(1), "port/worker_1", phase=Phase.CHECKING)
    async with opened(replace(view, runs=(replace(view.runs[0], ended_at=NOW),))) as console:
        await console.do("back")
        await console.until(lambda: console.is_leaving)


@pytest.mark.parametrize("size", [(20, 5), (40, 10), (80, 24), (250, 70)])
async def test_every_screen_draws_at_any_size(size: tuple[int, int]):
    async with opened(port=_port(), size=size) as console:
        console.app.session.worker = RUNNING
        for idea in ("go_worker", "go_diff", "go_inbox", "go_plan", "go_runs", "help"):
            await console.do(idea)
            assert console.text.strip()


async def test_the_screen_follows_its_size():
    async with opened() as console:
        await console.pilot.resize_terminal(80, 24)
        await console.shows("WORKER", "PHASE")


async def test_foreign_text_reaches_the_screen_clean_and_never_as_markup():
    bad = "\x1b]52;c;aGk=\x07[red]text[/red] [@click=app.exit]x[/] \u202e"
    question = Question(id="q", text=bad, asked_at=NOW, is_permission=True)
    view = changed(
        csvlite(), RUNNING, last_lines=(bad,), tool=bad, error=bad, questions=(question,), label=bad
    )
    async with opened(view) as console:
        for idea in ("go_inbox", "go_worker", "go_plan", "go_fleet", "pick"):
            await console.do(idea)
            assert "\x1b" not in console.text
            assert "\u202e" not in console.text
        assert "[red]text[/red]" in console.text


async def test_a_hidden_screen_draws_nothing():
    async with opened(port=_port()) as console:
        fleet = console.screen
        await console.do("go_worker")
        before = [inked.rows for inked in fleet.query(Inked)]
        await console.tell(changed(csvlite(at=NOW + 2), RUNNING, tool="something else"))
        after = [inked.rows for inked in fleet.query(Inked)]
        assert all(one is other for one, other in zip(before, after, strict=True))


async def test_only_changed_cells_are_painted():
    async with opened() as console:
        painted: list[object] = []

        def spied(real: Callable[..., object]) -> Callable[..., object]:
            def spy(*regions: object, **more: object) -> object:
                painted.extend(regions or [real])
                return real(*regions, **more)

            return spy

        for tile in console.screen.query(WorkerTile):
            tile.refresh = spied(tile.refresh)  # type: ignore[method-assign, assignment]
        await console.tell(changed(csvlite(at=NOW + 3), RUNNING, tool="grep x"))
        await console.shows("grep x")
        assert painted
        assert all(region.height == 1 for region in painted)  # type: ignore[attr-defined]
        assert sum(region.width for region in painted) < 200  # type: ignore[attr-defined]


async def test_plain_mode_draws_without_colors_and_ascii_without_signs():
    options = Options(clock=lambda: NOW, is_plain=True, is_ascii=True)
    async with opened(options=options) as console:
        strips = [
            one.render_line(y)
            for one in console.screen.query(Inked)
            for y in range(one.size.height)
        ]
        assert all(char.isascii() for strip in strips for segment in strip for char in segment.text)
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        assert all(style.color is None and style.bgcolor is None for style in styles)
        assert any(style.reverse for style in styles)


async def test_what_has_happened_is_shown_without_waiting_for_the_next_frame():
    async with opened() as console:
        console.app.pace = lambda: 3600.0  # type: ignore[method-assign]
        console.app.session.bridge.pace_s = 3600.0
        moved = WorkerMoved(worker=RUNNING, attempt=1, before=Phase.RUNNING, after=Phase.COLLECTING)
        for at in (1, 2):
            view = changed(csvlite(at=NOW + at), RUNNING, tool=f"tool {at}")
            console.port.tell(Told(run="2f1c", seq=90 + at, at=NOW, event=moved), view=view)
            await console.shows(f"tool {at}")


async def test_events_are_kept_for_the_run_on_screen():
    async with opened(size=(200, 50)) as console:
        asked = Asked(worker=RUNNING, attempt=1, question=Question(id="q", text="?"))
        console.port.tell(Told(run="2f1c", at=NOW, event=asked, seq=4))
        await console.shows("LATEST", "asks you")


@pytest.mark.parametrize(
    "name", ["task", "workers", "log", "name", "tree", "size", "region", "children", "layers"]
)
def test_no_screen_or_app_of_ours_takes_a_name_that_the_framework_owns(name: str):
    for kind in (Board, PlaitApp, WorkerScreen):
        mine = [base for base in kind.__mro__ if base.__module__.startswith("tui.")]
        assert not any(name in vars(base) for base in mine)


def test_every_screen_that_is_built_is_in_the_key_table():
    assert set(_SCREENS) <= set(SCREENS)


class _Keeping(PlaitApp):
    """A console that keeps its first screen, to be looked at when it has gone."""

    def opening(self) -> OpeningScreen:
        self.first = super().opening()
        return self.first

    async def remove_mode(self, mode: str) -> None:
        self.bars = [bar.text for bar in self.first.query(Inked)]
        await super().remove_mode(mode)


@pytest.mark.parametrize("size", [(120, 36), (80, 24), (40, 10)])
async def test_the_first_frame_stays_as_it_is_until_the_engine_is_reached(
    size: tuple[int, int], tmp_path: Path
):
    port = FakePort(csvlite())
    app = _Keeping(None, options=Options(clock=lambda: NOW, is_plain=False, has_truecolor=True))
    async with app.run_test(size=size):
        console = await Console(app, port).until(app.has_painted.is_set)
        assert console.screen.kind == "fleet"
        now = [console.screen.query_one(f"#{bar}", Inked).text for bar in ("top", "say", "keys")]
        assert app.bars == now
        app.reach(port, tmp_path / "memory.json")
        await console.shows("worker_2")
        assert not app.first.is_attached
