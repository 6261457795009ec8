"""A console's other side with conflicts: a real merge session behind a scripted view."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import anyio

from engine.errors import WorkspaceError
from engine.limits import Usage
from engine.merge import (
    ConflictHunk,
    ConflictKind,
    FileConflict,
    FileSide,
    HunkKey,
    Memory,
    Proposal,
    ResolutionSession,
    SideNames,
    basis_of,
    beside,
    propose,
    stale,
)
from engine.messages import commands as c
from engine.messages.explaining import Explained, Explainer
from engine.messages.merging import (
    CandidateHunkView,
    CandidateRow,
    CandidateTable,
    ConflictFileView,
    ConflictView,
    FileRisk,
    LandingOrder,
    PlannedLanding,
    Wove,
)
from engine.messages.results import Change, CheckResult, EngineView, Outcome, StepView
from engine.phases import Phase
from engine.plan.model import ReviewRules
from engine.review.actions import decided
from engine.review.showing import Lens, file_views
from tests.support.world import NOW, FakePort, changed, csvlite, worker

WHO = "port/worker_1"
NAMES = SideNames("main", WHO)
_IO = '''"""Blocks of text, read and written."""
import io
ENCODING = "utf-8"


def read_block(f, size=None):
    """Return the next block, or None at the end."""
    data = f.read()
    if not data:
        return None
    return data.decode(ENCODING)


def write_block(f, text: str) -> int:
    data = text.encode(ENCODING)
    return f.write(data)


def close_all(files) -> None:
    for f in files:
        f.close()
'''
_READ = ("    data = f.read()\n", "    data = f.read(size or MAX_BLOCK)\n")
_STREAM = '    data = b"".join(iter_chunks(f))\n'
_WRITE = "    return f.write(data)\n"


def _side(path: str, text: str | bytes | None, mode: str = "100644", blob: str = "") -> FileSide:
    content = text.encode() if isinstance(text, str) else text
    name = blob or blake2b((content or b"") + mode.encode(), digest_size=20).hexdigest()
    return FileSide(path=path.encode(), mode=mode, blob=name, content=content)


def conflict(
    path: str, kind: ConflictKind, *sides: FileSide | None, **more: object
) -> FileConflict:
    """A conflict of base, target and incoming, exactly as git's reader makes it."""
    base, target, incoming = sides
    made = FileConflict(
        path=path.encode(),
        kind=kind,
        base=base,
        target=target,
        incoming=incoming,
        names=NAMES,
        **more,  # type: ignore[arg-type]
    )
    return made.told_exactly()


def texts(path: str, base: str, target: str, incoming: str) -> FileConflict:
    """A conflict of three texts."""
    sides = (_side(path, text) for text in (base, target, incoming))
    return conflict(path, ConflictKind.CONTENTS, *sides)


def io_py() -> FileConflict:
    """Two conflicts in one file, of which nothing can be combined."""
    path = "src/csvlite/io.py"
    ours = _IO.replace(*_READ).replace(_WRITE, "    check(data)\n" + _WRITE)
    theirs = _IO.replace(_READ[0], _STREAM)
    theirs = theirs.replace(_WRITE, "    return sum(f.write(c) for c in chunks(data))\n")
    return texts(path, _IO, ours, theirs)


def imports() -> FileConflict:
    """Both sides add a name to one import: a proposal is likely right."""
    lines = "import io\n\nfrom csvlite.core import {}\n\n__all__ = []\n"
    return texts(
        "src/csvlite/errors.py",
        lines.format("ParseError, Span"),
        lines.format("LimitError, ParseError, Span"),
        lines.format("ParseError, Span, StreamError"),
    )


def _deleted() -> FileConflict:
    path, text = "src/csvlite/compat.py", "def open_text(path):\n    return io.open(path)\n"
    theirs = text.replace("(path)\n", "(path, buffering=MAX_BLOCK)\n")
    moved = _side("src/csvlite/_compat.py", text)
    return conflict(
        path,
        ConflictKind.MODIFY_DELETE,
        _side(path, text),
        None,
        _side(path, theirs),
        moved_to=moved,
    )


def _binary() -> FileConflict:
    path = "docs/logo.png"
    sides = (_side(path, b"\x89PNG\0" + bytes([n]) * 400 * n) for n in (1, 2, 3))
    return conflict(path, ConflictKind.BINARY, *sides)


def _mode() -> FileConflict:
    path, text = "run.sh", "#!/bin/sh\nexec plait\n"
    sides = (_side(path, text, mode) for mode in ("100644", "100755", "100644"))
    made = conflict(path, ConflictKind.ADD_ADD, None, *list(sides)[1:])
    return replace(made, kind=ConflictKind.MODE)


