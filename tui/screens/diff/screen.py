"""Diff: one worker's change, hunk by hunk, live while it runs, against this and that."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from engine.messages.commands import Seen
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.ink import LINE, TEXT, Page, Row, Span, Zone, blank, fit, words
from tui.kit.session import Session, identity_of
from tui.kit.textbox import Writing
from tui.screens.diff.drops import DiffDrops
from tui.screens.diff.page import FILES, FILES_FROM, SPLIT_FROM, diff_subject, edge_map, file_pane
from tui.words.figures import some
from tui.words.scene import Scene
from tui.words.sentences import nothing_here, sentence_of
from tui.words.unshown import unshown_of

_LIVE_EVERY_S = 2.0
_UNFINISHED = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})
_WIDER = 8
"""So many times more lines round a change are asked for at once where more are wanted."""
_MOST_CONTEXT = 1000
SINCE = "what you saw last"


class _Wanted(NamedTuple):
    """Which diff is on screen; another one is asked for when this changes."""

    run: str = ""
    worker: str = ""
    attempt: int = 0
    against: str = ""
    context: int = 3
    change: str = ""
    beat: int = 0

    @property
    def of(self) -> tuple[str, str, int, str]:
        """What makes it another diff, rather than the same one grown."""
        return self.run, self.worker, self.attempt, self.against


class DiffScreen(DiffDrops):
    """A change against what it is compared with."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.against = ""
        self.since = ""
        self.context = 3
        self.reason = ""
        self._loaded = _Wanted()
        self._loading: _Wanted | None = None
        self._files_at: list[int] = []

    # Loading.

    def on_screen_resume(self) -> None:
        self._arrive()
        self._load_if_moved()
        super().on_screen_resume()

    def on_screen_suspend(self) -> None:
        self._leave()

    def point_at(self, worker: str) -> None:
        self._leave()
        super().point_at(worker)
        self._arrive()

    def _arrive(self) -> None:
        """Whose change was looked at before: what has come since can be asked for."""
        self.since = self.session.looked.get(self.about(), "")
        self.against = ""

    def _leave(self) -> None:
        """What is on screen now is what was seen last."""
        diff = self.pane.diff
        if diff is not None and diff.head and self._loaded.run:
            self.session.looked[f"{self._loaded.run}/{self._loaded.worker}"] = diff.head

    def _wanted(self, run: str, here: WorkerView) -> _Wanted:
        change = f"{here.change}" if here.change else ""
        is_live = here.phase in _UNFINISHED
        beat = int(self.session.clock() / _LIVE_EVERY_S) if is_live else 0
        known = self._loaded
        if is_live and known.of[:2] == (run, here.worker) and self._is_still(here):
            beat = known.beat
        moved = f"{change}{here.phase}{here.error}{here.behind}"
        return _Wanted(run, here.worker, here.attempt, self.against, self.context, moved, beat)

    def _is_still(self, here: WorkerView) -> bool:
        """Nothing was heard of it since the last look."""
        last = here.last_output_at
        return last is not None and last < self._loaded.beat * _LIVE_EVERY_S

    def _load_if_moved(self) -> None:
        """Ask for the diff when it is another, or has grown."""
        here, run = self.session.worker_view, self.session.run
        if here is None or run is None:
            return
        wanted = self._wanted(run.run, here)
        is_on_its_way = self._loading is not None and self._loading.of == wanted.of
        if wanted == self._loaded or is_on_its_way:
            return
        if wanted.of != self._loaded.of:
            self.pane.show(None)
            self.reason = ""
        self._loaded = self._loading = wanted
        self.pane.shape.about = self.about()
        self.begin(partial(self._load, wanted), group="diff", exclusive=True)

    async def _load(self, wanted: _Wanted) -> None:
        try:
            found = await self.session.bridge.diff(
                wanted.run,
                wanted.worker,
                wanted.attempt or None,
                against=wanted.against,
                context=wanted.context,
            )
        finally:
            if self._loading is wanted:
                self._loading = None
        if wanted != self._loaded:
            return
        if isinstance(found, str):
            self.reason = found
        else:
            is_since = wanted.against and wanted.against == self.since
            self.pane.show(replace(found, against=SINCE) if is_since else found)
            at = wanted.run, wanted.worker, wanted.attempt
            self.session.opened_diffs.add(at)
            if not wanted.against:
                self.session.unshown[at] = unshown_of(found)
            if self.session.diff_place:
                self.pane.to_place(self.session.diff_place)
                self.session.diff_place = ""
        self.draw()

    # Drawing.

    def subject(self, scene: Scene, cells: int) -> Row:
        worker, step = self.session.worker_view, self.session.step_view
        if worker is None or step is None:
            return super().subject(scene, cells)
        return diff_subject(worker, step, self.pane.diff, seen=self.session.seen, cells=cells)

    def draw_body(self, scene: Scene, cells: int, height: int) -> Page:
        self._load_if_moved()
        worker, diff = self.session.worker_view, self.pane.diff
        if worker is None or diff is None:
            said = self.reason or ("asking for the diff" if worker else "there is no worker yet")
            return Page(tuple(nothing_here(said, scene)))
        self.pane.set_left_out(worker.left_out)
        if not diff.files:
            return Page(((), words(f"  Nothing differs from {diff.against}.")))
        is_split = self.mode == "split" or (self.mode == "auto" and cells >= SPLIT_FROM)
        self.pane.set_split(is_split=is_split)
        has_files = cells >= FILES_FROM and not self.is_zoomed
        width = cells - (FILES + 5 if has_files else 2) - 2
        rows = self.pane.draw(width, height)
        edge = edge_map(self.pane, height)
        body = [
            (*fit(row, width), blank(1), mark, blank(1))
            for row, mark in zip(rows, edge, strict=True)
        ]
        zones = [Zone(cells - width - 2, 0, width, height, "pane")]
        if not has_files:
            return Page(tuple((blank(1), *row) for row in body), tuple(zones))
        listed, self._files_at = file_pane(
            diff, self.pane.shape, worker, here=self.pane.file, send_key=self.key_of("send")
        )
        at = self._files_at[self.pane.file] if self._files_at else 0
        top = max(at + 3 - height, 0)
        left = listed[top : top + height]
        zones += [
            Zone(0, y - top, FILES, 1, f"file:{n}")
            for n, y in enumerate(self._files_at)
            if y >= top
        ]
        bar = (blank(1), Span("│", LINE), blank(1))
        drawn = [
            (blank(1), *fit(left[y] if y < len(left) else (), FILES), *bar, *row)
            for y, row in enumerate(body)
        ]
        return Page(tuple(drawn), tuple(zones))

    def sentence(self, scene: Scene) -> Row:
        if self.pane.anchor is not None:
            return words(
                Span(f"{some(len(self.pane.range()), 'line')}. ", TEXT),
                "c comments there, esc leaves the range.",
            )
        if self.pane.query:
            hits = self.pane.hits()
            have = "line has" if hits == 1 else "lines have"
            return words(Span(f"/{self.pane.query}  ", TEXT), f"{hits} {have} it")
        worker, step = self.session.worker_view, self.session.step_view
        return sentence_of(worker, step, scene.now) if worker and step else ()

    def hints(self) -> Sequence[str]:
        here = self.session.worker_view
        first = ("merge",) if here and here.phase is Phase.CONFLICTED else ()
        return (
            *first,
            *("mark", "down", "comment", "send", "no", "yes", "land", "select", "diff"),
            "show_split",
            *("more", "search"),
        )

    def seen(self, worker: WorkerView) -> Seen:
        """Name also the merge with the target, where that is what the diff shows."""
        diff = self.pane.diff
        return identity_of(worker, diff.result if diff and self.against else "")

    def _is_overtaken(self) -> bool:
        """The diff on screen shows a tree that was still written to, and the worker has ended."""
        worker, diff = self.session.worker_view, self.pane.diff
        ended = worker is not None and worker.phase not in _UNFINISHED
        return diff is None or (diff.is_live and ended)

    def why_not(self, idea: str) -> str:
        if idea in {"yes", "land"} and self._is_overtaken():
            return super().why_not(idea) or "its diff is being read"
        if idea in {"comment", "diff", "no", "no_wide", "against", "search"}:
            return self._why_not_here(idea)
        return super().why_not(idea)

    def _why_not_here(self, idea: str) -> str:
        if idea in {"no", "no_wide"}:
            return self.why_no_drop()
        if idea == "search":
            return ""  # it opens its box also while the diff is on its way: text follows it
        if idea in {"diff", "against"}:
            return "" if self.session.worker_view else "there is no worker"
        return "" if self.pane.diff else "there is no diff"

    def pointed(self, target: str, times: int) -> None:
        kind, _, rest = target.partition(":")
        if kind == "file":
            self.pane.to_file(int(rest))
        elif kind == "pane" and times > 1:
            self.do_open()

    # Comparing with something else.

    def _ways(self, here: WorkerView) -> dict[str, str]:
        """What it can be held against, and how that is called."""
        ways = {"": "what it began from", "target": "its target: what landing it would change"}
        ways |= {f"@{n}": f"attempt {n}" for n in range(here.attempt - 1, 0, -1)}
        if self.since and self.pane.diff and self.since != self.pane.diff.head:
            ways[self.since] = SINCE
        return ways

    def do_diff(self) -> None:
        """The next thing to hold it against."""
        here = self.session.worker_view
        if here is None:
            return
        ways = self._ways(here)
        order = list(ways)
        at = order.index(self.against) if self.against in order else -1
        self.against = order[(at + 1) % len(order)]
        self.say(f"held against {ways[self.against]}")

    def do_against(self) -> None:
        """Any branch, tag or commit."""
        note = "a branch, a tag, a commit, or @2 for attempt 2"
        self.write(Writing("hold it against", note, self._hold_against, key="against"))

    def _hold_against(self, revision: str) -> None:
        self.against = revision.strip()

    def do_more(self) -> None:
        wanted = self.pane.shape.context + 3
        if wanted > self.context < _MOST_CONTEXT:
            self.context = min(self.context * _WIDER, _MOST_CONTEXT)
        self.pane.set_context(wanted)

    def do_less(self) -> None:
        self.pane.set_context(self.pane.shape.context - 3)
