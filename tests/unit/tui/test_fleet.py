"""Fleet: what needs a human comes first; the form fits the room; every row fits its width."""

from collections import Counter
from dataclasses import replace

import pytest

from engine.limits import Limits, Usage
from engine.messages.asked import Question
from engine.messages.deeds import Deed
from engine.messages.logs import LogKind
from engine.messages.results import Badge, Change, EngineView, Outcome, StepView, WorkerView
from engine.phases import Phase, StopCause
from tests.support.fleets import rows_of
from tests.support.world import NOW, changed, csvlite, many, worker
from tui.ink import Role, row_width, text_of
from tui.keys import default_keymap
from tui.kit.bars import Hint, footer
from tui.kit.cards import card, hints_of, question_fits
from tui.kit.chrome import banner_rows, beads_of, run_line, top_bar
from tui.kit.deeds import deed_rows
from tui.kit.rail import CELLS, rail
from tui.kit.tiles import tile
from tui.screens.fleet.page import Form, Wish, form_of, lay_out, move
from tui.screens.plan.timeline import Timeline
from tui.screens.worker.page import limits_tab, worker_subject
from tui.words import standing
from tui.words.doable import why_not
from tui.words.said import left_row, now_text
from tui.words.scene import Banner, Scene
from tui.words.sentences import sentence_of
from tui.words.standing import Band, bands_of, candidate_of, clock_of, short_name, step_of

KEYS = {
    "yes": "a",
    "yes_wide": "A",
    "no": "x",
    "retry": "r",
    "retry_with": "R",
    "diff": "d",
    "land": "L",
}


def _key(idea: str) -> str:
    return KEYS.get(idea, "?")


def _scene(view: EngineView | None = None, **more: object) -> Scene:
    view = view or csvlite()
    return Scene(view=view, run=view.runs[0] if view.runs else None, now=NOW, keys=KEYS, **more)  # type: ignore[arg-type]


def _text(view: EngineView, cells: int = 120, height: int = 32, **more: object) -> str:
    scene = _scene(view)
    page = lay_out(scene, (cells, height), "implement/worker_2", Wish(**more))  # type: ignore[arg-type]
    return text_of(rows_of(page, cells))


def test_who_needs_you_comes_first_and_what_holds_a_slot_before_the_rest():
    bands = bands_of(csvlite().runs[0])
    assert [w.worker for w in bands[Band.NEEDS_YOU]] == [
        "implement/worker_2",
        "port/worker_2",
        "port/worker_1",
    ]
    assert [w.worker for w in bands[Band.WORKING]] == [
        "implement/worker_1",
        "implement/worker_3",
        "port/worker_3",
    ]
    assert [w.worker for w in bands[Band.SETTLED]] == ["design/worker_1"]


def test_a_failure_that_its_step_survived_needs_nobody():
    view = csvlite()
    steps = tuple(
        replace(s, outcome=Outcome.SUCCESS) if s.name == "port" else s for s in view.runs[0].steps
    )
    bands = bands_of(replace(view.runs[0], steps=steps))
    assert "port/worker_2" in {w.worker for w in bands[Band.SETTLED]}


def test_an_expired_login_needs_you():
    view = changed(csvlite(), "implement/worker_1", badges=frozenset({Badge.NEEDS_LOGIN}))
    assert "implement/worker_1" in {w.worker for w in bands_of(view.runs[0])[Band.NEEDS_YOU]}
    assert "LOGIN" in _text(view)


def test_the_keys_on_the_card_of_an_expired_login_can_be_used():
    badges = frozenset({Badge.NEEDS_LOGIN})
    view = changed(csvlite(), "implement/worker_1", badges=badges, phase=Phase.BACKING_OFF)
    run = view.runs[0]
    one = next(one for one in run.workers if one.worker == "implement/worker_1")
    step = step_of(run, one)
    hints = hints_of(one, step, _scene(view))
    assert [hint.idea for hint in hints] == ["retry", "diff"]


