"""Test what keys ask of the engine: each a command, asked first where it must be."""

from dataclasses import replace

import pytest
from textual import events

from engine.messages.asked import AnswerScope, KeptAnswer, Question
from engine.messages.commands import (
    Accepted,
    AddWorker,
    Answer,
    Approve,
    BeginFrom,
    Choose,
    Command,
    Interrupt,
    Land,
    Pause,
    Refused,
    Reject,
    Reply,
    Resume,
    RetryWorker,
    RevokeAnswer,
    Seen,
    SetCap,
    SetLimits,
    Steer,
    StopRun,
    StopWorker,
)
from engine.messages.events import Delivery, Steered, Told
from engine.messages.results import Badge, CheckResult
from engine.phases import Phase
from tests.support.console_diffs import diff_of_reader
from tests.support.consoles import opened, read
from tests.support.world import NOW, FakePort, changed, csvlite, worker
from tui.app import Options

pytestmark = pytest.mark.anyio
PIP = (
    "python -m pip install hypothesis\n"
    "I want property tests for nested quotes. It is not installed."
)
ASKING, FAILED, REVIEW = "implement/worker_2", "port/worker_2", "port/worker_1"
RUNNING = "implement/worker_1"
SEEN = Seen(tree="b1b1b1b1", attempt=1)
"""The change of the worker in review that every console shows."""


def _port(**more: object) -> FakePort:
    return FakePort(csvlite(), diffs={REVIEW: diff_of_reader(is_live=False)}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["a card", "below a table"])
async def test_a_allows_what_is_asked_in_full_on_the_screen(size: tuple[int, int]):
    async with opened(size=size, options=read()) as console:
        await console.do("yes")
        assert console.port.commands == [
            Answer(worker=ASKING, answer="allow", question="q1", asked=PIP, run="2f1c")
        ]
        await console.shows("allowed once")


async def test_a_for_the_run_says_so():
    async with opened(options=read()) as console:
        await console.do("yes_wide")
        assert console.port.commands[0] == Answer(
            worker=ASKING,
            answer="allow",
            question="q1",
            asked=PIP,
            is_for_run=True,
            run="2f1c",
        )


async def test_a_question_that_is_cut_off_is_opened_before_it_can_be_allowed():
    long = Question(
        id="q9", text="\n".join(f"line {n}" for n in range(90)), asked_at=NOW, is_permission=True
    )
    view = changed(csvlite(), ASKING, questions=(long,))
    async with opened(view, options=read()) as console:
        await console.do("yes")
        assert console.screen.kind == "inbox"
        await console.do("yes")
        assert console.port.commands == []
        await console.shows("the question continues below")
        await console.do("page_down", "page_down", "page_down", "page_down", "yes")
        assert isinstance(console.port.commands[0], Answer)


async def test_y_and_n_on_a_permission_grant_nothing():
    async with opened() as console:
        await console.press("y", "n")
        assert console.port.commands == []


async def test_x_denies_what_is_asked_with_the_reason_that_is_typed():
    async with opened() as console:
        await console.do("no")
        await console.type("not on my machine\n")
        assert console.port.commands == [
            Answer(
                worker=ASKING,
                answer="deny: not on my machine",
                question="q1",
                asked=PIP,
                run="2f1c",
            )
        ]


async def test_a_running_worker_is_stopped_only_by_the_second_press():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("no")
        assert console.port.commands == []
        await console.shows("Stop implement/worker_1?")
        await console.do("no")
        assert console.port.commands == [StopWorker(worker=RUNNING, run="2f1c")]


async def test_escape_leaves_what_was_asked():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("no", "leave", "no")
        assert console.port.commands == []


async def test_another_key_leaves_what_was_asked_and_does_its_own_work():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("no", "pause")
        assert console.port.commands == [Pause(worker=RUNNING, run="2f1c")]


@pytest.mark.parametrize(("key", "stopped"), [("x", 1), ("y", 1), ("n", 0), ("escape", 0)])
async def test_what_is_asked_is_answered_by_its_key_or_by_yes_and_no(key: str, stopped: int):
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("no")
        await console.shows("Stop implement/worker_1?", "x y yes   esc n no")
        await console.press(key)
        assert console.port.commands == [StopWorker(worker=RUNNING, run="2f1c")] * stopped
        assert console.screen.session.worker == RUNNING
        assert not console.screen.ask
        assert "copied" not in console.text


