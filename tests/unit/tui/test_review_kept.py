"""A text that its writer got out of the editor and that was refused is not thrown away."""

import pytest

from engine.api import ConflictFileView
from tests.support.consoles import opened
from tests.support.review_consoles import WHO, ReviewPort, conflicted_view, texts

pytestmark = pytest.mark.anyio
PATH = "shop.py"


def _port() -> ReviewPort:
    looked_at = ConflictFileView(path=PATH, kind="contents", text="as it is\n")
    file = texts(PATH, "base\n", "ours\n", "theirs\n")
    return ReviewPort(conflicted_view(), files=(file,), looked_at=looked_at)


def _half_marked(port: ReviewPort) -> str:
    """A text of which one marker was left over."""
    return f"mine\n>>>>>>> theirs [hunk {port.view_of().file(PATH).hunks[0].key}]\n"


async def test_a_text_that_was_refused_is_gone_on_with(monkeypatch: pytest.MonkeyPatch):
    begun: list[str] = []
    port = _port()
    wanted = [_half_marked(port), "mine\n"]

    async def edited(app: object, text: str, *, name: str) -> tuple[str, str]:
        del app, name
        begun.append(text)
        return wanted.pop(0), ""

    monkeypatch.setattr("tui.screens.review.texts.edit_text", edited)
    async with opened(port=port) as console:
        console.app.session.worker = WHO
        await console.do("go_review", "edit_all")
        await console.shows("✗ your text is kept; E opens it. ")
        await console.do("edit_all")
        await console.shows("✓ edited")
        assert begun[1] == _half_marked(port)
        assert not console.app.session.drafts


async def test_a_refused_text_left_as_it_was_is_let_go(monkeypatch: pytest.MonkeyPatch):
    begun: list[str] = []
    port = _port()

    async def edited(app: object, text: str, *, name: str) -> tuple[str, str]:
        del app, name
        begun.append(text)
        return _half_marked(port), ""

    monkeypatch.setattr("tui.screens.review.texts.edit_text", edited)
    async with opened(port=port) as console:
        console.app.session.worker = WHO
        await console.do("go_review", "edit_all")
        await console.shows("your text is kept")
        await console.do("edit_all")
        await console.shows("nothing was changed; E starts again")
        await console.do("edit_all")
        await console.shows("your text is kept")
    assert begun[0] == begun[2] != begun[1]
