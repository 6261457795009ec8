"""Many at once: filters, marks and ranges in Fleet, and one question before what is done to all."""

from dataclasses import replace

import pytest

from engine.messages.commands import Approve, Land, Pause, RetryWorker, Steer, StopWorker
from engine.messages.results import Badge, Change, CheckResult, EngineView
from engine.phases import Phase
from tests.support.consoles import Console, opened
from tests.support.world import NOW, changed, csvlite, many, worker
from tui.kit.dialogs import AskDialog
from tui.words.filtering import filters, meant_by

pytestmark = [pytest.mark.anyio, pytest.mark.long]
RUNNING = ["port/worker_1", "port/worker_4", "port/worker_10"]
CANCELLED, CONFLICT = "port/worker_9", "port/worker_7"


def fleet(console: Console) -> str:
    """Return what Fleet shows between its bars."""
    return "\n".join(console.text.split("\n")[2:-2])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", 8),
        ("phase:run", 3),
        ("phase:fail", 1),
        ("phase:", 8),
        ("agent:codex", 1),
        ("-agent:codex", 7),
        ("step:port", 3),
        ("step:port -phase:failed", 2),
        ("needs:me", 3),
        ("check:red", 1),
        ("quoted-field", 1),
        ("CLI.py", 1),
        ("nobody", 0),
        ("step:port nobody", 0),
        ("-", 8),
    ],
)
def test_a_filter_is_terms_that_all_hold(text: str, found: int):
    run = csvlite().runs[0]
    pairs = [(worker, step) for step in run.steps for worker in step.workers]
    assert sum(filters(text, worker, step) for worker, step in pairs) == found


async def test_keys_typed_behind_the_end_of_a_filter_are_for_the_screen():
    async with opened(many(20)) as console:
        await console.keys("/", *"phase:run", "enter", "g", "g", "v", "G")
        await console.shows("/phase:run   6 of 20", "✚ 6 marked")


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 50)])
async def test_fleet_shows_what_is_filtered_for_while_it_is_typed(size: tuple[int, int]):
    async with opened(many(20), size=size) as console:
        await console.do("search")
        await console.type("phase:run")
        await console.shows("/phase:run   6 of 20", "esc shows all")
        assert console.app.session.worker == RUNNING[0]
        assert "REVIEW" not in fleet(console)
        await console.press("enter")
        assert not console.screen.focused
        await console.do("last")
        assert console.app.session.worker == "port/worker_20"
        await console.do("leave")
        await console.shows("REVIEW")
        assert "6 of 20" not in console.text


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 50)])
async def test_the_inbox_shows_what_is_filtered_for(size: tuple[int, int]):
    async with opened(csvlite(), size=size) as console:
        await console.do("go_inbox", "search")
        await console.type("phase:failed")
        await console.shows("/phase:failed   1 of 3", "port/cli.py")
        assert console.app.session.worker == "port/worker_2"
        assert "implement/worker_2" not in console.text
        await console.press("enter")
        await console.do("search")
        await console.type(" nobody")
        await console.shows("Nothing matches.", "0 of 3")
        await console.press("escape")
        await console.shows("3 wait for you")


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 50)])
async def test_the_plan_shows_the_steps_that_are_filtered_for(size: tuple[int, int]):
    async with opened(csvlite(), size=size) as console:
        await console.do("go_plan", "search")
        await console.type("needs:me")
        await console.shows("/needs:me   2 of 4", "STEPS 2")
        await console.press("enter")
        await console.do("last")
        await console.shows("STEP port")
        await console.do("up")
        await console.shows("STEP implement")
        await console.do("leave")
        await console.shows("design", "tests")
        assert "2 of 4" not in console.text


async def test_runs_are_filtered_by_their_title_their_agents_and_what_needs_a_human():
    view = csvlite()
    older = replace(view.runs[0], run="1111", name="Make it red", steps=view.runs[0].steps[:1])
    async with opened(replace(view, runs=(older, view.runs[0]))) as console:
        await console.do("go_runs", "search")
        await console.type("make red")
        await console.shows("1 of 2", "Make it red")
        assert "2f1c" not in console.text.split("1 of 2")[1]
        await console.press("escape")
        await console.do("search")
        await console.type("agent:codex needs:me\n")
        await console.shows("1 of 2", "2f1c")
        assert "1111" not in console.text.split("1 of 2")[1]
        await console.do("leave")
        await console.shows("1111", "2f1c")