@pytest.mark.parametrize(
    ("cells", "height", "count", "form"),
    [
        (120, 36, 8, Form.TILES),
        (99, 36, 8, Form.TABLE),
        (120, 36, 40, Form.TABLE),
        (39, 36, 8, Form.EMERGENCY),
        (80, 5, 8, Form.EMERGENCY),
    ],
)
def test_the_form_follows_the_room_and_the_number(cells: int, height: int, count: int, form: Form):
    view = csvlite() if count == 8 else many(count)
    assert form_of(view.runs[0], cells, height, 0) is form


def test_the_user_can_ask_for_another_form():
    run = csvlite().runs[0]
    assert form_of(run, 120, 36, -4) is Form.TABLE
    assert form_of(run, 80, 36, 1) is Form.TILES


@pytest.mark.parametrize("cells", [30, 60, 80, 99, 100, 120, 160, 219, 220, 300])
@pytest.mark.parametrize("count", [0, 1, 4, 20])
def test_every_row_is_exactly_as_wide_as_the_screen(cells: int, count: int):
    view = many(count)
    scene = _scene(view)
    for height in (6, 20, 45):
        page = lay_out(scene, (cells, height), "port/worker_1")
        for piece in (*page.pieces, *filter(None, (page.close_up,))):
            rows = piece.draw()
            assert {row_width(row) for row in rows} == {piece.width}
            assert len(rows) == piece.height
            assert piece.x + piece.width <= cells
        assert row_width(page.head) in {0, cells}


def test_every_worker_has_exactly_one_place_or_is_counted():
    page = lay_out(_scene(many(20)), (120, 30), "port/worker_1", Wish(detail=1))
    names = [place.name for place in page.places]
    assert len(names) == len(set(names))
    hidden = sum(
        int(line.split()[1])
        for line in text_of(rows_of(page, 120)).split("\n")
        if "► " in line and "more" in line
    )
    assert len(names) + hidden == 20


def test_cards_say_why_and_which_keys_answer():
    text = _text(csvlite())
    assert "ASKS YOU" in text
    assert "python -m pip install hypothesis" in text
    assert "a allow once" in text
    assert "memory limit" in text
    assert "1.0G enforced" in text
    assert "passed in its own tree, 214" in text


def test_tiles_show_tool_output_memory_change_and_clash():
    text = _text(csvlite())
    assert "RUNNING  edit src/…/reader.py:88" in text
    assert "FAILED test_nested_quotes" in text
    assert "410M of 1.0G" in text
    assert "8 files +88 \u221220" in text
    assert "≈ clash port/worker_3 in io.py" in text
    assert "922M" in text


@pytest.mark.parametrize(("cells", "says_it"), [(80, True), (60, False), (120, False)])
def test_a_narrow_page_of_a_worker_tells_in_its_head_what_is_left(cells: int, *, says_it: bool):
    view = csvlite()
    step = view.runs[0].steps[1]
    row = worker_subject(step.workers[0], step, _scene(view), cells)
    assert row_width(row) == cells
    assert ("left  25 min, $1.58" in text_of([row])) is says_it


def _did(cells: int, rows: int, *deeds: Deed) -> list[str]:
    one = replace(csvlite().runs[0].workers[1], attempt_since=NOW - 60, lately=deeds)
    drawn = deed_rows(one, NOW, cells, rows)
    assert len(drawn) == rows
    assert all(row_width(row) <= cells for row in drawn)
    return [text_of([row]).rstrip() for row in drawn if row]


