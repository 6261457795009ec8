"""Write texts of one's own: a hunk in the box, a file in the user's editor."""

from functools import partial

from engine.messages.commands import EditFile, ResolutionAction, SetFile, WriteHunk
from tui.ink import Ink, Role, Span
from tui.kit.outside import edit_text
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import side_text
from tui.words.clean import clean_name


class OwnTexts(Controller):
    """Put own text in a conflict's place, and edit files of the result as a whole."""

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    def do_edit(self) -> None:
        """This hunk in a box, beginning with what it comes to so far."""
        pane, matter, hunk = self.pane, self.pane.matter, self.pane.raw_hunk
        if pane.raw is None or matter is None or hunk is None:
            return
        offer = pane.offer.text if pane.offer else None
        draft = hunk.result if hunk.result is not None else offer
        draft = side_text(hunk.target) if draft is None else draft
        ends = "\r\n" if _ends_all(draft, "\r\n") else "\n"
        draft = draft.replace(ends, "\n")
        if not _can_be_typed(draft):
            sides = ("take_target", "take_incoming", "take_both")
            target, incoming, both = map(self.screen.key_of, sides)
            whole = self.screen.key_of("edit_all")
            self.refuse(
                "edit",
                "it contains characters that you cannot type",
                f"{target}, {incoming} and {both} keep them; {whole} edits the whole file",
            )
            return
        path, line = pane.raw.files[matter.file].path, hunk.line
        writing = Writing(
            f"{clean_name(path)}:{line}",
            "this text replaces the conflict",
            lambda text: self._write_hunk(path, hunk.key, text, ends),
            key=f"hunk {hunk.key}",
            may_be_empty=True,
            is_code=True,
            file=path,
        )
        self.screen.write(writing, draft.removesuffix("\n"))

    def _write_hunk(self, path: str, key: str, text: str, ends: str) -> None:
        if not _can_be_typed(text):
            self.refuse("edit", "it contains characters that cannot be shown")
            return
        text = f"{text}\n".replace("\n", ends) if text else ""
        self.screen.does(Conflicts).decide(
            (WriteHunk(path=path, hunk=key, text=text),), "own text", goes_on=True
        )

    def do_edit_all(self) -> None:
        self.screen.begin_outside(self._edit_file)

    async def _edit_file(self) -> None:
        """The file in the user's editor; markers that are left are left open."""
        raw, matter = self.pane.raw, self.pane.matter
        if raw is None or matter is None:
            return
        await self._edit_path(self.pane.raw_path)

    async def _edit_path(self, path: str) -> None:
        """Any file of the result: conflicted, merged by git, or changed by nobody."""
        raw = self.pane.raw
        if raw is None:
            return
        found = await self.session.bridge.conflicts(raw.run, raw.worker, path)
        file = None if isinstance(found, str) else found.looked_at
        if file is None or file.text is None or "\0" in file.text:
            why = (
                found
                if isinstance(found, str)
                else "it is not text, so an editor cannot keep it intact"
            )
            self.refuse("edit_all", why)
            return
        name = f"file {raw.run} {raw.worker} {path}"
        drafts, key = self.session.drafts, self.screen.key_of("edit_all")
        begun = drafts.get(name, file.text)
        edited, problem = await edit_text(self.screen.app, begun, name=path)
        if problem:
            self.refuse("edit_all", problem)
            return
        if edited == begun:
            begins_anew = drafts.pop(name, None) is not None
            self.screen.say("nothing was changed", f"; {key} starts again" if begins_anew else "")
            return
        action: ResolutionAction = EditFile(path=path, text=edited)
        if all(one.path != path or one.kind == "edited" for one in raw.files):
            action = SetFile(path=path, text=edited, mode=file.mode or "100644")
        drafts[name] = edited
        refused = await self.screen.does(Conflicts).hand_over(
            (action,), "edited", goes_on=True, shows_changed=False
        )
        if not refused:
            drafts.pop(name, None)
            return
        mark = Span("✗ ", Ink(Role.FAILED, bold=True))
        self.screen.say_both(f"your text is kept; {key} opens it", refused, mark)

    def do_edit_other(self) -> None:
        """A file that has no conflict, by its path."""
        note = "the path of any file of the result"
        self.screen.write(Writing("edit", note, self._edit_named, key="edit other"))

    def _edit_named(self, path: str) -> None:
        self.screen.begin_outside(partial(self._edit_path, path.strip()))


def _ends_all(text: str, ends: str) -> bool:
    """Say if every line of a text ends so."""
    return text.count("\n") == text.count(ends) > 0


def _can_be_typed(text: str) -> bool:
    """A box shows all of it, and gives the same back."""
    return all(char.isprintable() or char in "\n\t" for char in text)
