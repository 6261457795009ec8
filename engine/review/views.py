"""The conflicts of a worker as consoles see them: plain data.

How they come about is `engine.review.showing`.
"""

from dataclasses import dataclass

from engine.messages.results import CheckResult
from engine.review.evidence import CommitView, MergedFileView, PieceView


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
        is_edited: Its text was written by hand.
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

    @property
    def open_count(self) -> int:
        """How many files are not decided yet."""
        return sum(not file.is_resolved for file in self.files)

    def file(self, path: str) -> ConflictFileView:
        """The file of that path; KeyError where there is none."""
        for file in self.files:
            if file.path == path:
                return file
        raise KeyError(path)
