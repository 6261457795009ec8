"""The files of a review stand by risk on a key, with the reasons in words, and back as git has."""

import pytest

from engine.api import MergedFileView
from engine.messages.merging import FileRisk
from tests.support.review_consoles import imports, io_py
from tests.support.reviewing import ERRORS, IO, Reviewing, port

pytestmark = pytest.mark.anyio
RISKS = (
    FileRisk(path="b.py", score=50.0, reasons=("changes a license or copyright line",)),
    FileRisk(path=ERRORS, score=40.0, reasons=("changes public names: parse", "70 lines")),
    FileRisk(path=IO, score=2.0, reasons=()),
)
MERGED = tuple(MergedFileView(path=path, by="incoming", kind="M") for path in ("a.py", "b.py"))


async def test_the_riskiest_stand_first_and_say_why():
    given = port(io_py(), imports(), risky=RISKS, more={"merged": MERGED})
    async with Reviewing(given, size=(160, 60)) as console:
        pane = console.screen.conflicts.pane
        assert [file.path for file in pane.shown.files] == [IO, ERRORS]
        await console.do("show_order")
        await console.shows("the files are sorted by risk", "RISK", "nothing stands out in it")
        assert [file.path for file in pane.shown.files] == [ERRORS, IO]
        assert [file.path for file in pane.shown.merged] == ["b.py", "a.py"]
        assert pane.file.path == IO  # the eye stays where it was
        await console.do("unit_up")
        await console.shows("changes public names: parse", "70 lines")
        await console.do("take_target")  # a decision does not lose the order
        assert [file.path for file in pane.shown.files] == [ERRORS, IO]
        await console.do("show_order")
        await console.shows("the files are in git's order")
        assert [file.path for file in pane.shown.files] == [IO, ERRORS]


async def test_a_merge_of_your_own_has_no_risk():
    given = port(io_py(), risky=RISKS, more={"doing": "merge"})
    async with Reviewing(given) as console:
        await console.do("show_order")
        await console.shows(",o refused", "belongs to no worker")