def test_a_dump_is_folded_and_the_words_before_it_stay():
    says = Deed(at=NOW - 50, kind=LogKind.SAYS, text="I look at the scanner.")
    edit = Deed(at=NOW - 45, kind=LogKind.TOOL, text="Edit  src/a.py  +31 -4")
    dump = Deed(
        at=NOW - 40,
        kind=LogKind.TOOL,
        text="Bash  pytest -q",
        result="exit 1, 3.1 s",
        error="FAILED test_a",
        tail=("noise", "1 failed in 3.0 s"),
        count=5000,
    )
    assert _did(60, 8, says, edit, dump) == [
        " 0:10 says   I look at the scanner.",
        " 0:15 edits  src/a.py                                 +31 -4",
        " 0:20 runs   pytest -q                         exit 1, 3.1 s",
        "             FAILED test_a",
        "             1 failed in 3.0 s                   5,000 lines",
    ]
    assert _did(34, 3, says, edit, dump) == [
        "runs   pytest -q            exit 1",
        "       FAILED test_a",
        "       1 failed in 3.0 s",
    ]
    assert _did(24, 2, says, dump)[0] == "pytest -q         exit 1"


def test_figures_give_way_to_the_newest_words():
    said = "I have looked at all three of them: the second reads its input twice, others once"
    view = csvlite()
    step = view.runs[0].steps[1]
    one = replace(step.workers[0], clashes=(), lately=(Deed(at=NOW, kind=LogKind.SAYS, text=said),))
    assert "cpu" in text_of(tile(one, step, _scene(view), (60, 10), is_focused=False))
    rows = text_of(tile(one, step, _scene(view), (37, 10), is_focused=False))
    assert "once" in rows
    assert "cpu" not in rows
    assert "8 files +88" in rows


def test_the_kinds_of_what_it_did_have_their_words_and_inks():
    asks = Deed(at=NOW, kind=LogKind.NOTE, text="asks: may I?")
    thinks = Deed(at=NOW, kind=LogKind.THOUGHT, text="hm")
    reads = Deed(at=NOW, kind=LogKind.TOOL, text="Read  a.py")
    other = Deed(at=NOW, kind=LogKind.TOOL, text="TodoWrite", result="failed, 2.0 s")
    one = replace(csvlite().runs[0].workers[1], lately=(asks, thinks, reads, other))
    rows = deed_rows(one, NOW, 60, 4)
    said = [text_of([row]).split(maxsplit=1)[1] for row in rows]
    assert said[:3] == ["asks   may I?", "thinks hm", "reads  a.py"]
    assert said[3].startswith("tool   TodoWrite ")
    assert rows[1][-1].ink.italic
    assert rows[3][-1].ink.role is Role.FAILED


def test_an_agent_that_tells_nothing_of_itself_shows_its_output():
    out = Deed(at=NOW, kind=LogKind.OUTPUT, tail=("one", "two", "three"), count=900)
    assert _did(40, 2, out) == ["two", "three"]


def test_a_tile_claims_no_change_before_its_files_were_looked_at():
    name = "port/worker_3"
    for so_far, said in (
        (None, "change is not known yet"),
        (Change(), "no change yet"),
        (Change(files=1, insertions=2), "1 file +2"),
    ):
        view = changed(csvlite(), name, so_far=so_far, change=Change(files=99))
        step = next(step for step in view.runs[0].steps if step.name == "port")
        rows = tile(step.workers[2], step, _scene(view), (60, 12), is_focused=False)
        assert said in text_of(rows)
        assert "99 files" not in text_of(rows)


def test_a_worker_of_a_plain_folder_says_why_it_has_no_figures_of_a_change():
    folder = {"branch": None, "workspace": "/w", "clashes": ()}
    view = changed(csvlite(), "port/worker_3", so_far=None, **folder)
    step = next(step for step in view.runs[0].steps if step.name == "port")
    one = step.workers[2]
    assert "a plain folder has no diff" in text_of(
        tile(one, step, _scene(view), (60, 12), is_focused=False)
    )
    assert "plain folder" in text_of([sentence_of(one, step, NOW, _key)])
    assert "look in /w" in why_not("diff", one, step, is_opened=False)
    kept = replace(one, phase=Phase.FINISHED, change=Change(files=2, artifacts=("a", "b")))
    rows = tile(kept, step, _scene(view), (60, 12), is_focused=False)
    assert "2 artifacts" in text_of(rows)