async def test_the_key_of_a_paused_worker_says_that_it_goes_on():
    async with opened(size=(160, 36)) as console:
        console.screen.session.worker = RUNNING
        await console.shows("p pause")
        paused = changed(csvlite(at=NOW + 1), RUNNING, badges=frozenset({Badge.PAUSED}))
        await console.tell(paused)
        await console.shows("p continue")
        assert "p pause" not in console.text


async def test_a_stopping_worker_is_killed_by_stopping_it_again():
    view = changed(csvlite(), RUNNING, phase=Phase.STOPPING)
    async with opened(view) as console:
        console.screen.session.worker = RUNNING
        await console.do("no", "no")
        assert console.port.commands == [StopWorker(worker=RUNNING, run="2f1c", is_kill=True)]


async def test_a_failed_worker_is_retried_at_once():
    async with opened() as console:
        console.screen.session.worker = FAILED
        await console.do("retry")
        assert console.port.commands == [
            RetryWorker(worker=FAILED, run="2f1c", seen=Seen(tree="", attempt=2))
        ]


async def test_retry_with_proposes_twice_the_memory_after_a_memory_limit():
    async with opened() as console:
        console.screen.session.worker = FAILED
        await console.do("retry_with")
        assert console.screen.box.area.text == "memory_mb=2048\n"
        await console.type("use less memory\n")
        command = console.port.commands[0]
        assert isinstance(command, RetryWorker)
        assert command.feedback == "use less memory"
        assert command.mode is BeginFrom.CONTINUE
        assert command.limits is not None
        assert (command.limits.memory_mb, command.limits.cpu_percent) == (2048, 100)


async def test_settings_that_are_no_figures_are_refused():
    async with opened() as console:
        console.screen.session.worker = FAILED
        await console.do("retry_with")
        console.screen.box.area.text = "memory_mb=lots"
        await console.press("enter")
        assert console.port.commands == []
        await console.shows("memory_mb=lots: not a number")
        await console.do("retry_with")
        console.screen.box.area.text = "at=noon"
        await console.press("enter")
        assert console.port.commands == []
        await console.shows("at=noon: expected 14:32")
        await console.do("retry_with")
        console.screen.box.area.text = "at=1970-01-02T00:00:09+00:00\nless of it"
        await console.press("enter")
        (command,) = console.port.commands
        assert isinstance(command, RetryWorker)
        assert command.at == pytest.approx(86_409, abs=1)
        assert (command.mode, command.feedback) == (BeginFrom.FRESH, "less of it")


async def test_steering_sends_the_text_and_keeps_a_draft_that_was_left():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("steer")
        await console.type("look at")
        await console.press("escape")
        assert console.port.commands == []
        await console.do("steer")
        await console.type(" io.py\n")
        assert console.port.commands == [Steer(worker=RUNNING, text="look at io.py", run="2f1c")]


@pytest.mark.parametrize(
    ("delivery", "said"),
    [
        (Delivery.DELIVERED, f"✓ {RUNNING} has read the message"),
        (Delivery.REFUSED, f"✗ {RUNNING} did not get the message. Its next attempt gets it."),
    ],
)
async def test_what_was_said_to_an_agent_ends_in_what_came_of_it(delivery: Delivery, said: str):
    """Also where the same words were said, and heard, before."""

    def steered(now: Delivery) -> Told:
        event = Steered(worker=RUNNING, attempt=1, text="hurry", delivery=now)
        return Told(run="2f1c", at=NOW, event=event)

    async with opened() as console:
        console.screen.session.worker = RUNNING
        for _ in range(2):
            await console.do("steer")
            await console.type("hurry\n")
            await console.shows(f"… sent to {RUNNING}")
            console.port.tell(steered(Delivery.QUEUED), view=console.port.shown)
            await console.shows(f"… sent to {RUNNING}")
            console.port.tell(steered(delivery), view=console.port.shown)
            await console.shows(said)


async def test_keys_typed_into_the_box_do_nothing_else():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("steer")
        await console.type("xxXLr")
        assert console.port.commands == []
        assert console.screen.box.area.text == "xxXLr"


async def test_a_pasted_escape_sequence_is_only_its_text():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("steer")
        console.screen.box.area.post_message(events.Paste("a\x1b]52;c;x\x07b\nc"))
        await console.pilot.pause()
        assert console.screen.box.area.text == "ab\nc"


