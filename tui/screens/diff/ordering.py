"""Let the files of a diff stand by risk, with the reasons in words, or as git lists them."""

from collections.abc import Mapping

from engine.messages.diffs import ChangeDiff
from engine.messages.merging import FileRisk
from tui.kit.screen import Board, Controller
from tui.screens.diff.pane import DiffPane
from tui.words.clean import clean

_NOTHING = "nothing stands out in it"


class Ordering(Controller):
    """Ask for the risks of a change, as long as its files are to stand by them."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.is_by_risk = False

    async def risks(self, run: str, worker: str, diff: ChangeDiff | str) -> Mapping[str, FileRisk]:
        """Return the files by risk, if they are to stand so; nothing where nobody can say."""
        if not self.is_by_risk or isinstance(diff, str) or diff.is_live:
            return {}
        found = await self.session.bridge.risks(run, worker)
        if isinstance(found, str) or not self.is_by_risk:  # the key was pressed again meanwhile
            return {}
        return {one.path: one for one in found}

    async def order(self, pane: DiffPane) -> None:
        """Put the files in the order of their risk, or back in git's."""
        diff, here = pane.diff, self.session.worker_view
        if self.is_by_risk or diff is None or here is None:
            self.is_by_risk = False
            pane.set_risks({})
            self.screen.say("the files are in git's order")
            return
        if diff.is_live:
            self.refuse("show_order", f"{here.worker} still writes it")
            return
        found = await self.session.bridge.risks(self.run_id, here.worker)
        if isinstance(found, str):
            self.refuse("show_order", found)
        elif pane.diff is diff:
            self.is_by_risk = True
            risks = {one.path: one for one in found}
            pane.set_risks(risks)
            self.screen.say(*_said(diff, risks))


def _said(diff: ChangeDiff, risks: Mapping[str, FileRisk]) -> tuple[str, ...]:
    """Return what the list says; of a file alone there is no list, so its reasons."""
    if len(diff.files) > 1:
        return ("the files are sorted by risk, highest first",)
    known = risks.get(diff.paths[0]) if diff.files else None
    reasons = "; ".join(map(clean, known.reasons)) if known else ""
    return (f"it is the only file: {reasons or _NOTHING}",)