def test_a_tile_tells_what_is_left_of_its_time_and_budgets_and_warns_when_that_is_little():
    view = csvlite()
    step = next(step for step in view.runs[0].steps if step.name == "port")
    limits = Limits(time_seconds=600, budget_usd=2.0, budget_tokens=20_000)
    one = replace(step.workers[2], limits=limits)
    rows = tile(one, step, _scene(view), (60, 12), is_focused=False)
    assert "left  6 min, $1.73, ≥1.1k tokens" in text_of(rows)
    row = left_row(one)
    assert {span.text: span.ink.role for span in row}["≥1.1k tokens"] is Role.LIMIT
    assert {span.text: span.ink.role for span in row}["6 min"] is Role.TEXT
    untold = replace(one, usage=Usage())
    assert left_row(untold) == ()
    assert left_row(replace(one, phase=Phase.REVIEWING)) == ()
    assert "left" in text_of(tile(one, step, _scene(view), (60, 9), is_focused=False))
    calm = replace(one, limits=Limits(time_seconds=6000))
    assert "left" not in text_of(tile(calm, step, _scene(view), (60, 9), is_focused=False))


def test_the_table_has_a_column_of_changes_as_soon_as_there_is_one():
    text = _text(csvlite(), 80, 20)
    assert "CHANGE" in text
    assert "+88 \u221220" in text
    assert "CHANGE" not in _text(many(4), 80, 20)


def test_a_tile_has_the_newest_line_whole_and_only_the_older_ones_cut():
    said = "quotes has three candidates: go to one of them, look at it and press a to choose it"
    view = changed(
        csvlite(),
        "implement/worker_1",
        lately=(),
        last_lines=(said, said.replace("quotes", "new")),
    )
    text = _text(view)
    newest = [line.split("│")[1].strip() for line in text.split("\n") if "│" in line]
    assert said.replace("quotes", "new") in " ".join(newest)
    assert said not in " ".join(newest)


def test_a_failed_check_is_said_once_and_without_rules():
    error = "the check ended with 1\n=====\nERROR: test_a\n-----"
    view = changed(csvlite(), "port/worker_2", cause=StopCause.CHECK, limit_hit=None, error=error)
    text = _text(view)
    assert "FAILED  the check failed" in text
    assert "ERROR: test_a" in text
    assert "=====" not in text


def test_a_table_drops_columns_before_it_cuts_names():
    wide, narrow = (_text(csvlite(), cells, 20) for cells in (90, 52))
    assert "COST" in wide
    assert "COST" not in narrow
    assert "implement/worker_2" in narrow


def test_the_figures_of_a_table_take_no_more_room_than_they_need():
    head, *rows = _text(many(3), 80, 14).split("\n")[:4]
    assert head.rstrip().endswith("│ TIME│  MEM│  COST")
    assert rows[1].rstrip().endswith("0:00  100M      \u2013")


def test_a_table_with_room_below_shows_its_focused_worker_larger():
    page = lay_out(_scene(), (80, 20), "implement/worker_2")
    assert page.form is Form.TABLE
    assert page.close_up is not None
    assert page.close_up.name == "implement/worker_2"
    below = text_of(page.close_up.draw())
    assert "I want property tests for nested quotes. It is not installed." in below
    assert "a allow once" in below


@pytest.mark.parametrize(("count", "width"), [(1, 120), (1, 200), (20, 120), (20, 200)])
def test_what_is_shown_large_fills_a_tall_screen(count: int, width: int):
    page = lay_out(_scene(many(count)), (width, 60), "port/worker_1")
    lowest = page.close_up or page.pieces[-1]
    assert lowest.height > 25
    assert len(rows_of(page, width)) in {59, 60}