async def test_a_change_is_not_approved_before_its_diff_was_opened():
    async with opened(port=_port()) as console:
        console.screen.session.worker = REVIEW
        await console.do("yes")
        assert console.port.commands == []
        await console.shows("you have not opened its diff yet")
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("yes")
        assert console.port.commands == [Approve(worker=REVIEW, run="2f1c", seen=SEEN)]


async def test_a_candidate_is_chosen_where_a_choice_is_due():
    view = csvlite()
    run = view.runs[0]
    steps = tuple(
        replace(s, is_choice_due=True, merge="choose") if s.name == "port" else s for s in run.steps
    )
    port = FakePort(
        replace(view, runs=(replace(run, steps=steps),)),
        diffs={REVIEW: diff_of_reader(is_live=False)},
    )
    async with opened(port=port) as console:
        console.screen.session.worker = REVIEW
        await console.do("diff")
        await console.shows("_parse_quoted()")
        await console.do("yes")
        assert port.commands == [Choose(worker=REVIEW, run="2f1c", seen=SEEN)]


async def test_an_approved_change_with_a_passed_check_lands():
    view = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}))
    async with opened(view) as console:
        console.screen.session.worker = REVIEW
        await console.do("land")
        assert console.port.commands == [Land(worker=REVIEW, run="2f1c", seen=SEEN)]


RED = CheckResult(command="pytest", passed=False, summary="1 failed")


@pytest.mark.parametrize(
    "more", [{"is_check_stale": True}, {"check": None}, {"check": RED, "is_check_stale": True}]
)
async def test_a_check_that_is_stale_or_was_not_run_is_never_overruled(more: dict[str, object]):
    """The landing runs it: nothing is there that could be overruled."""
    view = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}), **more)
    async with opened(view) as console:
        console.screen.session.worker = REVIEW
        await console.do("land")
        assert console.port.commands == [Land(worker=REVIEW, run="2f1c", seen=SEEN)]


@pytest.mark.parametrize("word", ["yes", "LAND it", ""])
async def test_a_red_check_is_overruled_only_by_the_word(word: str):
    view = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}), check=RED)
    async with opened(view) as console:
        console.screen.session.worker = REVIEW
        await console.do("land")
        await console.type(f"{word}\n")
        assert console.port.commands == []


async def test_the_word_lands_despite_a_red_check():
    view = changed(csvlite(), REVIEW, badges=frozenset({Badge.APPROVED}), check=RED)
    async with opened(view) as console:
        console.screen.session.worker = REVIEW
        await console.do("land")
        await console.type("land\n")
        overruled = Land(worker=REVIEW, run="2f1c", is_despite_check=True, seen=SEEN)
        assert console.port.commands == [overruled]


async def test_a_change_is_given_up_only_by_the_second_press():
    async with opened() as console:
        console.screen.session.worker = REVIEW
        await console.do("no")
        assert console.port.commands == []
        await console.do("no")
        assert console.port.commands == [Reject(worker=REVIEW, run="2f1c", seen=SEEN)]


async def test_pause_can_be_undone_and_done_again():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("pause", "undo", "redo")
        kinds = [type(command) for command in console.port.commands]
        assert kinds == [Pause, Resume, Pause]


async def test_the_run_is_paused_and_goes_on():
    view = csvlite()
    async with opened(view) as console:
        await console.do("pause_run")
        assert console.port.commands == [Pause(run="2f1c")]
        paused = replace(view, runs=(replace(view.runs[0], is_paused=True),), at=NOW + 1)
        await console.tell(paused)
        await console.shows("PAUSED")
        await console.do("pause_run")
        assert console.port.commands[-1] == Resume(run="2f1c")


async def test_the_run_is_stopped_only_by_the_second_press():
    async with opened() as console:
        await console.do("no_wide")
        assert console.port.commands == []
        await console.do("no_wide")
        assert console.port.commands == [StopRun(run="2f1c")]


async def test_a_worker_is_added_to_the_step_under_the_cursor():
    async with opened() as console:
        await console.do("new")
        assert console.port.commands == [AddWorker(step="implement", run="2f1c")]


