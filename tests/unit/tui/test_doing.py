"""NOW is what an agent does or says; output stands there only where nothing else is known."""

from dataclasses import replace

import pytest

from engine.messages.deeds import Deed
from engine.messages.logs import LogKind
from tests.support.world import NOW, csvlite
from tui.ink import text_of
from tui.kit.deeds import deed_rows
from tui.words.said import now_text

_OUT = Deed(at=NOW, kind=LogKind.OUTPUT, tail=("line 3 of a page",), count=3)
_SAID = Deed(at=NOW - 9, kind=LogKind.SAYS, text="I look at the scanner.\n\nThen I go on.")
_RAN = Deed(
    at=NOW - 5, kind=LogKind.TOOL, text="Bash  pytest -q", result="exit 1, 3.1 s", tail=("F",)
)


@pytest.mark.parametrize(
    ("lately", "tool", "said"),
    [
        ((_SAID, _OUT), None, "I look at the scanner."),
        ((_SAID, _RAN, _OUT), None, "Bash pytest -q, exit 1, 3.1 s"),
        ((_SAID, _RAN, _OUT), "Read  a.py", "Read a.py"),
        ((_OUT,), None, "line 3 of a page"),
        ((), None, "line 3 of a page"),
    ],
)
def test_now_is_what_an_agent_does_or_says_and_output_only_of_one_that_tells_nothing_else(
    lately: tuple[Deed, ...], tool: str | None, said: str
):
    view = csvlite()
    one = replace(
        view.runs[0].workers[1], lately=lately, tool=tool, last_lines=("line 3 of a page",)
    )
    assert now_text(one, view.runs[0].steps[1], NOW, 60) == said
    rows = text_of(deed_rows(one, NOW, 60, 8))
    assert ("line 3 of a page" in rows) == all(deed is _OUT for deed in lately)


def test_output_beside_tools_stands_on_a_tile_where_it_tells_of_a_failure():
    failed = replace(_OUT, error="Traceback (most recent call last):")
    one = replace(csvlite().runs[0].workers[1], lately=(_SAID, failed))
    assert "Traceback" in text_of(deed_rows(one, NOW, 60, 8))