@pytest.mark.parametrize(("height", "larger"), [(17, []), (18, []), (19, ["implement/worker_2"])])
def test_a_table_keeps_all_its_rows_before_it_shows_anybody_larger(height: int, larger: list[str]):
    page = lay_out(_scene(), (80, height), "implement/worker_2")
    assert [place.name for place in (page.close_up,) if place] == larger
    assert len(page.places) == 8
    assert len(rows_of(page, 80)) <= height


def test_a_table_counts_its_widest_name_once_however_many_rows_it_has(
    monkeypatch: pytest.MonkeyPatch,
):
    counted: list[str] = []
    real = standing.short_name

    def counting(worker: WorkerView, step: StepView | None = None) -> str:
        counted.append(worker.worker)
        return real(worker, step)

    monkeypatch.setattr(standing, "short_name", counting)
    page = lay_out(_scene(many(100)), (80, 24), "port/worker_1")
    assert len([piece.draw() for piece in page.pieces]) == 100
    assert max(Counter(counted).values()) <= 2  # for the width of all, and for its own row


@pytest.mark.parametrize("cells", [100, 110, 120, 150])
def test_names_are_never_cut_on_tiles(cells: int):
    text = _text(csvlite(), cells, 60)
    for name in ("implement/worker_1", "implement/worker_2", "implement/worker_3"):
        assert name in text


def test_a_violation_is_on_the_tile():
    view = changed(
        csvlite(),
        "implement/worker_1",
        badges=frozenset({Badge.VIOLATION}),
        violations=("/etc/passwd",),
    )
    assert "▲ touched /etc/passwd" in _text(view)


def test_held_workers_stay_where_they_stood_until_they_are_let_go():
    before = lay_out(_scene(), (120, 32), "implement/worker_2")
    view = changed(csvlite(), "implement/worker_1", phase=Phase.FAILED)
    view = changed(view, "implement/worker_2", questions=())
    held = lay_out(_scene(view), (120, 32), "implement/worker_2", Wish(held=before.held))
    assert [p.name for p in held.places] == [p.name for p in before.places]
    moved = lay_out(_scene(view), (120, 32), "implement/worker_2")
    assert [p.name for p in moved.places] != [p.name for p in before.places]


def test_moving_goes_by_place():
    places = lay_out(_scene(), (120, 32), "implement/worker_2").places
    assert move(places, "implement/worker_2", "right") == "port/worker_2"
    assert move(places, "implement/worker_2", "down") == "implement/worker_1"
    assert move(places, "implement/worker_2", "up") == "implement/worker_2"
    assert move(places, "port/worker_3", "up") == "port/worker_1"
    assert move(places, "gone", "up") == places[0].name


def test_a_question_fits_only_if_all_of_it_is_on_the_card():
    asks = worker("a/worker_1", Phase.RUNNING, questions=(Question(id="1", text="a\nb\nc"),))
    assert question_fits(asks, 30, 3)
    assert not question_fits(asks, 30, 2)


def test_names_use_labels_only_where_they_tell_apart():
    run = csvlite().runs[0]
    port = next(step for step in run.steps if step.name == "port")
    assert short_name(port.workers[0], port) == "io.py"
    same = replace(port, workers=tuple(replace(w, label="same") for w in port.workers))
    assert short_name(same.workers[0], same) == "worker_1"
    implement = next(step for step in run.steps if step.name == "implement")
    assert candidate_of(implement.workers[2], implement) == "C"
    assert candidate_of(port.workers[0], port) == ""


def test_clocks_count_what_the_phase_says():
    clocks = {w.worker: clock_of(w, NOW) for w in csvlite().runs[0].workers}
    assert clocks["implement/worker_2"] == "1:02"
    assert clocks["implement/worker_3"] == "in 0:42"
    assert clocks["implement/worker_1"] == "4:12"
    assert clocks["design/worker_1"] == "2:31"
    assert clocks["tests/worker_1"] == ""


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_a_sentence_a_tile_a_row_and_a_card(phase: Phase):
    view = changed(csvlite(), "implement/worker_1", phase=phase)
    run = view.runs[0]
    here = run.worker("implement/worker_1")
    assert text_of([sentence_of(here, step_of(run, here), NOW, _key)])
    for cells in (45, 80, 120):
        page = lay_out(_scene(view), (cells, 40), here.worker)
        assert page.place(here.worker) or cells == 45