async def test_what_has_no_key_is_in_the_palette():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("palette")
        await console.type("slot\n")
        await console.type("4\n")
        await console.do("palette")
        await console.type("interrupt\n")
        await console.do("palette")
        await console.type("limits\n")
        await console.type("memory_mb=512\n")
        cap, interrupt, limits = console.port.commands
        assert cap == SetCap(run="2f1c", cap=4)
        assert interrupt == Interrupt(worker=RUNNING, run="2f1c")
        assert isinstance(limits, SetLimits)
        assert limits.limits.memory_mb == 512


async def test_a_refusal_is_shown_with_its_reason_and_stays_until_the_next_key():
    def refuse(_: Command) -> Reply:
        return Refused(reason="it \x1b[31mhas ended", hint="r begins again")

    async with opened(port=_port(answer=refuse)) as console:
        console.screen.session.worker = RUNNING
        await console.do("pause")
        await console.shows("refused: it has ended. r begins again.")
        await console.do("down")
        assert "refused" not in console.text


async def test_a_note_of_the_engine_is_shown():
    async with opened(port=_port(answer=lambda _: Accepted(note="killed in 10 s"))) as console:
        console.screen.session.worker = RUNNING
        await console.do("pause")
        await console.shows("Killed in 10 s.")


async def test_a_grey_key_says_why():
    async with opened() as console:
        console.screen.session.worker = RUNNING
        await console.do("retry")
        await console.shows("r refused: it is running; stop it first.")
        await console.do("merge")
        await console.shows("it has no conflicts; it is running")
        assert console.port.commands == []


async def test_a_console_that_watches_changes_nothing():
    async with opened(read_only=True) as console:
        await console.shows("WATCHING")
        for idea in (
            "yes",
            "yes_wide",
            "no",
            "no_wide",
            "retry",
            "steer",
            "pause",
            "pause_run",
            "new",
            "land",
        ):
            await console.do(idea)
            await console.shows("only watches")
        assert console.port.commands == []


async def test_an_engine_that_is_gone_refuses_and_is_called_lost():
    times = iter(range(10_000))
    options = Options(clock=lambda: NOW + next(times), is_plain=False)
    async with opened(port=_port(), options=options) as console:
        console.port.is_gone = True
        console.screen.session.worker = RUNNING
        await console.do("pause")
        await console.shows("the engine did not answer")
        console.port.tell()
        await console.shows("NO ENGINE  for ")
        console.port.is_gone = False
        await console.until(lambda: "NO ENGINE" not in console.text)


async def test_a_question_in_words_is_answered_in_words():
    view = changed(
        csvlite(), ASKING, questions=(Question(id="q2", text="Which name?", asked_at=NOW),)
    )
    async with opened(view) as console:
        await console.do("steer")
        await console.type("reader\n")
        assert console.port.commands == [
            Answer(worker=ASKING, answer="reader", question="q2", asked="Which name?", run="2f1c")
        ]


async def test_a_question_with_choices_is_answered_by_picking_one():
    asked = Question(id="q3", text="Which?", choices=("keep", "drop"), asked_at=NOW)
    async with opened(changed(csvlite(), ASKING, questions=(asked,))) as console:
        await console.do("yes")
        await console.press("down", "enter")
        assert console.port.commands == [
            Answer(worker=ASKING, answer="drop", question="q3", asked="Which?", run="2f1c")
        ]


def test_a_scripted_worker_stands_in_the_step_its_name_says():
    assert worker("a/worker_1", Phase.QUEUED).step == "a"


async def test_kept_answers_are_listed_and_the_chosen_one_is_revoked():
    view = csvlite()
    kept = KeptAnswer(number=3, answer="allow", scope=AnswerScope.RUN, pattern="Bash(git *)")
    asked = KeptAnswer(number=4, answer="deny", scope=AnswerScope.RUN, asked="May I?\nPlease.")
    run = replace(view.runs[0], rules=(kept, asked))
    async with opened(replace(view, runs=(run,))) as console:
        await console.do("palette")
        await console.type("rules: saved answers\n")
        await console.shows(
            "Saved answers", "Bash(git *)  allow for the run", "May I?␊Please.  deny"
        )
        await console.type("4\n")
        assert console.port.commands == [RevokeAnswer(number=4, run=run.run)]


async def test_a_run_without_kept_answers_says_so():
    async with opened() as console:
        await console.do("palette")
        await console.type("rules: saved answers\n")
        await console.shows("this run has no saved answers")
