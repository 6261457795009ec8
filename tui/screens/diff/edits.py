"""Edit files of what would land: in the user's editor, or by a suggestion that is applied."""

from functools import partial
from typing import NamedTuple

from engine.messages.commands import EditFile, SetFile, UndoChoice
from engine.messages.merging import FileText
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.controllers import Outward
from tui.ink import TEXT, Ink, Role, Span
from tui.kit.outside import edit_text
from tui.kit.screen import Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.screens.diff.pane import DiffPane
from tui.screens.diff.reading import Reading
from tui.words.comments import Comment

_ITS_OWN_TREE = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING, Phase.PREPARING})
_LANDS = frozenset({Phase.REVIEWING, Phase.CONFLICTED})
_WHY_NOT = {
    Phase.LANDED: "it has landed; undo the landing first",
    Phase.LANDING: "it is about to land",
}


class _Spot(NamedTuple):
    """Name lines of a file of a worker's change, as they are on the new side."""

    worker: WorkerView
    path: str
    first: int
    last: int


class Editing(Controller):
    """Write into the change itself: what was edited is what lands, and the check runs anew."""

    @property
    def pane(self) -> DiffPane:
        """Return what is on screen."""
        return self.screen.does(Reading).pane

    def why_not(self, idea: str) -> str:
        if idea not in {"edit", "edit_all"}:
            return ""
        worker = self.session.worker_view
        if worker is None or self.pane.diff is None or not self.pane.diff.files:
            return "there is no diff"
        if worker.phase in _LANDS or (idea == "edit_all" and worker.phase in _ITS_OWN_TREE):
            return self._why_not_here(idea)
        if worker.phase in _ITS_OWN_TREE:
            return f"it is still working; {self.screen.key_of('comment')} tells it what to change"
        return _WHY_NOT.get(worker.phase, f"it is {worker.phase}: its change cannot land now")

    def _why_not_here(self, idea: str) -> str:
        if idea == "edit" and not self._lines():
            return "put the cursor on a line of the new text"
        against = self.screen.does(Reading).against
        if self.here().phase is Phase.CONFLICTED and against != "target":
            return f"{self.screen.key_of('diff')} shows what would land; edit it there"
        if against.startswith("@"):
            return (
                f"this is an earlier attempt; {self.screen.key_of('diff')} goes back to "
                "the current one"
            )
        return ""

    # In the editor.

    def do_edit_all(self) -> None:
        """Open the file in the user's editor; of a worker that still writes, in its own tree."""
        worker = self.here()
        if worker.phase in _ITS_OWN_TREE:
            self.screen.does(Outward).do_edit_all()
            return
        first, _ = self._lines() or (0, 0)
        spot = _Spot(worker, self.pane.path, first, first)
        self.screen.begin_outside(partial(self._edit, spot))

    async def _edit(self, spot: _Spot) -> None:
        found = await self.session.bridge.text(self.run_id, spot.worker.worker, spot.path)
        if isinstance(found, str):
            self.refuse("edit_all", found)
            return
        before = found.text or ""
        name = f"edit {self.run_id} {spot.worker.worker} {spot.path}"
        begun = self.session.drafts.pop(name, before)
        text, problem = await edit_text(self.screen.app, begun, name=spot.path, line=spot.first)
        if problem:
            self.refuse("edit_all", problem)
        elif text == before:
            self.screen.say("nothing was changed")
        elif refused := await self._write(spot, (before, text)):
            self.session.drafts[name] = text
            key = self.screen.key_of("edit_all")
            self.refuse("edit_all", refused, f"your text is kept; {key} opens it again")

    async def _write(self, spot: _Spot, texts: tuple[str, str]) -> str:
        """Put the second text in place of the first; says why that was refused, or nothing."""
        if spot.worker.phase is Phase.CONFLICTED:
            return await self._decide(spot, texts[1])
        refused = await self._put(self.run_id, spot, texts[1])
        if not refused:
            before, after = (partial(self._begin_put, self.run_id, spot, text) for text in texts)
            is_there = partial(self.session.has_change, self.run_id, spot.worker)
            said = f"the edit of {spot.path}"
            self.session.remember(Undoable(said, before, after, can_undo=is_there))
            check = self.screen.key_of("check")
            hint = f"{check} checks it" if spot.worker.check else ""
            mark = Span("✓ ", Ink(Role.DONE))
            self.screen.say_both(f"{spot.path} is edited and will land like this", hint, mark)
        return refused

    def _begin_put(self, run: str, spot: _Spot, text: str) -> None:
        self.screen.begin(partial(self._put_again, run, spot, text), holds=True)

    async def _put_again(self, run: str, spot: _Spot, text: str) -> None:
        if refused := await self._put(run, spot, text):
            self.refuse("undo", refused)

    async def _put(self, run: str, spot: _Spot, text: str) -> str:
        name = spot.worker.worker
        file = FileText(path=spot.path, text=text)
        seen = self.session.seen_of(run, name)
        found = await self.session.bridge.edit(run, name, file, seen)
        self.session.look()
        return found if isinstance(found, str) else ""

    async def _decide(self, spot: _Spot, text: str) -> str:
        """Let a file of a merge under review be this; its decisions keep the step to undo."""
        run, name = self.run_id, spot.worker.worker
        view = await self.session.bridge.conflicts(run, name)
        if isinstance(view, str):
            return view
        action: EditFile | SetFile = EditFile(path=spot.path, text=text)
        if all(one.path != spot.path for one in view.files):
            action = SetFile(path=spot.path, text=text)
        found = await self.session.bridge.resolve(run, name, action)
        if isinstance(found, str):
            return found
        self.session.look()
        take_back = partial(self._begin_back, run, name)
        is_there = partial(self.session.has_change, run, spot.worker)
        said = f"the edit of {spot.path}"
        self.session.remember(Undoable(said, take_back, None, can_undo=is_there))
        self.screen.say(Span("✓ ", Ink(Role.DONE)), Span(f"{spot.path} is edited", TEXT))
        return ""

    def _begin_back(self, run: str, worker: str) -> None:
        self.screen.begin(partial(self._back, run, worker), holds=True)

    async def _back(self, run: str, worker: str) -> None:
        found = await self.session.bridge.resolve(run, worker, UndoChoice())
        if isinstance(found, str):
            self.refuse("undo", found)

    # Suggestions.

    def _lines(self) -> tuple[int, int] | None:
        """Return the first and last line of the new text that the cursor or the range is on."""
        numbers = self.pane.new_numbers()
        return (numbers[0], numbers[-1]) if numbers else None

    def do_edit(self) -> None:
        """Write another text for the line or range: a suggestion, until it is sent or applied."""
        worker, lines, comment = self.here(), self._lines(), self.pane.spot()
        if lines is None or comment is None:
            return
        spot = _Spot(worker, self.pane.path, *lines)
        self.screen.begin(partial(self._suggest, spot, comment), holds=True)

    async def _suggest(self, spot: _Spot, comment: Comment) -> None:
        """Open the box with the lines as they really are, tabs and all."""
        found = await self.session.bridge.text(self.run_id, spot.worker.worker, spot.path)
        if isinstance(found, str):
            self.refuse("edit", found)
            return
        old = _lines_of(found.text or "", spot.first, spot.last)
        if not all(char.isprintable() or char in "\n\t" for char in old):
            edits = self.screen.key_of("edit_all")
            self.refuse(
                "edit",
                "it contains characters that you cannot type",
                f"{edits} edits the whole file",
            )
            return
        apply_key, send = self.screen.key_of("yes"), self.screen.key_of("send")
        title = f"suggest for {self.pane.path_and_line}"
        begun = comment._replace(code=old, first=spot.first, number=spot.last, path=spot.path)
        writing = Writing(
            title,
            f"then {apply_key} applies it, {send} sends it to the agent as a patch",
            partial(self._suggested, begun),
            key=f"{self.session.about} {title}",
            may_be_empty=True,
            is_code=True,
            file=spot.path,
        )
        self.screen.write(writing, old)

    def _suggested(self, begun: Comment, text: str) -> None:
        if text == begun.code:
            self.screen.say("nothing was changed")
            return
        before = list(self.session.comments)
        made = begun._replace(suggestion=text, about=self.session.about)
        after = [c for c in before if (c.key, c.line, c.is_sent) != (made.key, made.line, False)]
        self._set_comments([*after, made])
        self.pane.anchor = None
        undo, redo = (
            partial(self._set_comments, before),
            partial(self._set_comments, [*after, made]),
        )
        is_last = partial(self.session.has_comments, [*after, made])
        self.session.remember(Undoable("the suggestion", undo, redo, can_undo=is_last))

    def _set_comments(self, comments: list[Comment]) -> None:
        self.session.comments[:] = comments
        self.pane.lay_out()

    @property
    def suggestion(self) -> Comment | None:
        """Return the suggestion that stands at the line under the cursor, not applied yet."""
        numbers, about = self.pane.new_numbers(), self.session.about
        under = (c for c in self.pane.thread if c.suggestion is not None)
        if not numbers:
            return next(under, None)
        return next(
            (
                c
                for c in self.session.comments
                if c.suggestion is not None
                and (c.about, c.path) == (about, self.pane.path)
                and c.first <= numbers[-1] <= c.number
            ),
            None,
        )

    def apply(self, comment: Comment) -> None:
        """Put a suggestion into the change."""
        spot = _Spot(self.here(), comment.path, comment.first, comment.number)
        self.screen.begin(partial(self._apply, spot, comment), holds=True)

    async def _apply(self, spot: _Spot, comment: Comment) -> None:
        found = await self.session.bridge.text(self.run_id, spot.worker.worker, spot.path)
        if isinstance(found, str):
            self.refuse("yes", found)
            return
        before = found.text or ""
        if _lines_of(before, spot.first, spot.last) != comment.code:
            self.refuse("yes", "the lines have changed since", "write the suggestion again")
            return
        after = _with_lines(before, spot.first, spot.last, comment.suggestion or "")
        if refused := await self._write(spot, (before, after)):
            self.refuse("yes", refused)
            return
        self._set_comments([c for c in self.session.comments if c != comment])


def _lines_of(text: str, first: int, last: int) -> str:
    """Return these lines without the end of the last one; ends of Windows are as others here."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return "\n".join(lines[first - 1 : last])


def _with_lines(text: str, first: int, last: int, new: str) -> str:
    """Return a text with others in place of these lines; they end as the first of them did."""
    lines = text.split("\n")
    ends = "\r" if lines[first - 1 : first] and lines[first - 1].endswith("\r") else ""
    put = [f"{line}{ends}" for line in new.split("\n")] if new else []
    return "\n".join([*lines[: first - 1], *put, *lines[last:]])
