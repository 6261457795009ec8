"""Hold one merge under review: its conflicts, its decisions, its offers and its view.

Whose merge it is, where its decisions are kept and what becomes of the result is for others.
"""

import os
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self

from anyio import to_thread

from engine.errors import WorkspaceError, whole_of
from engine.git.merge3 import MergedTrees, Merger, Sides
from engine.git.runner import Repo
from engine.merge import (
    ConflictHunk,
    FileResult,
    Formatted,
    HunkKey,
    Idea,
    Lessons,
    Memory,
    Origin,
    OutsideAnswer,
    Pick,
    Piece,
    Proposal,
    ResolutionSession,
    SideNames,
    TextMerge,
    basis_of,
    beside,
    best,
    formatted_ideas,
    lessons,
    propose,
    reads_still,
    stale,
    with_lessons,
)
from engine.messages import commands as c
from engine.messages.merging import ConflictFileView, ConflictView, MergedFileView
from engine.plan.model import ReviewRules
from engine.review.actions import decided
from engine.review.assisting import Assisted
from engine.review.conflicts import Conflicts, read_conflicts
from engine.review.evidence import (
    Evidence,
    commits_of,
    merged_files,
    merged_text,
    piece_views,
    whole_piece,
)
from engine.review.inquiry import Inquiry, inquiry
from engine.review.reading import entries_of
from engine.review.results import result_tree
from engine.review.showing import Lens, file_views, shown

_THINKS_S = 0.3


@dataclass(frozen=True, kw_only=True)
class Unformatted:
    """The base's, the target's and the incoming text of a file that a command is to format."""

    path: bytes
    command: str
    texts: tuple[bytes, bytes, bytes]


@dataclass(frozen=True, kw_only=True)
class Regeneration:
    """One file that a command is to make anew.

    Attributes:
        tree: The rest of the result, with every generated file as the target has it.
        parent: The commit that this tree would stand on.
        basis: The name of what it is made from.
        mode: The file's mode in git's merge; empty where the file is not in it.
    """

    path: bytes
    command: str
    tree: str
    parent: str
    basis: str
    mode: str = ""