def _renamed() -> FileConflict:
    text = "a = 1\nb = 2\n"
    return conflict(
        "reader.py",
        ConflictKind.RENAME_RENAME,
        _side("reader.py", text),
        _side("readers.py", text),
        _side("reading.py", text),
    )


def _moved_and_deleted() -> FileConflict:
    text = "a = 1\nb = 2\n"
    base, target = _side("old.py", text), _side("new.py", text)
    return conflict("new.py", ConflictKind.RENAME_DELETE, base, target, None)


def _link() -> FileConflict:
    sides = (_side("data", name, "120000") for name in ("data-1", "data-2", "data-3"))
    return conflict("data", ConflictKind.SYMLINK, *sides)


def _submodule() -> FileConflict:
    sides = (_side("vendor/lib", None, "160000", digit * 40) for digit in "abc")
    return conflict("vendor/lib", ConflictKind.SUBMODULE, *sides)


def _folder() -> FileConflict:
    file = _side("data", "one\n")
    return conflict(
        "data",
        ConflictKind.DIRECTORY_FILE,
        None,
        file,
        None,
        below=(b"data/a.csv", b"data/b.csv"),
        free_path=b"data~main",
    )


def _types() -> FileConflict:
    sides = (_side("tool", "x\n"), _side("tool", "y\n"), _side("tool", "bin/tool", "120000"))
    return conflict("tool", ConflictKind.DISTINCT_TYPES, *sides)


def _line_ends() -> FileConflict:
    text = "one\ntwo\nthree\n"
    theirs = text.replace("\n", "\r\n").replace("three", "drei")
    return texts("notes.txt", text, text.replace("one", "eins"), theirs)


def _both_added() -> FileConflict:
    path = "tests/test_nested.py"
    sides = (_side(path, f"def test_{name}():\n    assert parse()\n") for name in ("a", "b"))
    return conflict(path, ConflictKind.ADD_ADD, None, *sides)


KINDS: dict[str, Callable[[], FileConflict]] = {
    "contents": io_py,
    "both added": _both_added,
    "deleted and changed": _deleted,
    "binary": _binary,
    "mode": _mode,
    "renamed twice": _renamed,
    "renamed and deleted": _moved_and_deleted,
    "link": _link,
    "submodule": _submodule,
    "directory and file": _folder,
    "types": _types,
    "line ends": _line_ends,
}
"""One conflict of every kind that has a card of its own."""


def conflicts() -> tuple[FileConflict, ...]:
    """The conflicts of the pictures."""
    return (io_py(), imports(), _deleted(), _binary())


def conflicted_view(**more: object) -> EngineView:
    """The run of the pictures with a worker whose change conflicts."""
    known = {"phase": Phase.CONFLICTED, "conflicts": ("src/csvlite/io.py",), "check": None}
    known |= {"phase_since": NOW - 130, "prompt": "Port io.py to the streaming API."}
    view = changed(csvlite(), WHO, **{**known, **more})
    return changed(view, "design/worker_1", prompt="Limit the block size.", phase_since=NOW - 360)