async def test_filters_of_before_are_brought_back_on_every_screen():
    async with opened(csvlite()) as console:
        await console.do("search")
        await console.type("phase:run\n")
        await console.do("search")
        await console.type(" agent:codex\n")
        await console.do("go_inbox", "search")
        await console.press("up")
        await console.shows("/phase:run agent:codex")
        await console.press("up")
        await console.shows("/phase:run   ")
        await console.press("down", "down")
        await console.shows("3 wait for you")


async def test_a_filter_is_kept_by_a_name_and_used_by_it():
    async with opened(many(20), size=(120, 30)) as console:
        await console.do("search")
        await console.type("seven=module_7\n")
        await console.shows("/module_7", "1 of 20")
        await console.do("leave")
        await console.do("search")
        await console.type("=seven\n")
        await console.shows("/module_7", "1 of 20")
        assert console.app.session.named_filters == {"seven": "module_7"}
        await console.do("leave", "search")
        await console.type("seven=\n")
        assert console.app.session.named_filters == {}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("=red", "phase:failed check:red"),
        ("=red agent:x", "phase:failed check:red agent:x"),
        ("more==red", "phase:failed check:red"),
        ("=re", ""),
        ("a b", "a b"),
        ("a=", ""),
    ],
)
def test_a_name_stands_for_the_filter_that_was_kept(typed: str, meant: str):
    assert meant_by(typed, {"red": "phase:failed check:red"}) == meant


async def test_a_filter_is_left_by_escape_while_it_is_typed():
    async with opened(many(20), size=(80, 24)) as console:
        await console.do("search")
        await console.type("nobody")
        await console.shows("0 of 20")
        await console.press("escape")
        await console.shows("CONFLICT", "REVIEW")


async def test_the_cursor_stays_on_a_worker_that_has_left_the_filter():
    async with opened(many(20), size=(80, 24)) as console:
        await console.do("search")
        await console.type("phase:run\n")
        left = changed(many(20), RUNNING[0], phase=Phase.CHECKING)
        await console.tell(replace(left, at=NOW + 1))
        await console.shows("5 of 20", "▌« port/module_1.py")
        assert console.app.session.worker == RUNNING[0]


async def test_marks_have_a_sign_of_their_own_and_are_counted():
    async with opened(many(20), size=(80, 24)) as console:
        await console.do("mark", "mark")
        await console.shows("✚ 2 marked", "✚ port/module_7.py", "✚ port/module_17.py")
        await console.do("undo")
        await console.shows("✚ 1 marked")
        await console.do("leave")
        assert "✚" not in console.text


@pytest.mark.parametrize("size", [(80, 24), (120, 35)])
async def test_a_range_marks_what_the_cursor_goes_over(size: tuple[int, int]):
    async with opened(many(20), size=size) as console:
        await console.do("search")
        await console.type("phase:run\n")
        await console.do("select", "down", "down", "up")
        marks = console.app.session.marks
        assert len(marks) == 2
        assert RUNNING[0] in marks
        await console.do("last")
        assert len(console.app.session.marks) == 6
        await console.do("select", "up")
        assert len(console.app.session.marks) == 6
        await console.do("undo")
        assert console.app.session.marks == set()


async def test_escape_leaves_a_range_with_the_marks_that_were_there_before():
    async with opened(many(20), size=(80, 24)) as console:
        await console.do("mark", "select", "down", "down", "leave")
        assert console.app.session.marks == {CONFLICT}


def marked(console: Console, *names: str) -> None:
    console.app.session.marks = set(names)


async def test_what_is_done_to_all_marked_is_asked_once_with_their_names():
    async with opened(many(20), size=(80, 24)) as console:
        marked(console, *RUNNING, CANCELLED)
        await console.do("no")
        await console.shows("Stop 3 workers?", "port/module_1.py  running")
        await console.shows("not port/module_9.py: it is not running; it was cancelled")
        assert console.port.commands == []
        await console.press("y")
        assert console.port.commands == [StopWorker(worker=w, run="2f1c") for w in RUNNING]
        assert console.app.session.marks == set()


