"""A review under way as plain state: where the eye is, what is under the cursor, what is picked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.messages.commands import PickedLine
from engine.messages.merging import LineView
from tui.screens.review.offers import (
    Matter,
    Offer,
    What,
    key_ideas,
    matters_of,
    offers_of,
    shown_file,
    shown_view,
)
from tui.words.clean import clean_code_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.api import ConflictFileView, ConflictView, HunkView, MergedFileView
    from engine.messages.merging import FileRisk


BLANK = PickedLine(side="blank", at=0)
"""The empty line below both sides, which is picked like theirs."""


@dataclass
class ReviewPane:
    """The place of a reviewer: the matter, the offer, the lines picked."""

    raw: ConflictView | None = None
    shown: ConflictView | None = None
    matters: list[Matter] = field(default_factory=list)
    at: int = 0
    cursor: int = -1
    offers: list[Offer] = field(default_factory=list)
    picking: bool = False
    picked: list[PickedLine] = field(default_factory=list)
    line: int = 0
    looked_at: dict[str, ConflictFileView] = field(default_factory=dict)
    """Whole files as they would be, by their paths, fit to be shown; an older look stays until the
    newer one is there."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Return what each worker was asked for, in its first line."""
    _files: dict[int, ConflictFileView] = field(default_factory=dict)
    risks: Mapping[str, FileRisk] = field(default_factory=dict)
    """The files by risk, while they stand in that order."""
    was_checked: bool = False
    """A result was checked here, so that another one is not yet."""

    def show(self, view: ConflictView | None) -> None:
        """Show a view; the eye stays on the matter it was on, wherever that stands now.

        So does the hand where that is as open as it was: news while somebody reads moves neither
        the cursor nor what was picked.
        """
        name = self._name() if self.raw else None
        here, offer, offers = self.matter, self.offer, self.offers
        picks = (self.picking, self.picked, self.line)
        if view is None or (self.raw and self.raw.worker != view.worker):
            self.looked_at, self.was_checked, self.risks = {}, False, {}
        view = by_risk(view, self.risks) if view and self.risks else view
        self.raw = view
        self._files.clear()
        self.shown = shown_view(view) if view else None
        self.was_checked |= bool(view and view.check)
        self.matters = matters_of(view) if view else []
        if not name:
            opened = (i for i, matter in enumerate(self.matters) if matter.is_open)
            self.to(next(opened, 0))
            return
        names = [self._name(index) for index in range(len(self.matters))]
        self.to(names.index(name) if name in names else min(self.at, len(names) - 1))
        if name in names and here and self.matter and here.decided == self.matter.decided:
            self.picking, self.picked, self.line = picks
            wanted = (i for i, one in enumerate(self.offers) if not (one.idea or one.is_ahead))
            new = (i for i in wanted if self.offers[i] not in offers)
            kept = self.offers.index(offer) if offer in self.offers else -1
            self.cursor = kept if offer else next(new, self.cursor)

    def _name(self, index: int | None = None) -> tuple[str, ...] | None:
        """A matter's name over time: the path, what it is, the key of its hunk."""
        index = self.at if index is None else index
        if self.raw is None or not 0 <= index < len(self.matters):
            return None
        matter = self.matters[index]
        if matter.what is What.MERGED:
            return self.raw.merged[matter.file - len(self.raw.files)].path, matter.what, ""
        file = self.raw.files[matter.file]
        key = file.hunks[matter.hunk].key if matter.hunk >= 0 else ""
        return file.path, matter.what, key

    def to(self, index: int) -> None:
        """Look at a matter; only what is likely right is under the cursor at first."""
        self.at = max(index, 0)
        self.leave_lines()
        matter = self.matter
        self.offers = offers_of(self.raw, matter) if self.raw and matter else []
        likely = (i for i, offer in enumerate(self.offers) if offer.is_likely)
        self.cursor = next(likely, -1) if matter and matter.is_open else -1

    @property
    def matter(self) -> Matter | None:
        """Return what is looked at."""
        return self.matters[self.at] if 0 <= self.at < len(self.matters) else None

    @property
    def file(self) -> ConflictFileView | None:
        """The file that is looked at, fit to be shown."""
        matter = self.matter
        if self.raw is None or matter is None or matter.what is What.MERGED:
            return None
        if matter.file not in self._files:
            self._files[matter.file] = shown_file(self.raw.files[matter.file])
        return self._files[matter.file]

    @property
    def merged(self) -> MergedFileView | None:
        """The file that git merged by itself, where such a one is looked at."""
        matter, view = self.matter, self.shown
        if view is None or matter is None or matter.what is not What.MERGED:
            return None
        return view.merged[matter.file - len(view.files)]

    @property
    def raw_path(self) -> str:
        """The path that is looked at, byte for byte."""
        name = self._name()
        return name[0] if name else ""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the file that is looked at deserves it, while they stand by risk."""
        known = self.risks.get(self.raw_path)
        return known.reasons if known else ()

    @property
    def to_decide(self) -> list[Matter]:
        """Return what there is to decide, without what git merged by itself."""
        return [matter for matter in self.matters if matter.what is not What.MERGED]

    @property
    def hunk(self) -> HunkView | None:
        """The hunk that is looked at, fit to be shown."""
        matter, file = self.matter, self.file
        return file.hunks[matter.hunk] if file and matter and matter.hunk >= 0 else None

    @property
    def raw_hunk(self) -> HunkView | None:
        """The hunk that is looked at, byte for byte."""
        matter = self.matter
        if self.raw is None or matter is None or matter.hunk < 0:
            return None
        return self.raw.files[matter.file].hunks[matter.hunk]

    @property
    def offer(self) -> Offer | None:
        """Return what is under the cursor."""
        return self.offers[self.cursor] if 0 <= self.cursor < len(self.offers) else None

    @property
    def shows_result(self) -> bool:
        """Say if the whole result can be shown: all is resolved, and the merge is a worker's."""
        return bool(self.shown and self.shown.is_resolved and not self.shown.doing)

    @property
    def open_count(self) -> int:
        """Return how many matters are open."""
        return sum(matter.is_open for matter in self.matters)

    # Moving.

    def move(self, by: int) -> None:
        """To the next offer, or while lines are picked to the next line."""
        if self.picking:
            self.line = max(min(self.line + by, len(self.pickable()) - 1), 0)
        else:
            self.cursor = max(min(self.cursor + by, len(self.offers) - 1), 0)

    def to_matter(self, by: int) -> bool:
        """To the next matter."""
        at = max(min(self.at + by, len(self.matters) - 1), 0)
        was_there = at == self.at
        self.to(at)
        return not was_there

    def to_file(self, by: int) -> bool:
        """To the first matter of the next file."""
        here = self.matter
        if here is None:
            return False
        starts = [i for i, m in enumerate(self.matters) if m.file == here.file + by]
        if starts:
            self.to(starts[0])
        return bool(starts)

    def to_path(self, index: int) -> None:
        """To a file by its place."""
        starts = [i for i, m in enumerate(self.matters) if m.file == index]
        self.to(starts[0] if starts else self.at)

    def to_hunk(self, place: int) -> None:
        """To a conflict of the file that is looked at."""
        here = self.matter
        ways = [i for i, m in enumerate(self.matters) if here and m.file == here.file]
        self.to(next((i for i in ways if self.matters[i].hunk == place), self.at))

    def to_open(self, by: int) -> bool:
        """To the next matter that is open, round the end."""
        count = len(self.matters)
        for offset in range(1, count):
            index = (self.at + by * offset) % count
            if self.matters[index].is_open:
                self.to(index)
                return True
        return False

    def offer_of(self, idea: str) -> Offer | None:
        """Return what a key takes here."""
        ideas = key_ideas(self.offers)
        return self.offers[ideas.index(idea)] if idea in ideas else None

    # Single lines.

    def pickable(self) -> list[tuple[PickedLine, LineView]]:
        """Every line that can be picked: those of both sides and the base, and an empty one."""
        hunk = self.hunk
        if hunk is None:
            return []
        found: list[tuple[PickedLine, LineView]] = []
        for side, lines in (("target", hunk.target), ("incoming", hunk.incoming)):
            found += [
                (PickedLine(side="base" if line.sign == "-" else side, at=line.at), line)
                for line in lines
            ]
        return [*found, (BLANK, LineView(sign="+", text=""))]

    def begin_lines(self) -> None:
        """Pick single lines from now on."""
        self.picking, self.picked, self.line = True, [], 0

    def leave_lines(self) -> None:
        """Pick no lines any more."""
        self.picking, self.picked, self.line = False, [], 0

    def pick(self, place: int) -> None:
        """Take a line by its place, or leave it out again."""
        self.line = place
        self.toggle_line()

    def toggle_line(self) -> None:
        """Take the line under the cursor, or leave it out again; and go on to the next.

        The empty line is taken once more each time.
        """
        lines = self.pickable()
        if not lines:
            return
        line = lines[self.line][0]
        if line in self.picked and line != BLANK:
            self.picked.remove(line)
        else:
            self.picked.append(line)
        self.move(1)

    def preview(self) -> str | None:
        """The text that would stand in the hunk's place, fit to be shown; None for none."""
        hunk, offer = self.hunk, self.offer
        if hunk is None:
            return None
        if self.picking:
            texts = dict(self.pickable())
            return "".join(f"{texts[line].text}\n" for line in self.picked)
        if offer is not None and offer.text is not None:
            return clean_code_block(offer.text)
        return hunk.result


def by_risk(view: ConflictView, risks: Mapping[str, FileRisk]) -> ConflictView:
    """Return a view with its files by risk; those of which none is known come last."""

    def place(file: ConflictFileView | MergedFileView) -> float:
        return -risks[file.path].score if file.path in risks else 1.0

    files = tuple(sorted(view.files, key=place))
    return replace(view, files=files, merged=tuple(sorted(view.merged, key=place)))