@dataclass
class ReviewPort(FakePort):
    """A port that has conflicts and candidates, decided by the engine's own rules."""

    files: Sequence[FileConflict] = field(default_factory=conflicts)
    session: ResolutionSession = field(init=False)
    actions: list[c.ResolutionAction] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    checked: CheckResult | None = None
    will_pass: bool = True
    is_of_base: bool = False
    is_finished: bool = False
    is_overtaken: bool = False
    wove: list[tuple[str, ...]] = field(default_factory=list)
    mixed: list[tuple[str, ...]] = field(default_factory=list)
    more: dict[str, object] = field(default_factory=dict)
    looked_at: ConflictFileView | None = None
    order: tuple[PlannedLanding, ...] = ()
    offers: dict[HunkKey, tuple[Proposal, ...]] = field(default_factory=dict)
    kept: dict[bytes, tuple[object, ConflictFileView]] = field(default_factory=dict)
    rules: ReviewRules = field(default_factory=ReviewRules)
    risky: tuple[FileRisk, ...] = ()
    explainer: Explainer | None = None
    explained: Explained = field(default_factory=Explained)
    is_explained: anyio.Event = field(default_factory=anyio.Event)
    explanations: list[bool] = field(default_factory=list)
    problem: str = ""
    made: bytes | None = None
    """The text that a command makes; None where it fails."""

    def __post_init__(self) -> None:
        self.session = ResolutionSession(tuple(self.files))

    async def conflicts(self, run: str, worker: str, path: str = "") -> ConflictView:
        self._fail_if_gone()
        if worker != WHO:
            raise WorkspaceError(f"{worker} has no conflicts to resolve")
        return self.view_of(run, path)

    async def resolve(self, run: str, worker: str, action: c.ResolutionAction) -> ConflictView:
        self._fail_if_gone()
        del worker
        self.actions.append(action)
        if isinstance(action, c.FinishResolving) and self.is_overtaken:
            self.session = self.session.undo()  # as the merge made again, with that open
            return replace(self.view_of(run, ""), moved=True)
        if isinstance(action, c.FinishResolving):
            self.is_finished = True
            return replace(self.view_of(run, ""), is_finished=True)
        if isinstance(action, c.ForgetAnswer | c.ConfirmAnswer):
            self.offers.clear()
        elif isinstance(action, c.Regenerate):
            self.session = self._made_anew(action.path)
        else:
            self.session = decided(self.session, action)
        return self.view_of(run, "")

    async def check(
        self, run: str, worker: str, *, is_own: bool = False, seen: c.Seen | None = None
    ) -> CheckResult:
        del run, worker, is_own, seen
        summary = "passed" if self.will_pass else "the check exited with 1\nFAILED test_io"
        self.checked = CheckResult(
            command="pytest", passed=self.will_pass, tree=self.tree, summary=summary
        )
        return self.checked

    def _is_generated(self, path: bytes) -> bool:
        return bool(self.rules.command_for(os.fsdecode(path)))

    def _made_anew(self, path: str) -> ResolutionSession:
        command = self.rules.command_for(path)
        if self.made is None:
            raise WorkspaceError(f"`{command}` ended with exit code 3: no solution")
        basis = basis_of("", beside(self.session, self._is_generated))
        return self.session.made(os.fsencode(path), self.made, by=command, basis=basis)

    @property
    def stale(self) -> frozenset[bytes]:
        """Return the files that were made for another result."""
        return stale(self.session, self._is_generated, "")

    def _offered(self, hunk: ConflictHunk) -> tuple[Proposal, ...]:
        """Return what the engine offers too: thought out once."""
        if hunk.key not in self.offers:
            self.offers[hunk.key] = propose(hunk, memory=self.memory)
        return self.offers[hunk.key]

    @property
    def tree(self) -> str | None:
        """The tree as it is decided so far, where all is decided."""
        if not self.session.is_resolved or self.stale:
            return None
        return blake2b(repr(self.session.results()).encode(), digest_size=20).hexdigest()

    def view_of(self, run: str = "", path: str = "") -> ConflictView:
        tree = self.tree
        known = self.checked if self.checked and self.checked.tree == tree else None
        return ConflictView(
            run=run,
            worker=WHO,
            attempt=1,
            target=NAMES.target,
            incoming=NAMES.incoming,
            files=file_views(
                self.session,
                Lens(
                    propose=lambda _, hunk: self._offered(hunk),
                    kept=self.kept,
                    with_text=path.encode(errors="surrogateescape") or None,
                    rules=self.rules,
                    stale=self.stale,
                ),
            ),
            is_of_base=self.is_of_base,
            is_resolved=tree is not None,
            can_undo=bool(self.session.journal),
            can_redo=bool(self.session.undone),
            tree=tree,
            check=known,
            clean=14,
            looked_at=self.looked_at if path else None,
            decisions=len(self.session.journal),
            **self.more,  # type: ignore[arg-type]
        )

    async def landing_order(
        self, run: str, workers: Sequence[str], by: LandingOrder = LandingOrder.PLAN
    ) -> tuple[PlannedLanding, ...]:
        del run, workers, by
        return self.order

    async def risks(self, run: str, worker: str) -> tuple[FileRisk, ...]:
        del run, worker
        self._fail_if_gone()
        return self.risky

    async def candidates(self, run: str, step: str) -> CandidateTable:
        self._fail_if_gone()
        return replace(candidates(run, step), explainer=self.explainer)

    async def explain(self, run: str, step: str, stops: bool = False) -> Explained:  # noqa: FBT001, FBT002 - as the question has it
        """Answer once the question is stopped or its answer is there."""
        del run, step
        self._fail_if_gone()
        self.explanations.append(stops)
        if stops:
            self.explained = Explained(is_stopped=True)
            self.is_explained.set()
        await self.is_explained.wait()
        if self.problem:
            raise WorkspaceError(self.problem)
        return self.explained

    async def compare(self, run: str, one: str, other: str) -> object:
        del run, other
        return replace(self.diffs["implement/worker_1"], against=one)

    async def composite(self, run: str, step: str, hunks: Sequence[str]) -> object:
        del run
        self.mixed.append(tuple(hunks))
        return replace(self.diffs["implement/worker_1"], against=f"where {step} began")

    async def weave(
        self,
        run: str,
        step: str,
        hunks: Sequence[str],
        *,
        seen: Mapping[str, c.Seen] | None = None,
    ) -> Wove:
        del run, seen
        self.wove.append(tuple(hunks))
        check = CheckResult(command="pytest", passed=self.will_pass, summary="214 passed")
        return Wove(worker=f"{step}/woven", tree="ab", check=check, taken={"implement/worker_1": 2})


