"""Take what is offered for a conflict: a side, a proposal, lines, an agent's answer."""

from functools import partial

from engine.errors import EngineError
from engine.messages.commands import (
    AskAgent,
    ChooseRest,
    ConfirmAnswer,
    ForgetAnswer,
    PickLines,
    RedoChoice,
    Regenerate,
    ResolutionAction,
    UndoChoice,
)
from tui.controllers import Undoing
from tui.kit.dialogs import Choice
from tui.kit.screen import Controller
from tui.kit.textbox import Writing
from tui.screens.review.blocked import Blocked
from tui.screens.review.conflicts import Conflicts
from tui.screens.review.model import ReviewPane
from tui.screens.review.offers import Offer
from tui.words.clean import clean_name, clean_tree
from tui.words.settings import split_settings

_REST = (
    ("target", "the target's side"),
    ("incoming", "the incoming side"),
    ("both", "both sides, target first"),
    ("combined", "both, word by word, where possible"),
)


class Taking(Controller):
    """Decide conflicts, one or many at once, and take decisions back."""

    @property
    def pane(self) -> ReviewPane:
        """Return what is on screen."""
        return self.screen.does(Conflicts).pane

    def do_take_target(self) -> None:
        self._take_by("take_target")

    def do_take_incoming(self) -> None:
        self._take_by("take_incoming")

    def do_take_both(self) -> None:
        self._take_by("take_both")

    def do_take_both_reversed(self) -> None:
        self._take_by("take_both_reversed")

    def do_take_base(self) -> None:
        self._take_by("take_base")

    def do_take_first(self) -> None:
        self._take_by("take_first")

    def do_take_second(self) -> None:
        self._take_by("take_second")

    def do_take_third(self) -> None:
        self._take_by("take_third")

    def do_merge(self) -> None:
        self._take_by("merge")

    def do_no(self) -> None:
        self._take_by("no")

    def do_regenerate(self) -> None:
        self._take_by("regenerate")

    def _take_by(self, idea: str) -> None:
        if self.screen.does(Blocked).way_of(idea):
            self.screen.does(Blocked).take(idea)
        elif offer := self.pane.offer_of(idea):
            self._take(offer)

    def do_mark(self) -> None:
        """Take what is under the cursor: a proposal, or a single line."""
        if self.pane.picking:
            self.pane.toggle_line()
        elif self.pane.offer is not None:
            self._take(self.pane.offer)

    def _take(self, offer: Offer) -> None:
        if isinstance(offer.action, Regenerate):
            make = partial(self.screen.does(Conflicts).regenerate, offer.action)
            self.screen.begin(make, group="regenerate", exclusive=True)
            return
        actions: tuple[ResolutionAction, ...] = (offer.action,)
        if offer.remembered:
            actions = (*actions, ConfirmAnswer(key=offer.remembered))
        self.screen.does(Conflicts).decide(actions, offer.label, goes_on=True)

    def do_undo(self) -> None:
        """Take back the last decision, or the last line picked; else what was done last."""
        if self.pane.picked:
            self.pane.picked.pop()
            return
        if self.pane.raw is None:
            self.screen.does(Undoing).do_undo()
            return
        self.screen.does(Conflicts).decide((UndoChoice(),), "undone", shows_changed=True)

    def do_redo(self) -> None:
        if self.pane.raw is None:
            self.screen.does(Undoing).do_redo()
            return
        self.screen.does(Conflicts).decide((RedoChoice(),), "redone", shows_changed=True)

    def do_forget(self) -> None:
        offer = self.pane.offer
        if offer is not None:
            self.screen.does(Conflicts).decide(
                (ForgetAnswer(key=offer.remembered),), "will not be offered again"
            )

    # Rest of a file, or of all.

    def do_merge_all(self) -> None:
        raw = self.pane.raw
        if raw is None:
            return
        choices = [
            Choice(f"{choice}:{scope}", f"{what}, {where}", "resolved ones stay")
            for scope, where in (("file", "rest of this file"), ("all", "rest of all files"))
            for choice, what in _REST
        ]
        self.screen.choose("Everything still open", choices, self._take_rest)

    def _take_rest(self, target: str) -> None:
        from engine.api import side_actions  # noqa: PLC0415 - brings the engine's rooms along

        raw, matter = self.pane.raw, self.pane.matter
        if raw is None or matter is None:
            return
        choice, _, scope = target.partition(":")
        files = raw.files if scope == "all" else raw.files[matter.file : matter.file + 1]
        actions: list[ResolutionAction] = []
        for file in files:
            if file.is_resolved:
                continue
            if choice == "combined":
                actions.append(ChooseRest(choice=choice, paths=(file.path,)))
                continue
            try:
                actions += side_actions(file, choice)
            except EngineError as error:
                self.refuse("merge_all", clean_tree(str(error)))
                return
        where = "in all files" if scope == "all" else "in this file"
        self.screen.does(Conflicts).decide(
            tuple(actions), f"{dict(_REST)[choice]}, for everything open {where}", goes_on=True
        )

    # Single lines.

    def do_select(self) -> None:
        """Begin to pick single lines, or take those that were picked."""
        pane, matter = self.pane, self.pane.matter
        if not pane.picking:
            pane.begin_lines()
            return
        if not pane.picked or pane.raw is None or matter is None:
            self.refuse("select", "you have marked no line")
            return
        file = pane.raw.files[matter.file]
        key = file.hunks[matter.hunk].key
        lines = tuple(pane.picked)
        pane.leave_lines()
        self.screen.does(Conflicts).decide(
            (PickLines(path=file.path, hunk=key, lines=lines),), "single lines", goes_on=True
        )

    # Asking.

    def do_steer(self) -> None:
        """Ask an agent for a proposal, in words if some are wanted."""
        pane, matter, hunk = self.pane, self.pane.matter, self.pane.raw_hunk
        if pane.raw is None or matter is None or hunk is None:
            return
        path = pane.raw.files[matter.file].path
        writing = Writing(
            f"ask for a proposal: {clean_name(path)}:{hunk.line}",
            "what the agent should know (optional); optional first line: agent=codex",
            lambda text: self._ask(path, hunk.key, text),
            key=f"ask {hunk.key}",
            may_be_empty=True,
        )
        self.screen.write(writing)

    def _ask(self, path: str, key: str, text: str) -> None:
        settings, words = split_settings(text)
        if settings.keys() - {"agent"}:
            self.refuse("steer", "you can set only agent=… here")
            return
        asked = AskAgent(path=path, hunk=key, agent=settings.get("agent", ""), words=words)
        self.screen.does(Conflicts).decide((asked,), "asked; the answer will be one more proposal")
