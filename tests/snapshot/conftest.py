"""Pictures are drawn with the colors of lexers, which are always there, whatever is installed."""

from collections.abc import Iterator

import pytest

from tui.kit import syntax


@pytest.fixture(autouse=True)
def colors_of_lexers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(syntax, "colored", lambda *_: None)
    for cached in (syntax.inked_lines, syntax.inked_change):
        cached.cache_clear()
    yield
    for cached in (syntax.inked_lines, syntax.inked_change):
        cached.cache_clear()