@dataclass(kw_only=True)
class Review:
    """A merge and what is decided about it, as long as its sides stay what they are.

    Attributes:
        opened: Paths whose decisions fell away when the merge was made again.
        moved: It was made again because a side is another than it was when decisions were made.
        asking: Who is being asked about a hunk.
        problems: Why nobody answered about a hunk.
        picked_before: What was picked last in the merges before this one.
        rules: The commands that help.
        formatted: The files that a formatter was asked about.
        assisted: The account of who is asked ahead.
        known_stale: The decisions that `stale` was computed for last, and what it was.
    """

    repo: Repo
    sides: Sides
    names: SideNames
    merged: MergedTrees
    conflicts: Conflicts
    session: ResolutionSession
    rules: ReviewRules = field(default_factory=ReviewRules)
    evidence: Evidence = field(default_factory=Evidence)
    opened: tuple[str, ...] = ()
    to_look_at: tuple[str, ...] = ()
    moved: bool = False
    trees: dict[tuple[object, ...], str] = field(default_factory=dict)
    offers: dict[HunkKey, tuple[Proposal, ...]] = field(default_factory=dict)
    answers: dict[HunkKey, tuple[OutsideAnswer, ...]] = field(default_factory=dict)
    asking: dict[HunkKey, str] = field(default_factory=dict)
    problems: dict[HunkKey, str] = field(default_factory=dict)
    kept: dict[bytes, tuple[object, ConflictFileView]] = field(default_factory=dict)
    picked_before: tuple[Pick | None, ...] = ()
    formatted: set[bytes] = field(default_factory=set)
    ideas: dict[HunkKey, Idea] = field(default_factory=dict)
    assisted: Assisted = field(default_factory=Assisted)
    known_stale: tuple[object, frozenset[bytes]] | None = None

    @classmethod
    async def begin(cls, repo: Repo, merger: Merger, sides: Sides, names: SideNames) -> Self:
        """Open a review without decisions on a merge of two commits."""
        merged = await merger.merge(sides)
        return await cls.of(repo, merged, sides, names)

    @classmethod
    async def of(cls, repo: Repo, merged: MergedTrees, sides: Sides, names: SideNames) -> Self:
        """Open a review on a merge that was made already."""
        conflicts = await read_conflicts(repo, merged, sides, names)
        paths = {one.path for one in merged.conflicts} | {one.path for one in conflicts.files}
        evidence = Evidence(
            target=await commits_of(repo, sides.ours, sides.theirs),
            incoming=await commits_of(repo, sides.theirs, sides.ours),
            merged=await merged_files(repo, sides, merged.tree, frozenset(paths)),
        )
        return cls(
            repo=repo,
            sides=sides,
            names=names,
            merged=merged,
            conflicts=conflicts,
            session=ResolutionSession(conflicts.files),
            evidence=evidence,
        )

    async def take_over(self, written: Mapping[str, Any]) -> None:
        """Adopt decisions that were made about this merge, or about one much like it."""
        read = partial(ResolutionSession.from_json, written["session"], self.conflicts.files)
        self.session, carried = await to_thread.run_sync(read)
        paths = [one if isinstance(one, bytes) else one.path for one in carried.opened]
        self.opened = tuple(map(os.fsdecode, dict.fromkeys(paths)))
        self.to_look_at = tuple(map(os.fsdecode, carried.to_look_at))
        said = written.get("asked") or {}
        self.answers = {
            HunkKey(key): tuple(
                OutsideAnswer(by, text.encode(errors="surrogateescape"), *more)
                for by, text, *more in all_
            )
            for key, all_ in said.items()
        }
        self.assisted = Assisted.from_json(written.get("assisted") or {})
        self.asking = {HunkKey(key): by for key, by in (written.get("asking") or {}).items()}

    def give_up_asking(self) -> None:
        """Drop pending questions to agents: the engine that asked them is gone."""
        for hunk, by in self.asking.items():
            self.problems[hunk] = f"{by}: the engine ended before the agent answered; ask again"
        self.asking = {}

    def written(self, session: ResolutionSession | None = None) -> dict[str, Any]:
        """Return the decisions as plain data, for storage."""
        return {
            "session": (session or self.session).to_json(),
            "asked": {
                key: [(by, shown(text), reason, is_ahead) for by, text, reason, is_ahead in answers]
                for key, answers in self.answers.items()
            },
            "asking": self.asking,
            "assisted": self.assisted.to_json(),
        }

    @property
    def unformatted(self) -> tuple[Unformatted, ...]:
        """Return the files with open hunks whose formatter was not asked yet."""
        return tuple(
            Unformatted(path=one.path, command=command, texts=(base, target, incoming))
            for one in self.session.conflicts
            if one.path not in self.formatted and self.session.open_hunks(one.path)
            if (command := self.rules.formatter_of(os.fsdecode(one.path)))
            if one.base and (base := one.base.content) is not None
            if one.target and (target := one.target.content) is not None
            if one.incoming and (incoming := one.incoming.content) is not None
        )

    async def take_formatted(self, found: Mapping[bytes, Formatted | None]) -> None:
        """Propose what the formatted versions of files come to."""
        for path, one in found.items():
            self.formatted.add(path)
            conflict = self.session.conflict(path)
            ideas = await to_thread.run_sync(formatted_ideas, conflict, one) if one else {}
            self.ideas.update(ideas)
            for key in ideas:
                self.offers.pop(key, None)

    async def after(self, action: c.ResolutionAction) -> ResolutionSession:
        """Return the session after an action; the action counts only once it is written down.

        Raises:
            WorkspaceError: It cannot be done; nothing was changed.
        """
        return await to_thread.run_sync(decided, self.session, action)

    async def made(self, wanted: Regeneration, content: bytes) -> ResolutionSession:
        """Return the session with a file as its command made it.

        Raises:
            WorkspaceError: It was made from another result, or is no text.
        """
        path = os.fsdecode(wanted.path)
        if (await self.regeneration(path)).basis != wanted.basis:
            raise WorkspaceError(
                f"the result changed while {path} was regenerated", hint="Regenerate it again."
            )
        try:
            return self.session.made(
                wanted.path, content, by=wanted.command, basis=wanted.basis, mode=wanted.mode
            )
        except ValueError as error:
            raise WorkspaceError(
                f"`{wanted.command}` wrote a {path} that plait cannot use: {error}"
            ) from error

    @contextmanager
    def asking_about(
        self, action: c.AskAgent, *, by: str, is_ahead: bool = False
    ) -> Iterator[Inquiry]:
        """Note that an agent is being asked about a hunk; yield its inquiry.

        It is noted while the block writes it down, so that another request is refused meanwhile. If
        the block fails, nobody asks, and nothing of it stays.

        Raises:
            WorkspaceError: There is no such hunk, or it is being asked about already.
        """
        before = self.assisted
        found = self._ask(action, by=by, is_ahead=is_ahead)
        try:
            yield found
        except BaseException:  # also where it is cancelled
            del self.asking[found.key]
            self.assisted = before
            raise

    def _ask(self, action: c.AskAgent, *, by: str, is_ahead: bool) -> Inquiry:
        """Note that an agent is being asked about a hunk; return its inquiry.

        Raises:
            WorkspaceError: There is no such hunk, or it is being asked about already.
        """
        try:
            conflict = self.session.conflict(os.fsencode(action.path))
            hunk = next(
                hunk
                for number, hunk in enumerate(conflict.open.hunks)
                if action.hunk in (number, hunk.key)
            )
        except (KeyError, StopIteration):
            raise WorkspaceError(f"there is no such conflict in {action.path}") from None
        if hunk.key in self.asking:
            raise WorkspaceError(f"{self.asking[hunk.key]} has been asked already")
        self.asking[hunk.key] = by
        self.problems.pop(hunk.key, None)
        # Counted before it begins: what an engine that dies has spent is not spent again.
        self.assisted = self.assisted.begun(hunk.key) if is_ahead else self.assisted
        commits = self.evidence.target.of(conflict.target.path if conflict.target else None)
        subjects = tuple(commit.subject for commit in commits)
        return inquiry(conflict, hunk, subjects=subjects, words=action.words)

    def answered(self, hunk: HunkKey, answer: OutsideAnswer | str) -> None:
        """Take an agent's answer, or the reason why it gave none; empty where none is wanted."""
        self.asking.pop(hunk, None)
        self.problems.pop(hunk, None)
        self.offers.pop(hunk, None)
        if isinstance(answer, OutsideAnswer):
            self.answers[hunk] = (*self.answers.get(hunk, ()), answer)
        elif answer:
            self.problems[hunk] = answer

    def unsure(self, memory: Memory) -> tuple[c.AskAgent | None, bool]:
        """Return the question about the next hunk that is open and has no likely proposal.

        The second value says that the time for proposals was over before one was found: ask again.
        """
        known = {*self.assisted.hunks, *self.answers, *self.asking}
        offers = _Offers(self, memory)
        paths = [one.path for one in self.session.conflicts if not self._is_generated(one.path)]
        hunks = ((path, hunk) for path in paths for hunk in self.session.open_hunks(path))
        for path, hunk in hunks:
            if hunk.key not in known and not best(offers.of(path, hunk)):
                if offers.is_cut:
                    return None, True
                return c.AskAgent(path=os.fsdecode(path), hunk=hunk.key), False
        return None, False

    @property
    def open_paths(self) -> list[str]:
        """Return the files that still need a decision."""
        paths = [one.path for one in self.session.conflicts]
        found = {path for path in paths if not self.session.is_file_resolved(path)} | self.stale
        return sorted(map(os.fsdecode, found))

    @property
    def is_resolved(self) -> bool:
        """Nothing is open, and no generated file was made for another result."""
        return self.session.is_resolved and not self.stale

    def _is_generated(self, path: bytes) -> bool:
        return bool(self.rules.command_for(os.fsdecode(path)))

    @property
    def stale(self) -> frozenset[bytes]:
        """Return the generated files that were made from another result than this one.

        It is computed once for each set of decisions: such a file may be long.
        """
        journal = self.session.journal
        if self.known_stale is None or self.known_stale[0] != journal:
            found: frozenset[bytes] = frozenset()
            with suppress(WorkspaceError):  # the tree says what is wrong
                found = stale(self.session, self._is_generated, self.merged.tree)
            self.known_stale = (journal, found)
        return self.known_stale[1]

    @property
    def _merged_files(self) -> tuple[MergedFileView, ...]:
        """Return the files that git merged, with the commands that would make them anew."""
        if not self.rules.regenerate:
            return self.evidence.merged
        command = self.rules.command_for
        return tuple(replace(one, regenerate=command(one.path)) for one in self.evidence.merged)

    async def regeneration(self, path: str) -> Regeneration:
        """Return what a generated file is made anew from.

        Raises:
            WorkspaceError: Nothing makes it, or another decision comes first.
        """
        name, command = os.fsencode(path), self.rules.command_for(path)
        known = {one.path for one in self.session.conflicts} | {*self.session.resolutions}
        known.update(os.fsencode(one.path) for one in self.evidence.merged if one.kind != "D")
        if not command or name not in known:
            raise WorkspaceError(
                f"no command regenerates {path}",
                hint="Name one in the manifest: `review: {regenerate: {FILE: COMMAND}}`.",
            )
        rest = await to_thread.run_sync(beside, self.session, self._is_generated)
        results = rest.results()
        if results is None:
            first = [p for p in self.open_paths if not self._is_generated(os.fsencode(p))]
            raise WorkspaceError(
                f"{path} is generated from other files: resolve {', '.join(first)} first"
            )
        merged = await entries_of(self.repo, self.merged.tree, [name])
        before = await self._generated_before(frozenset(one.path for one in results))
        tree = await result_tree(self.repo, self.merged, self.conflicts, (*results, *before))
        return Regeneration(
            path=name,
            command=command,
            tree=tree,
            parent=self.sides.ours,
            basis=basis_of(self.merged.tree, rest),
            mode=merged[name][0] if name in merged else "",
        )

    async def _generated_before(self, decided: Container[bytes]) -> list[FileResult]:
        """Return the target's own version of each generated file that git merged by itself."""
        merged = [os.fsencode(one.path) for one in self.evidence.merged]
        wanted = [path for path in merged if path not in decided and self._is_generated(path)]
        there = await entries_of(self.repo, self.sides.ours, wanted)
        return [FileResult(path, mode, blob=blob) for path, (mode, blob) in there.items()]

    async def tree(self) -> str:
        """Return the tree that the decisions make.

        Raises:
            WorkspaceError: Something is still open.
        """
        results = self.session.results()
        old = await to_thread.run_sync(lambda: self.stale)
        if results is None or old:
            raise WorkspaceError(f"still to resolve: {', '.join(self.open_paths)}")
        key = self.session.journal
        if key not in self.trees:
            made = await result_tree(self.repo, self.merged, self.conflicts, results)
            self.trees = {key: made}
        return self.trees[key]

    async def view(self, memory: Memory, *, path: str = "") -> ConflictView:
        """Return the review as a view; with one file's whole resulting text if it is named."""
        offers = _Offers(self, memory)
        raw = path.encode(errors="surrogateescape") or None
        lens = Lens(
            propose=offers.of,
            asking=self.asking,
            problems=self.problems,
            evidence=self.evidence,
            with_text=raw,
            kept=self.kept,
            rules=self.rules,
            stale=await to_thread.run_sync(lambda: self.stale),
        )
        session = self.session
        is_resolved = session.is_resolved and not lens.stale
        files = await to_thread.run_sync(file_views, session, lens)
        tree, problem = None, ""
        if is_resolved:
            try:
                tree = await self.tree()
            except WorkspaceError as error:
                problem = whole_of(error)
        return ConflictView(
            run="",
            worker="",
            attempt=0,
            target=self.names.target,
            incoming=self.names.incoming,
            files=files,
            is_resolved=is_resolved,
            can_undo=bool(session.journal),
            can_redo=bool(session.undone),
            decisions=len(session.journal),
            tree=tree,
            clean=len(self.evidence.merged),
            merged=self._merged_files,
            looked_at=await self._looked_at(raw, files) if raw else None,
            target_commits=self.evidence.target.commits,
            incoming_commits=self.evidence.incoming.commits,
            opened=self.opened,
            to_look_at=self.to_look_at,
            moved=self.moved,
            problem=problem,
            caveat=self.merged.caveat,
            is_thinking=offers.is_cut,
            assist=self.assisted.view(rule) if (rule := self.rules.assist) else None,
        )

    async def _looked_at(
        self, path: bytes, files: tuple[ConflictFileView, ...]
    ) -> ConflictFileView | None:
        """Return the file at that path: conflicted, set by hand, or any other of the result."""
        known = {conflict.path for conflict in self.session.conflicts}
        if path in known:
            return next(file for file in files if file.path == os.fsdecode(path))
        decision = self.session.resolutions.get(path)
        if decision is not None and decision.own is not None:
            own = decision.own
            pieces: tuple[Piece, ...] = (whole_piece(own.content or b"", Origin.OWN),)
            return self._other(path, own.mode, own.content, kind="edited", pieces=(None, pieces))
        entry = (await entries_of(self.repo, self.merged.tree, [path])).get(path)
        found = await merged_text(self.repo, self.sides, self.merged.tree, path)
        if entry is None or found is None:
            return None
        if isinstance(found, bytes):
            return self._other(path, entry[0], found, kind="merged", pieces=(None, ()))
        text = found.render(lambda _: b"")
        return self._other(path, entry[0], text, kind="merged", pieces=(found, found.pieces))

    def _other(
        self,
        path: bytes,
        mode: str,
        text: bytes | None,
        *,
        kind: str,
        pieces: tuple[TextMerge | None, tuple[Piece, ...]],
    ) -> ConflictFileView:
        """Return a file that needs no decision."""
        return ConflictFileView(
            path=os.fsdecode(path),
            kind=kind,
            is_resolved=True,
            is_edited=kind == "edited",
            mode=mode,
            text=None if text is None else shown(text),
            pieces=tuple(piece_views(*pieces)),
            target_commits=self.evidence.target.of(path),
            incoming_commits=self.evidence.incoming.of(path),
        )


