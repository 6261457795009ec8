"""Compare: the candidates of a step beside each other; one is chosen, or hunks of any are woven."""

from collections.abc import Callable, Sequence
from functools import partial

from engine.messages.commands import Seen
from tui.controllers import Deciding
from tui.ink import BOLD, TEXT, Ink, Page, Role, Row, Span, blank, fit, words
from tui.kit.session import Undoable
from tui.screens.compare.moves import CompareMoves
from tui.screens.compare.page import compare_rows, compare_subject
from tui.screens.compare.pair import code_rows
from tui.screens.diff.pane import DiffPane
from tui.words.scene import Scene
from tui.words.sentences import nothing_here

_NEEDS_HUNK = frozenset({"mark", "no", "open", "copy"})
_NEEDS_TABLE = _NEEDS_HUNK | {
    "next",
    "previous",
    "diff",
    "check",
    "merge",
    "merge_all",
    "left",
    "right",
}
_DECIDES = frozenset({"yes", "land", "no_wide"})
_SPLIT_FROM = 140
_HEAD = 2
_PAIR = 2


class CompareScreen(CompareMoves):
    """Figures and hunks of every candidate; `yes` chooses the one under the cursor."""

    opens_diff = "go_diff"
    """Here `diff` sets two candidates against each other."""

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        run, step = scene.run, self.step
        waiting = [
            worker.worker
            for other in (run.steps if run else ())
            if step and step.name in other.dependencies
            for worker in other.workers
            if not worker.phase.is_settled
        ]
        return compare_subject(self.pane, waiting, cells) or super().subject(scene, cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        self.load_if_moved()
        if self.pane.table is None:
            there_is = "asking for the candidates" if self.step else "no step has candidates"
            return Page(tuple(nothing_here(self.reason or there_is, scene)))
        if self.pair is not None:
            return self._draw_pair(self.pair, cells, height)
        if self.top is not None:
            rows = self._whole_hunk(cells)
            self.top = max(min(self.top, len(rows) - height), 0)
            return Page(tuple(rows[self.top : self.top + height]))
        rows, zones = compare_rows(self.pane, cells, height)
        return Page(tuple(rows), tuple(zones))

    def _draw_pair(self, pair: DiffPane, cells: int, height: int) -> Page:
        more = (
            f", {self.key_of('diff')} goes on to the next one"
            if len(self.pane.rows) > _PAIR
            else ""
        )
        head = fit(words(Span(f" {self.pair_said}", BOLD), f"   esc closes{more}"), cells)
        pair.set_split(is_split=cells >= _SPLIT_FROM)
        if pair.diff is not None and not pair.diff.files:
            return Page((head, (), words("  They made the same change.")))
        drawn = pair.draw(cells - 2, height - _HEAD)
        return Page((head, (), *((blank(1), *row) for row in drawn)))

    def _whole_hunk(self, cells: int) -> list[Row]:
        """Every candidate's side of the hunk under the cursor, one under the other."""
        spot = self.pane.spot
        if spot is None:
            return []
        rows: list[Row] = [words(Span(f" {spot.path}:{spot.line}", BOLD), "   esc closes"), ()]
        for hunk in spot.hunks:
            who = ", ".join(hunk.alike or hunk.candidates)
            taken = self.pane.is_taken(spot, hunk)
            mark = Span("  ■ taken", Ink(Role.ACCENT, bold=True)) if taken else Span("")
            rows.append(words(Span(f" {who}", TEXT), mark, f"  {hunk.what}"))
            rows += [(blank(1), *row) for row in code_rows(hunk, None, cells - 2)]
            rows.append(())
        rows.append(words(" before"))
        rows += [words(f"       {line.rstrip()}") for line in spot.hunks[0].old]
        return [fit(row, cells) for row in rows]

    def sentence(self, scene: Scene) -> Row:
        del scene
        row = self.pane.row
        if row is None:
            return ()
        key = self.key_of("yes")
        refused = self.why_not("yes")
        if refused:
            return words(Span(f"{row.worker} cannot be chosen: ", TEXT), f"{refused}.")
        return words(
            Span(f"{key} chooses {row.worker} whole. ", TEXT),
            "Candidates you do not choose stay on their branches.",
        )

    def hints(self) -> Sequence[str]:
        if self.pane.table is None:
            return ("go_fleet",)
        if self.pair is not None or self.top is not None:
            return ("down", "leave", "diff", "yes")
        return (
            "down",
            "mark",
            "merge_all",
            "no",
            "yes",
            "diff",
            "next",
            "check",
            "merge",
            "open",
            "no_wide",
        )

    def why_not(self, idea: str) -> str:
        pane = self.pane
        if idea in _NEEDS_TABLE | _DECIDES and pane.table is None:
            return "there are no candidates"
        if idea in {"mark", "open", "copy"} and pane.hunk is None:
            name = pane.row.worker if pane.row else "the candidate"
            return f"{name} changed nothing here"
        rule = {"no": self._why_not_leave, "check": self._why_not_check}.get(idea)
        if rule is not None:
            return rule()
        if idea == "merge":
            has_composite = pane.is_checked and pane.woven and pane.woven.worker
            return (
                "" if has_composite else f"there is no composite; {self.key_of('check')} makes it"
            )
        return "" if idea in _NEEDS_TABLE | {"no_wide"} else super().why_not(idea)

    def _why_not_leave(self) -> str:
        spot = self.pane.spot
        return "" if spot and spot.number in self.pane.taken else "no hunk is taken here"

    def _why_not_check(self) -> str:
        if not self.pane.taken:
            return "no hunk is taken"
        if any(not row.is_comparable for row in self.pane.rows if row.hunks):
            return "the candidates did not begin at the same base"
        return ""

    def label_of(self, idea: str) -> str:
        action = self.action(idea)
        return action.label if action else ""

    def pointed(self, target: str, times: int) -> None:
        kind, _, rest = target.partition(":")
        if kind == "spot":
            self.pane.at = int(rest)
            if times > 1:
                self.do_open()

    # Weaving.

    def do_mark(self) -> None:
        """Take the hunk of the candidate under the cursor, and go on to the next."""
        self._change("the hunk", self.pane.take)
        self.pane.move(1)

    def do_no(self) -> None:
        self._change("the hunk left out", self.pane.leave)

    def _change(self, said: str, act: Callable[[], bool]) -> None:
        pane, before = self.pane, dict(self.pane.taken)
        act()
        after = dict(pane.taken)
        self.session.remember(
            Undoable(
                said,
                lambda: setattr(pane, "taken", dict(before)),
                lambda: setattr(pane, "taken", dict(after)),
            )
        )

    def do_merge_all(self) -> None:
        """Take all that the candidate under the cursor did; what only others did stays as it is."""
        self._change(f"all of {self.here().worker} taken", self.pane.take_all)

    def do_check(self) -> None:
        """Weave exactly the taken hunks, and run the check on what they make."""
        table = self.pane.table
        if table is not None:
            self.say("the taken hunks are woven and checked")
            names = {row.worker for row in self.pane.rows}
            seen = {name: one for name, one in self.of_table.items() if name in names}
            weave = partial(self._weave, table.run, table.step, seen)
            self.begin(weave, group="weave", exclusive=True)

    async def _weave(self, run: str, step: str, seen: dict[str, Seen]) -> None:
        keys = self.pane.keys
        found = await self.session.bridge.weave(run, step, keys, seen)
        self.session.look()
        if isinstance(found, str):
            self.say_refused(self.key_of("check"), found)
            return
        self.pane.woven, self.pane.woven_of = found, keys
        if found.worker is None:
            self.say_refused(self.key_of("check"), found.reason or "these hunks make no composite")
        else:
            passed = found.check is None or found.check.passed
            mark = Span("✓ ", Ink(Role.DONE)) if passed else Span("✗ ", Ink(Role.FAILED))
            self.say(mark, Span(f"{found.worker} waits for review", TEXT))

    def do_merge(self) -> None:
        """The composite's review: its diff, as any other change is reviewed."""
        woven = self.pane.woven
        if woven is not None and woven.worker is not None:
            self.session.worker = woven.worker
            self.go("diff")

    # Deciding.

    def do_no_wide(self) -> None:
        worker = self.here()
        said = words(
            Span("Reject ", TEXT), Span(worker.worker, BOLD), Span("? It stays on its ref.", TEXT)
        )
        self.does(Deciding).ask_to_reject("no_wide", worker, said)

    def do_land(self) -> None:
        """The composite where there is one, else the candidate under the cursor."""
        woven = self.pane.woven
        if self.pane.is_checked and woven is not None and woven.worker is not None:
            self.session.worker = woven.worker
        self.hand_on("land")
