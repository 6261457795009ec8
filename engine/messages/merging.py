"""List the questions to an engine about merges, and the views that answer them: plain data.

How a conflict becomes a view is `engine.review.showing`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import ClassVar

from engine.limits import Usage
from engine.messages.commands import ResolutionAction, Seen
from engine.messages.diffs import ChangeDiff
from engine.messages.explaining import Explainer
from engine.messages.questions import Ask
from engine.messages.results import Change, CheckResult, Moment, Outcome
from engine.phases import Phase
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class CommitView:
    """A commit of one side; `at` is when its author made it."""

    id: str
    subject: str
    author: str
    at: float


@dataclass(frozen=True, kw_only=True)
class MergedFileView:
    """A file that git merged by itself.

    Attributes:
        by: `incoming` where the target had left it alone, `both` where both sides changed it.
        kind: What becomes of it for the target: A, D, M, R or T.
        near: How many changes of it lie close to one of the other side's.
        regenerate: The command that makes it anew; empty where the manifest names none.
    """

    path: str
    by: str
    kind: str
    added: int | None = None
    removed: int | None = None
    near: int = 0
    regenerate: str = ""


@dataclass(frozen=True, kw_only=True)
class PieceView:
    """A stretch of a file's merged text.

    Attributes:
        origin: Whose it is: same, target, incoming, alike, conflict (still open) or own.
        line: Where it begins in the text as it stands, counted from 1.
        old: The base's lines that gave way to it.
        hunk: The key of the conflict that it is or was.
        is_near: Git merged it by itself, and a change of the other side lies close.
    """

    origin: str
    line: int
    lines: tuple[str, ...]
    old: tuple[str, ...] = ()
    hunk: str = ""
    is_near: bool = False


@dataclass(frozen=True, kw_only=True)
class LineView:
    """A line of a version compared with the base.

    Attributes:
        sign: `+` added, `-` taken away, a blank where it is the base's.
        marks: The changed words, as places in the text.
        at: Its number within its version of the hunk (`-`: within the base), for picking it.
    """

    sign: str
    text: str
    marks: tuple[tuple[int, int], ...] = ()
    at: int = 0


@dataclass(frozen=True, kw_only=True)
class ProposalView:
    """A text offered for a hunk and why; `likely` ones belong under the cursor.

    `remembered` is the key by which an answer given before can be confirmed or forgotten.
    """

    rule: str
    text: str
    reason: str
    likely: bool = False
    same_as: str | None = None
    remembered: str | None = None


@dataclass(frozen=True, kw_only=True)
class HunkView:
    """One place where both sides changed the same lines.

    Attributes:
        target: The target's lines against the base; `incoming` likewise.
        before: Up to three lines above; `after` below.
        line: Where it begins in the target's file, counted from 1.
        choice: What is decided: a word such as `both`, `lines`, `own`; None while it is open.
        result: The text of what is decided.
        source: Where an own text came from, if nobody typed it.
        where: The heading above it (a function's first line, say), as the target has it.
        asked: Who is being asked about it now; `ask_problem` is why nobody answered.
    """

    key: str
    line: int
    base: tuple[str, ...]
    target: tuple[LineView, ...]
    incoming: tuple[LineView, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    choice: str | None = None
    result: str | None = None
    source: str = ""
    proposals: tuple[ProposalView, ...] = ()
    where: str = ""
    asked: str = ""
    ask_problem: str = ""


@dataclass(frozen=True, kw_only=True)
class OptionView:
    """A choice for a whole path: its word, a label, and what it would do."""

    choice: str
    label: str
    effect: str


@dataclass(frozen=True, kw_only=True)
class ConflictFileView:
    """One conflicted path, or (with the kind `edited`) a file set by hand beside the conflicts.

    Attributes:
        open_hunks: How many hunks are still to be decided.
        needs_whole: It is decided as a whole; likewise its mode and its place.
        whole: The option that was chosen for it; `mode` and `place` likewise.
        is_edited: Its text was written by hand, or by a command.
        regenerate: The command that makes it anew; empty where the manifest names none.
        made_by: The command that made its text, if one did.
        is_stale: That text was made for another result, so the file is open again.
        text: As it stands, open hunks between markers, for an editor; only where it was asked for.
        pieces: The same in pieces, an open hunk as its base; likewise only where it was asked for.
        change: What the one side that kept the file did to its text, with some lines round it.
        target_path: What the target calls it, None where it has no such file; so `incoming_path`.
        target_commits: The target's newest commits that touched it; so `incoming_commits`.
    """

    path: str
    kind: str
    is_resolved: bool = False
    open_hunks: int = 0
    hunks: tuple[HunkView, ...] = ()
    options: tuple[OptionView, ...] = ()
    needs_whole: bool = False
    needs_mode: bool = False
    needs_place: bool = False
    whole: str | None = None
    mode: str | None = None
    place: str | None = None
    is_edited: bool = False
    regenerate: str = ""
    made_by: str = ""
    is_stale: bool = False
    text: str | None = None
    base_path: str | None = None
    target_path: str | None = None
    incoming_path: str | None = None
    target_mode: str | None = None
    incoming_mode: str | None = None
    pieces: tuple[PieceView, ...] = ()
    change: tuple[LineView, ...] = ()
    target_commits: tuple[CommitView, ...] = ()
    incoming_commits: tuple[CommitView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AssistView:
    """An agent that is asked ahead about a merge, and what it came to.

    Attributes:
        unpriced: How many of its attempts did not say what they cost.
        spent: The part of its budget that is used up, in words; empty while none is.
    """

    by: str
    requests: int = 0
    answers: int = 0
    usd: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    spent: str = ""


@dataclass(frozen=True, kw_only=True)
class ConflictView:
    """The conflicts of a worker and what is decided about them.

    Attributes:
        target: What the two sides are called: branches or workers.
        is_of_base: What the worker builds on conflicts, rather than its change with the target.
        is_resolved: Nothing is open; `FinishResolving` goes on.
        is_finished: It went on, with `tree`.
        tree: The exact tree that would be landed (or built on), once everything is decided.
        check: The newest check of that tree; None where it has not been checked.
        clean: How many files git merged by itself; `merged` says which.
        looked_at: The file that was asked for by its path, conflicted or not.
        decisions: How many steps there are to undo.
        target_commits: What the target has that the other side has not; so `incoming_commits`.
        opened: Paths whose decisions fell away because the sides have changed since.
        moved: The merge was made again because the target is another than it was.
        doing: What git is in the middle of, where it is a merge of the user's own.
        next_step: The command that goes on from there; it is offered, never run.
        to_look_at: Files set by hand that nobody has compared with the merge made again.
        problem: Why the decisions, although complete, make no tree.
        is_thinking: Of very many hunks some have no proposals yet: the next look brings more.
        caveat: What git left out of this merge, because it would have died of it; else empty.
        assist: Who is asked ahead, if the manifest names an agent for that.
    """

    run: str
    worker: str
    attempt: int
    target: str
    incoming: str
    files: tuple[ConflictFileView, ...] = ()
    is_of_base: bool = False
    is_resolved: bool = False
    is_finished: bool = False
    can_undo: bool = False
    can_redo: bool = False
    tree: str | None = None
    check: CheckResult | None = None
    clean: int = 0
    opened: tuple[str, ...] = ()
    to_look_at: tuple[str, ...] = ()
    problem: str = ""
    is_thinking: bool = False
    merged: tuple[MergedFileView, ...] = ()
    looked_at: ConflictFileView | None = None
    decisions: int = 0
    target_commits: tuple[CommitView, ...] = ()
    incoming_commits: tuple[CommitView, ...] = ()
    moved: bool = False
    doing: str = ""
    next_step: str = ""
    caveat: str = ""
    assist: AssistView | None = None

    @property
    def open_count(self) -> int:
        """Return how many files are not decided yet."""
        return sum(not file.is_resolved for file in self.files)

    def file(self, path: str) -> ConflictFileView:
        """Return the file of that path; raise KeyError if there is none."""
        for file in self.files:
            if file.path == path:
                return file
        raise KeyError(path)


@dataclass(frozen=True, kw_only=True)
class BatchCheck:
    """The check's result on several changes together.

    Attributes:
        fits: Those that merge cleanly, one after the other; the rest conflict.
        tree: What they make of the target.
        check: What it says of that tree; None where nothing fits or there is no check.
    """

    fits: tuple[str, ...] = ()
    tree: str | None = None
    check: CheckResult | None = None


class LandingOrder(StrEnum):
    """The order in which several changes are landed."""

    PLAN = "plan"
    FEWEST_CONFLICTS = "fewest-conflicts"


@dataclass(frozen=True, kw_only=True)
class PlannedLanding:
    """A change in its place of the queue, and the conflicts it is expected to meet there."""

    worker: str
    paths: tuple[str, ...] = ()
    hunks: int = 0


@dataclass(frozen=True, kw_only=True)
class CandidateRow:
    """One candidate in figures.

    Attributes:
        hunks: How many hunks its change has.
        agreed: How many of them another candidate made alike.
        is_comparable: It began where the others did, so its hunks can be woven with theirs.
    """

    worker: str
    phase: Phase
    outcome: Outcome
    label: str = ""
    agent: str = ""
    check: CheckResult | None = None
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    worked_s: float = 0.0
    usage: Usage = field(default_factory=Usage)
    hunks: int = 0
    agreed: int = 0
    is_comparable: bool = True

    @property
    def consensus(self) -> float:
        """Return the share of its hunks that another candidate made alike."""
        return self.agreed / self.hunks if self.hunks else 0.0


@dataclass(frozen=True, kw_only=True)
class CandidateHunkView:
    """One change that one or more candidates made; the same spot means: one of them.

    Attributes:
        line: Where it begins in the base's file, counted from 1.
        old: The base's lines that give way to `new`; empty where the whole file changes.
        candidates: Who made exactly this change; `alike` also those who made it but for blanks.
        what: What it is if not lines: `created`, `deleted`, `mode 100755`, `whole file`.
        before: Up to three lines of the base's file above it; `after` those below it.
    """

    key: str
    path: str
    spot: int
    line: int
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    what: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CandidateTable:
    """The candidates of a step: figures of each, and every hunk of all.

    Attributes:
        explainer: Who can explain them; None where the manifest names nobody.
    """

    run: str
    step: str
    rows: tuple[CandidateRow, ...]
    hunks: tuple[CandidateHunkView, ...] = ()
    explainer: Explainer | None = None


@dataclass(frozen=True, kw_only=True)
class Wove:
    """The result of weaving.

    Attributes:
        worker: The composite, which waits for review; None where it was not accepted.
        tree: What the chosen hunks make; None where they cannot stand together.
        taken: How many hunks are whose.
        reason: Why there is no composite.
    """

    worker: str | None = None
    tree: str | None = None
    check: CheckResult | None = None
    taken: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class ReadConflicts(Ask[ConflictView]):
    """Show a worker's conflicts and decisions; with the text of one file if it is named."""

    run: str
    worker: str
    path: str = ""


@dataclass(frozen=True)
class DecideConflict(Ask[ConflictView]):
    """Decide something about a worker's conflicts, or go on when all is decided."""

    changes: ClassVar[bool] = True
    run: str
    worker: str
    action: ResolutionAction


@dataclass(frozen=True, kw_only=True)
class FileRisk:
    """A file of a change, and why it deserves a look; a higher score is looked at first."""

    path: str
    score: float = 0.0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadRisks(Ask[tuple[FileRisk, ...]]):
    """List the files of a worker's change, those first that deserve the first look."""

    run: str
    worker: str


@dataclass(frozen=True)
class CheckWorker(Ask[CheckResult]):
    """Run the check again: on the exact tree that would land now, or on the worker's own."""

    changes: ClassVar[bool] = True
    run: str
    worker: str
    is_own: bool = False
    seen: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class MergedResult:
    """The files that the target would hold if a worker landed now; its objects are written.

    Attributes:
        target: The branch that it would land on.
        onto: The commit at which that branch stands.
        tree: The files.
    """

    run: str
    worker: str
    attempt: int
    target: str
    onto: str
    tree: str


@dataclass(frozen=True)
class ReadResult(Ask[MergedResult]):
    """Merge a worker's change with its target, as a landing would, and keep the result's objects.

    Conflicts that a human has decided are decided in it.
    """

    changes: ClassVar[bool] = True
    run: str
    worker: str
    seen: Seen | None = None


@dataclass(frozen=True)
class CheckTogether(Ask[BatchCheck]):
    """Run the check once, on what the target would be with all these changes that fit.

    Where it passes, each of them lands on just these trees without being checked alone; the
    commits say that they were checked together.
    """

    changes: ClassVar[bool] = True
    run: str
    workers: Sequence[str]


@dataclass(frozen=True)
class PlanLandings(Ask[tuple[PlannedLanding, ...]]):
    """Find the order in which workers land, with the conflicts expected of each."""

    run: str
    workers: Sequence[str]
    by: LandingOrder = LandingOrder.PLAN


@dataclass(frozen=True)
class ListCandidates(Ask[CandidateTable]):
    """List a step's candidates beside each other: figures, consensus, every hunk."""

    run: str
    step: str


@dataclass(frozen=True)
class CompareWorkers(Ask[ChangeDiff]):
    """Compare the changes of any two workers."""

    run: str
    one: str
    other: str


@dataclass(frozen=True)
class ListMoments(Ask[tuple[Moment, ...]]):
    """List the points in time that a worker can be begun again from, oldest first."""

    run: str
    worker: str


@dataclass(frozen=True)
class MakeCheckpoint(Ask[Moment]):
    """Keep a running worker's files as they are now, to begin again from."""

    changes: ClassVar[bool] = True
    run: str
    worker: str


@dataclass(frozen=True)
class LeaveOutHunks(Ask[Change]):
    """Let exactly these hunks stay behind when a change lands; the answer is what is left."""

    changes: ClassVar[bool] = True
    run: str
    worker: str
    hunks: Sequence[str]
    seen: Seen | None = None


@dataclass(frozen=True, kw_only=True)
class FileText:
    """A file of a change as a text; without one it is deleted. Bytes that are no UTF-8 survive."""

    path: str
    text: str | None = None
    mode: str = "100644"


@dataclass(frozen=True)
class ReadText(Ask[FileText]):
    """Read a file of what would land of a worker, for an editor."""

    run: str
    worker: str
    path: str


@dataclass(frozen=True)
class EditChange(Ask[Change]):
    """Put another text into a file of a change that waits for review; the answer is the change."""

    changes: ClassVar[bool] = True
    run: str
    worker: str
    file: FileText
    seen: Seen | None = None


@dataclass(frozen=True)
class ReadComposite(Ask[ChangeDiff]):
    """Show what hunks of a step's candidates make together, against where these began.

    It keeps the objects of the result, and makes no composite.
    """

    changes: ClassVar[bool] = True
    run: str
    step: str
    hunks: Sequence[str]


@dataclass(frozen=True)
class WeaveHunks(Ask[Wove]):
    """Make a composite of hunks of a step's candidates, check it, and let it be reviewed.

    Attributes:
        seen: What was on screen of each candidate.
    """

    changes: ClassVar[bool] = True
    run: str
    step: str
    hunks: Sequence[str]
    seen: Mapping[str, Seen] | None = None
