"""Tell how the runs of a repository stand where no engine works for it.

Journals are read without an engine, a git and an event loop: loading those costs more than reading.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine.api.tried import noted_try
from engine.messages.questions import ListRuns, Standing
from engine.port.finding import state_around
from engine.port.kept import Look
from engine.run.past import Past
from engine.site.place import store_of
from engine.store.layout import Layout

if TYPE_CHECKING:
    from engine.messages.questions import A, Ask
    from engine.review.trying import OpenTry


class Journals:
    """The runs of a repository as their journals tell; its coroutines never wait.

    Attributes:
        is_lasting: Each question keeps its answer until a journal is written or a try begins.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._past = Past(store_of(layout), layout)
        self.is_lasting = not layout.try_note.exists()

    def look(self) -> Look | None:
        """Begin to look at them, so that what is said of them may be kept."""
        return Look.begin(str(self._layout.root))

    async def ask(self, question: Ask[A]) -> A:
        """Answer which runs there are, and how one stands; the newest where none is named."""
        answer: Any = self._past.answer(question)
        if isinstance(question, ListRuns):
            self.is_lasting &= not any(run.standing is Standing.UNREADABLE for run in answer)
        return cast("A", answer)

    async def trial(self) -> OpenTry | None:
        """Return the try that is on in the repository."""
        return noted_try(self._layout)


def journals_at(folder: str) -> Journals | None:
    """Return the journals of the repository around a folder; None where it is not that simple.

    An engine may live, or have been killed; or this is no repository, or not the user's own.
    """
    state = state_around(folder)
    if state is None:
        return None
    layout = Layout(Path(state).parent)
    return None if layout.engine_json.exists() else Journals(layout)
