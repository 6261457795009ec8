"""Share between screens: the engine's bridge, what is chosen and marked, keys, colors, undo."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple, Protocol

from engine.messages.commands import Seen
from engine.messages.results import EngineView, RunView, StepView, Trying, WorkerView
from engine.phases import Phase
from tui.bridge import Bridge
from tui.ink import Role
from tui.keys import Keymap
from tui.kit.ahead import TypeAhead
from tui.kit.palette import Palette
from tui.kit.starting import Starter
from tui.kit.trials import Trials
from tui.theming import Theme
from tui.words.clean import clean, clean_name
from tui.words.comments import Comment
from tui.words.figures import how_long, lasting
from tui.words.filtering import named_filter
from tui.words.reasons import PLAYED_OVER, READ_ONLY_IDEAS
from tui.words.scene import Banner, Scene
from tui.words.standing import Band, bands_of, in_order, step_of
from tui.words.unshown import Unshown

_REST_S = 2.0
_GRACE_S = 2.0
"""An engine that is silent for less than this is not called lost."""


class Player(Protocol):
    """Play a run of the past again."""

    speed: float

    @property
    def begin(self) -> float:
        """Return when it began, in wall-clock seconds of then."""

    @property
    def end(self) -> float:
        """Return when the last thing happened in it."""

    @property
    def is_playing(self) -> bool:
        """It goes on by itself."""

    def now(self) -> float:
        """The moment that is shown."""

    def go_to(self, at: float) -> None:
        """Show another one."""

    def play_or_hold(self) -> None:
        """Hold; again: play on."""

    def step(self) -> None:
        """Hold at the next thing that happened."""

    def faster(self, by: int) -> None:
        """So many gears faster, or slower."""


_JUMP_S = 10.0
MOST_FILTERS = 20
PLAYER: dict[str, Callable[[Player], None]] = {
    "play": lambda player: player.play_or_hold(),
    "step": lambda player: player.step(),
    "back": lambda player: player.go_to(player.now() - _JUMP_S),
    "on": lambda player: player.go_to(player.now() + _JUMP_S),
    "slower": lambda player: player.faster(-1),
    "faster": lambda player: player.faster(1),
}
"""The act of each idea of a replay on its player."""


_WITH_CHANGE = {Phase.REVIEWING, Phase.CONFLICTED, Phase.LANDING, Phase.LANDED}


class Undoable(NamedTuple):
    """Something that was done, and how to take it back and do it again.

    `asks` is what is asked before it is taken back; nothing where nobody needs to be asked. What
    cannot be done again has no `redo`. `can_undo` says if it can still be taken back, at once or
    after something newer: the same may have been done by another key, or in another shell.
    """

    said: str
    undo: Callable[[], None]
    redo: Callable[[], None] | None
    asks: str = ""
    can_undo: Callable[[], bool] = lambda: True


@dataclass
class Session:
    """One console's memory. Screens read and change it; nothing of it is on disk.

    What screens draw and what keys act on is one frame: a view of the engine that `look` took. The
    cursor is a name, and nothing but a key moves it: a view in which its worker is gone leaves it
    on nothing. In another run that took the screen it comes to rest after a while (`rest`).
    """

    bridge: Bridge
    clock: Callable[[], float]
    keymap: Keymap
    themes: Mapping[str, Theme]
    palette: Palette
    is_read_only: bool = False
    is_ascii: bool = False
    can_stay_alive: bool = True
    is_alone: bool = False
    can_animate: bool = True
    key_file: str = ""
    shell: Callable[[str, str], Sequence[str]] | None = None
    program: Callable[..., Sequence[str]] | None = None
    player: Player | None = None
    starter: Starter | None = None
    trials: Trials | None = None
    run_id: str = ""
    past_run: RunView | None = None
    worker: str = ""
    diff_place: str = ""
    diff_against: str = ""
    """Diff holds the change against this when it is opened; it is forgotten when Diff is left."""
    tab: str = "log"
    wanted_there: str = ""
    marks: set[str] = field(default_factory=set)
    unshown: dict[tuple[str, str, int], Unshown] = field(default_factory=dict)
    opened_diffs: set[tuple[str, str, int]] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    looked: dict[str, str] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    named_filters: dict[str, str] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    """The cells that panes and columns were dragged to, by their names."""
    comments: list[Comment] = field(default_factory=list)
    last_comment: int = 0
    """The number of the newest comment that was sent: no other one is called so."""
    snoozed: set[str] = field(default_factory=set)
    asked_at: dict[object, float] = field(default_factory=dict)
    """The moment when each question was on screen as a whole for the first time."""
    risen: frozenset[tuple[str, str]] = frozenset()
    drafts: dict[str, str] = field(default_factory=dict)
    left_at: float | None = None
    """The time at which the console before this one was left; None where nobody knows."""
    landing: dict[str, None] = field(default_factory=dict)
    done: list[Undoable] = field(default_factory=list)
    undone: list[Undoable] = field(default_factory=list)
    ahead: TypeAhead = field(default_factory=TypeAhead)
    _since: float = 0.0
    _frame: EngineView | None = None
    _of_run: str = ""
    _held_run: str = ""
    _adrift_since: float | None = None
    _asked: tuple[object, ...] = (None, None, None, None)
    """The frame and the wishes that `_run` answers: a frame asks for its run a hundred times."""
    _run: RunView | None = None

    @property
    def view(self) -> EngineView:
        """The view that is on screen; an empty one before the first."""
        return self._frame or EngineView(repository="")

    def look(self) -> None:
        """Take the newest view for the frames from now on; the cursor stays on its worker."""
        self._frame = self.bridge.view
        run = self.run
        if run is None or not run.workers:
            return
        if not self._of_run:
            self.worker = self.worker or in_order(run)[0].worker
        elif self._of_run != run.run:  # it took the screen by itself: no key meant its workers
            self.worker = ""
            self.marks.clear()
            self._adrift_since = monotonic()
        self._of_run = run.run

    def rest(self, fingered_at: float) -> None:
        """Put the cursor on the first worker of a run that took the screen by itself.

        Until it has been seen, and no key has come, for a while, a key may be meant for the run
        that was on screen before.
        """
        run, since = self.run, self._adrift_since
        if since is None or run is None or not run.workers:
            return
        if self.worker:
            self._adrift_since = None
        elif monotonic() - max(since, fingered_at) >= _REST_S:
            self.worker, self._adrift_since = in_order(run)[0].worker, None

    def open_run(self, run: str) -> None:
        """Look at another run because a key said so, its first worker under the cursor."""
        self.run_id, self.worker, self._of_run = run, "", ""
        self.marks.clear()
        self.look()

    def hold_run(self, *, is_held: bool) -> None:
        """Keep the run that is on screen, or let a later one take its place once it has ended."""
        run = self.run
        self._held_run = run.run if is_held and run is not None else ""

    @property
    def run(self) -> RunView | None:
        """The run on screen: the one chosen or held, else the latest when first looked at."""
        asked = (self._frame, self.run_id, self._held_run, self.past_run)
        if any(new is not old for new, old in zip(asked, self._asked, strict=True)):
            self._run, self._asked = self._found(), asked
        return self._run

    def _found(self) -> RunView | None:
        by_name = {run.run: run for run in self.view.runs}
        if self.run_id not in by_name and self.past_run and self.past_run.run == self.run_id:
            return self.past_run
        return by_name.get(self.run_id) or by_name.get(self._held_run) or self._latest()

    def _latest(self) -> RunView | None:
        """The latest run; one begun elsewhere takes no key that was meant for one that goes on.

        Runs that an engine only takes up again, one after another, were there when it was looked.
        """
        known = [run for run in self.view.runs if run.started_at <= self._since]
        latest = max(known, key=lambda run: run.started_at, default=None)
        if latest is None or latest.ended_at is not None:
            self._since = self.view.at
            latest = max(self.view.runs, key=lambda run: run.started_at, default=None)
        return latest

    @property
    def worker_view(self) -> WorkerView | None:
        """The worker under the cursor; None where it rests on nothing."""
        run = self.run
        workers = run.workers if run else ()
        return next((worker for worker in workers if worker.worker == self.worker), None)

    @property
    def about(self) -> str:
        """The run and the worker whose change is looked at; empty where there is none."""
        run, worker = self.run, self.worker_view
        return f"{run.run}/{worker.worker}" if run and worker else ""

    def worker_of(self, run: str, worker: str) -> WorkerView | None:
        """Return a worker of a run that is shown; None if there is none."""
        runs = (*self.view.runs, *((self.past_run,) if self.past_run else ()))
        workers = next((one.workers for one in runs if one.run == run), ())
        return next((one for one in workers if one.worker == worker), None)

    def seen_of(self, run: str, worker: str) -> Seen | None:
        """Return the identity of a worker's change as it is on screen, for an act on it."""
        found = self.worker_of(run, worker)
        return identity_of(found) if found else None

    def has_change(self, run: str, worker: WorkerView) -> bool:
        """Say if a worker still has the change that it had; once landed, a landing is undone first.

        A run that is not shown may still have it.
        """
        now = self.worker_of(run, worker.worker)
        return now is None or (now.attempt == worker.attempt and now.phase in _WITH_CHANGE)

    @property
    def step_view(self) -> StepView | None:
        """The step of the worker under the cursor."""
        run, worker = self.run, self.worker_view
        return step_of(run, worker) if run and worker else None

    def has_opened(self, worker: WorkerView) -> bool:
        """Say if the diff of a worker's attempt has been looked at."""
        run = self.run.run if self.run else ""
        return (run, worker.worker, worker.attempt) in self.opened_diffs

    def _opened(self, run: RunView | None) -> frozenset[str]:
        """Return the workers of a run whose diff has been looked at, as it is now."""
        if run is None or not self.opened_diffs:
            return frozenset()
        return frozenset(w.worker for w in run.workers if self.has_opened(w))

    def why_forbidden(self, idea: str) -> str:
        """Return why this console refuses an idea whatever is under the cursor; empty else."""
        if self.player and idea in READ_ONLY_IDEAS | PLAYED_OVER:
            return "this is a replay"
        if idea in READ_ONLY_IDEAS and (self.is_read_only or self.view.is_read_only):
            return "this console only watches"
        return ""

    def live(self) -> int:
        """Return how many workers live, in all runs."""
        open_runs = [run for run in self.view.runs if run.ended_at is None]
        return sum(worker.is_live for run in open_runs for worker in run.workers)

    def scene(self) -> Scene:
        """Everything a screen may draw from, now."""
        now, run = self.clock(), self.run
        run_id = run.run if run else ""
        return Scene(
            view=self.view,
            run=run,
            now=now,
            cpu=self.bridge.cpu(run_id),
            told=tuple(told for told in self.bridge.told if told.run == run_id),
            marks=frozenset(self.marks),
            widths=self.widths,
            fresh=self.bridge.fresh(now) if self.can_animate else frozenset(),
            risen=frozenset(worker for of, worker in self.risen if of == run_id),
            keys=self.keymap.shown_by_idea,
            opened=self._opened(run),
            forbidden=frozenset(filter(self.why_forbidden, READ_ONLY_IDEAS | PLAYED_OVER)),
            banner=self._banner(now),
            is_alone=self.is_alone,
            is_plain=self.palette.is_plain,
        )

    def _banner(self, now: float) -> Banner | None:
        lost = self.bridge.lost_since
        if lost is not None and now - lost >= _GRACE_S:
            said = f"for {how_long(now - lost)}. Agents keep running; nothing is lost."
            return Banner("NO ENGINE", f"{said} Trying again.")
        trouble = self.run.trouble if self.run else None
        if trouble is not None:
            since = how_long(now - trouble.since)
            said = f"for {since}: {clean(trouble.what)}. {clean(trouble.help)}"
            return Banner("STALLED", said)
        violated = self._violation()
        if violated:
            return violated
        if self.player:
            return _played(self.player)
        if self.view.trying:
            return _tried(self.view.trying, self.keymap.shown_by_idea["try"])
        if self.is_read_only or self.view.is_read_only:
            return Banner("WATCHING", "You can look, but no key changes anything.", Role.WAITING)
        return None

    def _violation(self) -> Banner | None:
        for worker in self.run.workers if self.run else ():
            if worker.violations:
                said = f"{worker.worker} changed {worker.violations[0]}, which is not its own."
                return Banner("ISOLATION BROKEN", said)
        return None

    def inbox(self) -> list[WorkerView]:
        """Return who waits for a human, snoozed ones last."""
        run = self.run
        waiting = bands_of(run)[Band.NEEDS_YOU] if run else []
        return sorted(waiting, key=lambda worker: worker.worker in self.snoozed)

    def keep_filter(self, text: str) -> None:
        """Keep a filter for the next time, the latest last; `name=…` keeps it by that name."""
        name, is_named, rest = named_filter(text)
        if is_named:
            self.named_filters.pop(name, None)
            self.named_filters |= {name: rest} if rest else {}
        self.filters = [*(kept for kept in self.filters if kept != text), text][-MOST_FILTERS:]

    def has_comments(self, comments: Sequence[Comment]) -> bool:
        """Say if these are the comments: none was made, sent or answered since."""
        return self.comments == list(comments)

    @property
    def last_done(self) -> Undoable | None:
        """Return the newest thing that can still be taken back."""
        return next((one for one in reversed(self.done) if one.can_undo()), None)

    def remember(self, undoable: Undoable) -> None:
        """Something was done that can be taken back."""
        self.done.append(undoable)
        self.undone.clear()