def test_a_tile_says_the_age_of_its_tool_its_model_its_context_and_its_turns():
    run = changed(
        csvlite(),
        "implement/worker_1",
        tool_since=NOW - 75,
        model="opus",
        context=45_000,
        context_window=200_000,
        turns=7,
    )
    here = run.runs[0].worker("implement/worker_1")
    step = step_of(run.runs[0], here)
    said = text_of(tile(here, step, _scene(run), (90, 12), is_focused=False))
    assert "1:15 edit src/csvlite/reader.py:88" in said
    assert "opus" in said
    assert "context 45.0k of 200.0k, 7 turns" in said
    assert now_text(here, step, NOW, 60).startswith("1:15 edit src/csvlite")


def test_the_limits_tab_lists_the_settings_that_reach_the_agent():
    lines = ("your settings: skills: brew; MCP server one", "left out of your settings: hooks: no")
    run = changed(csvlite(), "implement/worker_1", settings=lines).runs[0]
    said = text_of(limits_tab(run.worker("implement/worker_1"), 80)).splitlines()
    for line in (" YOUR SETTINGS", " skills: brew", " MCP server one", " hooks: no"):
        assert line in said


def test_an_end_without_a_change_is_said_on_tile_row_and_message_line():
    ending = "says it could not do it"
    run = changed(
        csvlite(),
        "implement/worker_1",
        phase=Phase.FINISHED,
        outcome=Outcome.UNCHANGED,
        ending=ending,
    )
    here = run.runs[0].worker("implement/worker_1")
    step = step_of(run.runs[0], here)
    assert ending in text_of(tile(here, step, _scene(run), (60, 12), is_focused=False))
    assert now_text(here, step, NOW, 60) == ending
    assert f"{ending}." in text_of([sentence_of(here, step, NOW, _key)])


def test_beads_are_one_per_worker_and_one_bar_beyond_twelve():
    assert text_of([beads_of(csvlite().runs[0], is_plain=False)]).count("▄▄▄") == 8
    assert len(text_of([beads_of(many(40).runs[0], is_plain=False)])) == 36
    assert "???" in text_of([beads_of(csvlite().runs[0], is_plain=True)])


def test_the_run_line_counts_or_gives_way_to_a_banner():
    assert "of 8 settled" in text_of([run_line(_scene(), 120)])
    assert "3 need you" in text_of([run_line(_scene(), 80)])
    banner = _scene(banner=Banner("NO ENGINE", "for 4 s."))
    assert text_of(banner_rows(banner.banner, 80, 1)).startswith(" ▲ NO ENGINE  for 4 s.")


def test_the_top_bar_keeps_the_run_and_counts_the_inbox():
    text = text_of([top_bar(_scene(), "fleet", 80)])
    assert "? 3" in text
    assert text.endswith("fix 2f1c  7:02")


def test_the_top_bar_names_as_many_screens_as_fit_and_moves_none():
    keymap = default_keymap()
    keys = {id_.partition(".")[2]: keymap.shown(id_) for id_ in keymap.keys}
    scene = replace(_scene(), keys=keys)
    wide = {name: text_of([top_bar(scene, name, 120)]) for name in ("fleet", "plan")}
    assert "1 Fleet  2 Worker  3 Diff  4 Compare  5 Review  0 Inbox  ? 3  gp Plan" in wide["plan"]
    assert wide["fleet"] == wide["plan"]
    narrow = text_of([top_bar(scene, "compare", 80)])
    assert "1 Fleet" in narrow
    assert "4 Compare" in narrow
    assert "gh Runs" not in narrow
    tiny = text_of([top_bar(scene, "compare", 40)])
    assert tiny == " plait  1  2  3  4 Compare  5  0  ? 3"


