"""Foreign text reaches no terminal as anything but text."""

from engine.messages.asked import Question
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.bridge import PastRun
from tui.words.clean import LONGEST, clean, clean_block, clean_code, clean_tree


def test_escape_sequences_go_with_all_that_belongs_to_them():
    assert clean("a\x1b]52;c;aGk=\x07b") == "ab"
    assert clean("a\x1b]0;title\x1b\\b") == "ab"
    assert clean("a\x1b[31mred\x1b[0m") == "ared"
    assert clean("a\x1bPq#0\x1b\\b") == "ab"
    assert clean("a\x1bcb") == "ab"
    assert clean("a\x9b6nb") == "ab"
    assert clean("a\x9d52;c;x\x9cb") == "ab"


def test_a_lone_escape_and_control_bytes_go():
    assert clean("a\x1b") == "a"
    assert clean("\x00\x07\x08a\x7f") == "a"


def test_what_turns_or_hides_text_is_made_visible():
    assert clean("a\u202eb") == "a<202E>b"
    assert clean("a\u200bb") == "a<200B>b"
    assert clean("a\ufeffb") == "a<FEFF>b"
    assert clean("a\ufe0fb") == "ab"


def test_tabs_are_blanks_and_line_ends_are_one_blank():
    assert clean("a\tb") == "a   b"
    assert clean("a\r\nb\nc\rd") == "a b c d"
    assert clean_block("a\r\nb\n\x1b[1mc") == "a\nb\nc"


def test_plain_text_is_left_as_it_is():
    text = "déjà vu: 日本語 — “quoted” [/not markup]"
    assert clean(text) == text


def test_a_line_without_end_is_cut():
    assert len(clean("x" * (LONGEST * 3))) == LONGEST
    assert len(clean("ü" * (LONGEST * 3))) == LONGEST


def test_a_whole_view_is_cleaned_at_every_depth():
    view = WorkerView(
        worker="a/worker_1",
        step="a",
        phase=Phase.RUNNING,
        last_lines=("ok", "\x1b]52;c;aGk=\x07bad"),
        questions=(Question(id="q", text="rm\x1b[2J -rf", choices=("\u202eyes",)),),
    )
    cleaned = clean_tree(view)
    assert cleaned.last_lines == ("ok", "bad")
    assert cleaned.questions[0].text == "rm␛[2J -rf"
    assert cleaned.questions[0].choices == ("<202E>yes",)
    assert cleaned.phase is Phase.RUNNING


def test_code_under_review_loses_nothing_and_shows_what_cannot_be_seen():
    assert clean_code("a\x1b[31mb\x00\r") == "a␛[31mb␀␍"
    assert clean_code("a\x9bb\u202ec\u200b") == "a<009B>b<202E>c<200B>"
    assert clean_code("\tif x:") == "    if x:"


def test_named_tuples_stay_what_they_are():
    past = PastRun("1a\x07", "n", 0.0, None, "", "over")
    assert clean_tree(past) == PastRun("1a", "n", 0.0, None, "", "over")


def test_a_clean_view_is_not_copied():
    view = WorkerView(worker="a/worker_1", step="a", phase=Phase.RUNNING)
    assert clean_tree(view) is view