def identity_of(worker: WorkerView, result: str = "") -> Seen:
    """Return what names a worker's change as it is shown, with the merge that is on screen."""
    tree = (worker.change.tree or "") if worker.change else ""
    return Seen(tree=tree, attempt=worker.attempt, result=result or None)


def _tried(trying: Trying, key: str) -> Banner:
    """Return which result lies in the user's checkout, and how to take it back."""
    name, where = f"{trying.worker} of {trying.run}", clean_name(trying.worktree)
    if not trying.is_whole:
        said = f"The try of {name} was interrupted. `plait try --back` restores your files. {where}"
        return Banner("TRYING", said, Role.FAILED)
    said = f"{name} is in your checkout. {key} on that worker restores your files. {where}"
    return Banner("TRYING", said, Role.WAITING)


def _played(player: Player) -> Banner:
    """Return how far a replay is, how fast it goes, or that it holds."""
    at, whole = player.now() - player.begin, player.end - player.begin
    pace = "playing" if player.speed == 1 else f"{player.speed:g} times the speed"
    pace = pace if player.is_playing else "paused"
    keys = "space plays or pauses, . next event, u U ten seconds back or forward, < > speed"
    return Banner("REPLAY", f"{lasting(at)} of {lasting(whole)}, {pace}.  {keys}", Role.WAITING)