def test_a_card_stands_on_another_ground_when_its_worker_has_just_begun_to_need_you():
    run = csvlite().runs[0]
    step = run.steps[1]
    for risen in (frozenset(), frozenset({step.workers[1].worker})):
        rows = card(step.workers[1], step, _scene(risen=risen), (40, 9), is_focused=False)
        grounds = {span.ink.ground for row in rows for span in row}
        assert (grounds >= {Role.PANEL}) is bool(risen)
        assert (None in grounds) is not bool(risen)


def test_a_timeline_cuts_no_time_in_two_and_has_a_row_for_each_worker():
    run = csvlite().runs[0]
    for cells in range(50, 130):
        timeline = Timeline(run, NOW, cells)
        scale = text_of(timeline.head()[1:2]).split()
        assert set(scale) <= {"0:00", "2:00", "4:00", "6:00", "now"}
        rows = [timeline.row(index) for index in range(len(timeline.workers))]
        assert len(rows) == 8
        assert max(map(row_width, rows)) <= cells


def test_a_footer_drops_what_does_not_fit_and_keeps_the_help_key():
    hints = [Hint(str(n), "a long label") for n in range(9)]
    row = footer(hints, "?", 60)
    assert row_width(row) == 60
    assert text_of([row]).endswith("? keys")


def test_the_rail_fits_and_shows_each_clash_once():
    rows = rail(_scene(), 40)
    assert all(row_width(row) <= CELLS for row in rows)
    assert text_of(rows).count("≈") == 1


def test_the_rail_says_what_the_radar_costs_once_it_has_looked():
    view = csvlite()
    assert "radar" not in text_of(rail(_scene(view), 40))
    looked = replace(view, runs=(replace(view.runs[0], radar_share=0.012),))
    assert "1.2% of the time" in text_of(rail(_scene(looked), 40))


def test_without_a_run_there_is_nothing_to_draw():
    empty = EngineView(repository="csvlite")
    assert lay_out(_scene(empty), (80, 20), "").pieces == ()


@pytest.mark.parametrize(("working", "rows"), [(1, [1]), (2, [2]), (3, [3]), (4, [2, 2])])
def test_tiles_share_the_whole_width(working: int, rows: list[int]):
    view = csvlite()
    run = view.runs[0]
    step = next(step for step in run.steps if step.name == "implement")
    model = next(worker for worker in step.workers if worker.phase is Phase.RUNNING)
    shown = tuple(replace(model, worker=f"implement/worker_{n}") for n in range(1, working + 1))
    one = replace(run, steps=(replace(step, workers=shown),))
    page = lay_out(_scene(replace(view, runs=(one,))), (120, 40), model.worker)
    tiles = [piece for piece in page.places if piece.height > 1]
    assert [sum(tile.y == y for tile in tiles) for y in sorted({t.y for t in tiles})] == rows
    assert max(tile.x + tile.width for tile in tiles) == 119


def test_older_words_that_are_cut_say_so():
    older = Deed(at=NOW - 50, kind=LogKind.SAYS, text="many words " * 12)
    newer = Deed(at=NOW - 45, kind=LogKind.SAYS, text="few words")
    one = replace(csvlite().runs[0].workers[1], attempt_since=NOW - 60, lately=(older, newer))
    drawn = text_of(deed_rows(one, NOW, 40, 2)).splitlines()
    assert drawn[0].rstrip().endswith("…")
    assert "few words" in drawn[1]


def test_a_table_tells_a_change_once():
    head, *rows = _text(csvlite(), 90, 30).split("\n")
    assert "CHANGE" in head
    (row,) = (row for row in rows if "REVIEW" in row and "io.py" in row and "│" not in row)
    assert row.count("+41") == 1