class _Offers:
    """The proposals for each hunk, computed once; no look may take long over them."""

    def __init__(self, review: Review, memory: Memory) -> None:
        self._known = review.offers
        self._answers = review.answers
        self._ideas = review.ideas
        self._conflicts = review.session.conflicts
        self._memory = memory
        known = review.offers
        self._lessons = lessons(
            review.session, lambda hunk: known.get(hunk.key, ()), review.picked_before
        )
        self._until = time.monotonic() + _THINKS_S
        self._has_made = False
        self.is_cut = False

    def of(self, path: bytes, hunk: ConflictHunk) -> tuple[Proposal, ...]:
        """Return the proposals for a hunk, with what the decisions before it make likely."""
        learned = self._lessons.get((path, hunk.key), Lessons())
        return with_lessons(self._of_texts(hunk), hunk, learned)

    def _of_texts(self, hunk: ConflictHunk) -> tuple[Proposal, ...]:
        """Return what its texts make likely; nothing if no time is left to compute that."""
        if hunk.key not in self._known:
            if self._has_made and time.monotonic() > self._until:
                self.is_cut = True
                return ()
            self._has_made = True  # however slow the machine is, each look gets further
            asked = self._answers.get(hunk.key, ())
            more = [self._ideas[hunk.key]] if hunk.key in self._ideas else []
            self._known[hunk.key] = propose(
                hunk, memory=self._memory, asked=asked, more=more, accepts=self._is_sound
            )
        return self._known[hunk.key]

    def _is_sound(self, hunk: ConflictHunk, text: bytes) -> bool:
        """Return whether every file with this hunk can be read with the text in its place."""
        return all(reads(hunk, text) for reads in self._readers.get(hunk.key, ()))

    @cached_property
    def _readers(self) -> Mapping[HunkKey, Sequence[Callable[[ConflictHunk, bytes], bool]]]:
        """Return the tests of the files, by the hunks that are open in them."""
        found: dict[HunkKey, list[Callable[[ConflictHunk, bytes], bool]]] = {}
        for conflict in self._conflicts:
            reads = reads_still(conflict)
            for hunk in conflict.open.hunks:
                found.setdefault(hunk.key, []).append(reads)
        return found