def candidates(run: str, step: str) -> CandidateTable:
    """Three candidates of a step, some of whose hunks are alike."""
    names = [f"{step}/worker_{number}" for number in (1, 2, 3)]
    one, two, three = names
    rows = (
        CandidateRow(
            worker=one,
            phase=Phase.REVIEWING,
            outcome=Outcome.SUCCESS,
            agent="claude",
            check=CheckResult(command="pytest", passed=True, summary="214 passed"),
            files=8,
            insertions=88,
            deletions=20,
            worked_s=372,
            usage=Usage(usd=0.58, input_tokens=40_000, output_tokens=4_000),
            hunks=4,
            agreed=2,
        ),
        CandidateRow(
            worker=two,
            phase=Phase.FAILED,
            outcome=Outcome.FAILED,
            agent="claude",
            check=CheckResult(command="pytest", passed=False, summary="2 failed of 216"),
            files=2,
            insertions=41,
            deletions=3,
            worked_s=182,
            usage=Usage(usd=0.31, input_tokens=20_000, output_tokens=2_400),
            hunks=3,
            agreed=2,
        ),
        CandidateRow(
            worker=three,
            phase=Phase.REVIEWING,
            outcome=Outcome.SUCCESS,
            agent="codex",
            check=CheckResult(command="pytest", passed=True, summary="217 passed"),
            files=9,
            insertions=203,
            deletions=61,
            worked_s=405,
            usage=Usage(usd=0.60, input_tokens=58_000, output_tokens=2_100),
            hunks=4,
            agreed=1,
        ),
    )
    reader, io = "src/csvlite/reader.py", "src/csvlite/io.py"
    old = ("        for line in self._blocks():", "            self.line_no += 1")
    hunks = (
        _candidate("k1", reader, 0, (one, two), ("def _closing_quote(self):", "    return 1")),
        _candidate("k2", reader, 0, (three,), ("def _closing_quote(self, at):", "    return at")),
        _candidate("k3", reader, 1, (one, two, three), ("import re",)),
        _candidate("k4", reader, 2, (one,), (old[0], "            self.line_no += n"), old),
        _candidate(
            "k5",
            reader,
            2,
            (three,),
            (old[0], '            self.line_no += line.count("\\n")'),
            old,
        ),
        _candidate("k6", io, 3, (two,), ("    data = f.read(MAX)",), ("    data = f.read()",)),
        _candidate("k7", "tests/test_nested.py", 4, (one,), what="created"),
        _candidate("k8", "tests/test_nested.py", 4, (three,), what="created"),
    )
    return CandidateTable(run=run, step=step, rows=rows, hunks=hunks)


def _candidate(
    key: str,
    path: str,
    spot: int,
    who: tuple[str, ...],
    *code: tuple[str, ...],
    what: str = "",
) -> CandidateHunkView:
    new, old = (*code, (), ())[:2]
    return CandidateHunkView(
        key=key,
        path=path,
        spot=spot,
        line=40 * spot + 3,
        old=tuple(f"{line}\n" for line in old),
        new=tuple(f"{line}\n" for line in new),
        candidates=who,
        alike=who,
        what=what,
        before=() if what else ("    # above it\n",),
        after=() if what else ("    # below it\n",),
    )


def choosing_view() -> EngineView:
    """The run of the pictures while one of three candidates is to be chosen."""
    view = csvlite()
    rows = candidates("2f1c", "implement").rows
    workers = tuple(
        worker(
            row.worker,
            row.phase,
            agent=row.agent,
            check=row.check,
            usage=row.usage,
            change=Change(head="c1", base="b1", files=row.files, insertions=row.insertions),
            worked_s=row.worked_s,
            phase_since=NOW - 100,
            outcome=row.outcome,
        )
        for row in rows
    )

    def with_choice(step: StepView) -> StepView:
        if step.name != "implement":
            return step
        return replace(step, workers=workers, is_choice_due=True)

    run = view.runs[0]
    return replace(view, runs=(replace(run, steps=tuple(map(with_choice, run.steps))),))