@pytest.mark.parametrize("key", ["n", "escape", "enter", "q"])
async def test_what_is_not_wanted_for_all_is_done_to_none_and_the_marks_stay(key: str):
    async with opened(many(20), size=(80, 24)) as console:
        marked(console, *RUNNING)
        await console.do("no")
        await console.press(key)
        assert not isinstance(console.app.screen, AskDialog)
        assert console.port.commands == []
        assert console.app.session.marks == set(RUNNING)


async def test_all_marked_are_retried_with_one_text():
    async with opened(many(20), size=(100, 24)) as console:
        marked(console, CANCELLED, CONFLICT, RUNNING[0])
        await console.do("retry_with")
        await console.shows("retry 2 workers (port/worker_7, port/worker_9)")
        await console.type("memory_mb=512\nuse less".replace("\n", " "))
        await console.press("enter")
        commands = console.port.commands
        assert [c.worker for c in commands if isinstance(c, RetryWorker)] == [CONFLICT, CANCELLED]
        assert len({c.feedback for c in commands if isinstance(c, RetryWorker)}) == 1
        assert console.app.session.marks == set()


async def test_all_marked_are_paused_and_each_pause_can_be_undone():
    async with opened(many(20), size=(80, 24)) as console:
        marked(console, *RUNNING[:2])
        await console.do("pause")
        await console.shows("Pause 2 workers?")
        await console.press("y")
        assert console.port.commands == [Pause(worker=w, run="2f1c") for w in RUNNING[:2]]
        await console.do("undo", "undo")
        assert len(console.port.commands) == 4


async def test_all_marked_are_told_the_same():
    async with opened(many(20), size=(80, 24)) as console:
        marked(console, *RUNNING[:2])
        await console.do("steer")
        await console.type("hurry\n")
        told = [c.worker for c in console.port.commands if isinstance(c, Steer)]
        assert told == RUNNING[:2]


def _reviewed() -> EngineView:
    """Return four changes under review: one approved, one approved with a red check, two not."""
    green = CheckResult(command="true", passed=True)
    red = CheckResult(command="true", passed=False)
    change = Change(head="a1", tree="t1", files=1, insertions=1)
    approved = frozenset({Badge.APPROVED})
    each = ((approved, green), (approved, red), (frozenset(), green), (frozenset(), green))
    workers = tuple(
        worker(f"port/worker_{n}", Phase.REVIEWING, badges=badges, check=check, change=change)
        for n, (badges, check) in enumerate(each, 1)
    )
    view = csvlite()
    step = replace(view.runs[0].steps[2], workers=workers, merge="each")
    return replace(view, runs=(replace(view.runs[0], steps=(step,)),))


async def test_only_changes_that_were_looked_at_are_approved_together():
    async with opened(_reviewed(), size=(100, 30)) as console:
        session = console.app.session
        session.opened_diffs.add(("2f1c", "port/worker_3", 1))
        marked(console, "port/worker_3", "port/worker_4")
        await console.do("yes")
        await console.shows(
            "Approve 1 worker?", "not port/worker_4: you have not opened its diff yet"
        )
        await console.press("y")
        approved = [c.worker for c in console.port.commands if isinstance(c, Approve)]
        assert approved == ["port/worker_3"]


async def test_a_red_check_keeps_a_change_out_of_what_is_landed_together():
    async with opened(_reviewed(), size=(100, 30)) as console:
        marked(console, "port/worker_1", "port/worker_2", "port/worker_3")
        await console.do("land")
        await console.shows("Land 1 worker?", "put the cursor on it to land it", "not approved yet")
        await console.press("y")
        landed = [c.worker for c in console.port.commands if isinstance(c, Land)]
        assert landed == ["port/worker_1"]


async def test_where_nothing_can_be_done_to_any_marked_that_is_said():
    async with opened(many(20), size=(100, 24)) as console:
        marked(console, *RUNNING)
        await console.do("retry")
        assert "no marked worker is ready" in console.message
        assert "stop it first" in console.message
