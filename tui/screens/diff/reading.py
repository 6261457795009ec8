"""Read a diff from the engine: whose, against what, with how many lines round each change."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from engine.messages.diffs import ChangeDiff
from engine.messages.results import WorkerView
from engine.phases import Phase
from tui.kit.screen import Board, Controller
from tui.kit.textbox import Writing
from tui.screens.diff.decided import decided_places, who_decided
from tui.screens.diff.ordering import Ordering
from tui.screens.diff.outlining import Outlining
from tui.screens.diff.pane import DiffPane
from tui.words.unshown import unshown_of

_LIVE_EVERY_S = 2.0
_UNFINISHED = frozenset({Phase.RUNNING, Phase.STOPPING, Phase.COLLECTING})
_WIDER = 8
"""So many times more lines round a change are asked for at once where more are wanted."""
_MOST_CONTEXT = 1000
SINCE = "what you saw last"
_Places = Sequence[tuple[int, str]]


class _Wanted(NamedTuple):
    """Name the diff on screen; another one is asked for when this changes."""

    run: str = ""
    worker: str = ""
    attempt: int = 0
    against: str = ""
    context: int = 3
    change: str = ""
    beat: int = 0

    @property
    def of(self) -> tuple[str, str, int, str]:
        """Return what makes it another diff, rather than the same one grown."""
        return self.run, self.worker, self.attempt, self.against


class Reading(Controller):
    """Ask for the diff when it is another, or has grown; compare with this and that."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.pane = DiffPane(seen=self.session.seen, comments=self.session.comments)
        self.pane.shape.key_to_apply = self.screen.key_of("yes")
        self.against = ""
        self.reason = ""
        self._since = ""
        self._context = 3
        self._loaded = _Wanted()
        self._loading: _Wanted | None = None

    def arrive(self) -> None:
        """Begin with another change; what has come since the last look can be asked for."""
        self._since = self.session.looked.get(self.session.about, "")
        self.against = self.session.diff_against

    def leave(self) -> None:
        """Keep in mind what is on screen now: it was seen last."""
        self.session.diff_against = ""
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
        decided = self.session.bridge.decided.get((run, here.worker), 0)
        moved = f"{change}{here.phase}{here.error}{here.behind}{decided}"
        return _Wanted(run, here.worker, here.attempt, self.against, self._context, moved, beat)

    def _is_still(self, here: WorkerView) -> bool:
        """Say if nothing was heard of it since the last look."""
        last = here.last_output_at
        return last is not None and last < self._loaded.beat * _LIVE_EVERY_S

    def load_if_moved(self) -> None:
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
        self.pane.shape.about = self.session.about
        self.screen.begin(partial(self._load, wanted), group="diff", exclusive=True)

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
        told = await self._told(wanted)
        risks = await self.screen.does(Ordering).risks(wanted.run, wanted.worker, found)
        if wanted != self._loaded:
            return
        self.pane.shape.told, self.pane.shape.decided = told
        if isinstance(found, str):
            self.reason = found
        else:
            self.pane.shape.risks = risks
            is_since = wanted.against and wanted.against == self._since
            self.pane.show(_called(found, SINCE) if is_since else found)
            at = wanted.run, wanted.worker, wanted.attempt
            self.session.opened_diffs.add(at)
            if not wanted.against:
                self.session.unshown[at] = unshown_of(found)
            if self.session.diff_place:
                self.pane.to_place(self.session.diff_place)
                self.session.diff_place = ""
        self.screen.draw()
        if not isinstance(found, str):
            await self._tell_fates(wanted, found)

    async def _tell_fates(self, wanted: _Wanted, diff: ChangeDiff) -> None:
        """Say what became of functions, if that is still the diff on screen."""
        told = await self.screen.does(Outlining).fates(
            wanted.run,
            wanted.worker,
            diff,
            attempt=wanted.attempt or None,
            against=wanted.against,
        )
        if told and wanted == self._loaded:
            self.pane.tell(told)
            self.screen.draw()

    async def _told(self, wanted: _Wanted) -> tuple[Mapping[str, str], Mapping[str, _Places]]:
        """Return who decided what, where the diff is that of a merge with conflicts."""
        here = self.session.worker_view
        if here is None or here.phase is not Phase.CONFLICTED or wanted.against != "target":
            return {}, {}
        view = await self.session.bridge.conflicts(wanted.run, wanted.worker)
        return ({}, {}) if isinstance(view, str) else (who_decided(view), decided_places(view))

    @property
    def attempt(self) -> int | None:
        """Return whose diff is on screen, of the attempts; None where there is only one."""
        return self._loaded.attempt or None

    def is_overtaken(self) -> bool:
        """Say if the diff shows a tree that was still written to, and the worker has ended."""
        worker, diff = self.session.worker_view, self.pane.diff
        ended = worker is not None and worker.phase not in _UNFINISHED
        return diff is None or (diff.is_live and ended)

    def _ways(self, here: WorkerView) -> dict[str, str]:
        """Return what it can be held against, and how that is called."""
        ways = {"": "its base", "target": "its target: what its landing would change"}
        ways |= {f"@{n}": f"attempt {n}" for n in range(here.attempt - 1, 0, -1)}
        if self._since and self.pane.diff and self._since != self.pane.diff.head:
            ways[self._since] = SINCE
        return ways

    def do_diff(self) -> None:
        """Hold it against the next thing."""
        here = self.session.worker_view
        if here is None:
            return
        ways = self._ways(here)
        order = list(ways)
        at = order.index(self.against) if self.against in order else -1
        self.against = order[(at + 1) % len(order)]
        self.screen.say(f"compared with {ways[self.against]}")

    def do_against(self) -> None:
        """Hold it against any branch, tag or commit."""
        note = "a branch, a tag, a commit, or @2 for attempt 2"
        self.screen.write(Writing("compare with", note, self._hold_against, key="against"))

    def _hold_against(self, revision: str) -> None:
        self.against = revision.strip()

    def do_more(self) -> None:
        wanted = self.pane.shape.context + 3
        if wanted > self._context < _MOST_CONTEXT:
            self._context = min(self._context * _WIDER, _MOST_CONTEXT)
        self.pane.set_context(wanted)

    def do_less(self) -> None:
        self.pane.set_context(self.pane.shape.context - 3)


def _called(diff: ChangeDiff, against: str) -> ChangeDiff:
    """Return a diff with another name for its old side; all that is known of it stays."""
    named = replace(diff)
    vars(named).update({**vars(diff), "against": against})
    return named
