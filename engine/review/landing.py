"""Land a change: compose it in memory, check the exact tree, move by compare-and-swap."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
from anyio import to_thread

from engine.beneath import remove_tree
from engine.clock import Clock
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import DirtyTarget, EngineError, GitFailed, WorkspaceError, whole_of
from engine.git.carrying import edited_paths, prepare_carrying, prepare_committing
from engine.git.checktree import CheckTree, fill_check_tree
from engine.git.composition import Composed, LandingStyle, LandRequest, compose
from engine.git.landing import (
    LandingDone,
    LandingRefused,
    LandPrepared,
    land,
    prepare_landing,
    recover_landing,
    unpin,
)
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, read_ref, resolve, tree_of, write_commit
from engine.git.runner import Repo
from engine.git.undo import undo_landing
from engine.legible import cut_at_word, legible_line, legible_name
from engine.messages import commands as c
from engine.messages.merging import MergedResult
from engine.messages.results import CheckResult
from engine.phases import Phase
from engine.private import private_folder
from engine.review.conflicts import conflict_paths
from engine.review.landing_results import (
    Checker,
    CleanChecker,
    LandingConflicts,
    Moved,
    ReadyToLand,
    Refusal,
    TryAgain,
    Undone,
)
from engine.review.names import short
from engine.review.questions import landing_question
from engine.review.sessions import Finished, Resolutions
from engine.review.trying import why_not_while_trying
from engine.site.seeds import Seeds, read_planted, write_planted
from engine.site.shelter import GitPlaces
from engine.store.codec import from_json, to_json
from engine.store.files import write_atomically
from engine.store.layout import Layout, check_root

_UNDOING = "undoing.json"


async def finish_undoing(repo: Repo, layout: Layout) -> None:
    """End an undo that was under way when its engine died: files, index and ref go back together.

    Its worker hears when the undo is asked for again, which then finds that all is done.
    """
    note = layout.root / _UNDOING
    if await to_thread.run_sync(note.exists):
        text = await to_thread.run_sync(note.read_text)
        with suppress(EngineError):  # the user has gone on from there: nothing of theirs is written
            await recover_landing(repo, from_json(LandPrepared, text), layout.trash)
        await to_thread.run_sync(partial(note.unlink, missing_ok=True))


_CHECK = "Plait-Check"
_MOVED = "the target has moved since you looked"
_WAYS_BACK = (
    "Commit them (the undo then adds a commit), stash them (`git stash`, later `git stash pop`) "
    "or revert them. Then undo again."
)


class GitLandings:
    """Lands changes in one repository and takes landings back."""

    def __init__(
        self,
        repo: Repo,
        *,
        root: Path,
        layout: Layout,
        clock: Clock,
        resolutions: Resolutions,
        seeds: Seeds,
    ) -> None:
        self._repo = repo
        self._resolutions = resolutions
        self._root = root
        self._seeds = seeds
        self._layout = layout
        self._clock = clock
        self._merger = Merger(repo)

    async def prepare(
        self, state: RunState, effect: e.PerformLanding, check: Checker | None
    ) -> ReadyToLand | LandingConflicts | Refusal | CheckResult:
        """Merge in memory and check exactly the tree that will be there."""
        # Recovery rolls the journaled plan forward: composing anew could give another commit.
        if effect.prepared is not None:
            return _ready(from_json(LandPrepared, effect.prepared), tree="")
        composed = await self._compose(state, effect)
        if not isinstance(composed, Composed):
            return composed
        # The human approved one exact tree. Any other result goes back to them.
        if effect.wish.result not in {None, composed.tree}:
            return Refusal(reason=_MOVED)
        try:
            prepared = await self._prove(state, effect, composed)
        except DirtyTarget as dirty:
            return _blocked(str(dirty), dirty.paths)
        if isinstance(prepared, Refusal):
            return prepared
        # A commit of the user's own edits needs no check: the change on top of it gets one.
        if check is None or prepared.leads_on:
            return _ready(prepared, tree=composed.tree)
        found = await self._check(state, effect, composed, check)
        if isinstance(found, CheckResult) and (found.passed or _is_overruled(state, effect, found)):
            return replace(_ready(prepared, tree=composed.tree), check=found)
        # Nothing lands, so drop the ref that kept the composed commit from `git gc`.
        await unpin(self._repo, prepared)
        return found

    async def _prove(
        self, state: RunState, effect: e.PerformLanding, composed: Composed
    ) -> LandPrepared | Refusal:
        """Return what will be moved; treat the user's edits in the way as the human asked.

        Raises:
            DirtyTarget: There are some, and nothing was asked that helps.
        """
        prepared: LandPrepared | LandingRefused | MergedTrees
        trying = await why_not_while_trying(self._repo, composed.ref)
        if trying:
            return Refusal(reason=trying)
        try:
            prepared = await prepare_landing(self._repo, composed)
        except DirtyTarget as dirty:
            author = self._repo.settings.sign(int(self._clock.now()))
            wording = Wording(message=_edits_message(state, effect), author=author)
            match effect.wish.edits:
                case c.Edits.CARRY:
                    prepared = await prepare_carrying(self._repo, self._merger, composed, wording)
                case c.Edits.COMMIT:
                    prepared = await prepare_committing(
                        self._repo, composed, wording, paths=dirty.paths
                    )
                case _:
                    raise
        if isinstance(prepared, LandingRefused):
            return Refusal(reason=f"{prepared.reason} {prepared.detail}".strip())
        if isinstance(prepared, MergedTrees):
            paths = tuple(map(os.fsencode, conflict_paths(prepared)))
            names = _named(paths)
            return Refusal(
                reason=f"your own edits conflict with the change in {names}. Commit or stash "
                "them. Or land with `--edits commit` or `--edits wait`, or on another branch with "
                "`--to`.",
                in_the_way=tuple(map(os.fsdecode, paths)),
                is_carry_refused=True,
            )
        return replace(prepared, note=composed.note)

    async def is_in_the_way(
        self, state: RunState, effect: e.PerformLanding, paths: Sequence[str]
    ) -> bool:
        """Return whether the user's edits in these files still keep a landing from its target."""
        target = effect.wish.to or state.plan.runtime.target or ""
        wanted = [os.fsencode(path) for path in paths]
        return bool(await edited_paths(self._repo, f"refs/heads/{target}", wanted))

    async def _compose(
        self, state: RunState, effect: e.PerformLanding
    ) -> Composed | LandingConflicts | Refusal:
        w = state.workers[effect.worker]
        change, target = w.change, effect.wish.to or state.plan.runtime.target
        if change is None or change.head is None or change.base is None or target is None:
            return Refusal(reason=f"{w.id} has nothing to land")
        signature = self._repo.settings.sign(int(self._clock.now()))
        old = await read_ref(self._repo, f"refs/heads/{target}", change.head, change.base)
        if old is None and effect.wish.to is None and await self._has_begun(change.base):
            return Refusal(
                reason=f"the branch {target} no longer exists. Land on another with `--to "
                "BRANCH`, or use the same name to create it again."
            )
        tree = await self._resolved(state, effect, target=target, old=old)
        if isinstance(tree, LandingConflicts):
            return tree
        request = LandRequest(
            target=target,
            base=change.base,
            head=change.head,
            style=LandingStyle(effect.wish.style or state.plan.runtime.land_style),
            message=_landing_message(state, w),
            author=signature,
            committer=signature,
            trailers=_trailers(state, w),
            tree=tree,
            creates=old is None,
            prefix=state.plan.runtime.branch_prefix,
            root=state.plan.runtime.base,
        )
        composed = await compose(self._repo, self._merger, request)
        if isinstance(composed, Composed):
            # Trailers name the verdict on the exact tree, which is known only now: compose again.
            rows = _with_verdict(state, effect, request.trailers, tree=composed.tree)
            if rows != request.trailers:
                composed = await compose(self._repo, self._merger, replace(request, trailers=rows))
        if isinstance(composed, Composed):
            return composed
        if composed.unsafe:
            names = _named(composed.unsafe)
            return Refusal(reason=f"the result would contain paths that git refuses: {names}")
        return LandingConflicts(paths=conflict_paths(composed))

    async def _has_begun(self, base: str) -> bool:
        """Say if a run found anything: where there was no commit yet, its landing makes the branch.

        Else a target that is not there was taken away since.
        """
        return await tree_of(self._repo, base) != self._repo.empty_tree

    async def _resolved(
        self, state: RunState, effect: e.PerformLanding, *, target: str, old: str | None
    ) -> str | LandingConflicts | None:
        """Return the tree that a human made of the conflicts, for the target as it is now.

        On a target that has moved since, that tree would take back what came in between: the
        merge is made again, and the decisions kept wherever they still fit.
        """
        resolution = effect.resolution
        if resolution is None or old == resolution.onto:
            return resolution.tree if resolution else None
        w = state.workers[effect.worker]
        again = await self._resolutions.again(state, w, target=target)
        if not isinstance(again, str):
            return LandingConflicts(paths=again, reason=_MOVED)
        if effect.wish.result not in {None, again}:
            paths = await self._resolutions.paths(state, w)
            return LandingConflicts(paths=paths, reason=_MOVED)
        return again

    async def _check(
        self, state: RunState, effect: e.PerformLanding, composed: Composed, check: Checker
    ) -> CheckResult | Refusal:
        """Return a clean check's result on the exact tree; one that passed is not run again.

        Nor is a red one that a human overrules: it was seen, and is known to be of this very tree.
        """
        known = state.workers[effect.worker].review.check
        if known is not None and known.speaks_for(composed.tree):
            if known.passed and known.batch is None:
                return replace(known, is_exact=True)
            if known.passed or effect.wish.is_despite_check:
                return known
        result = await self.check_commit(state, composed.new, composed.tree, check)
        return result if isinstance(result, Refusal) else replace(result, is_exact=True)

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """Run the check on the exact tree that would land now, or on the worker's own."""
        change = w.change
        if change is None or change.head is None:
            return Refusal(reason=f"{w.id} has no change to check")
        if is_own:
            return await self.check_commit(state, change.head, change.tree or "", check)
        merged = await self._merged(state, w)
        if isinstance(merged, Refusal):
            return merged
        tree = merged.tree
        author = self._repo.settings.sign(int(state.started_at or 0))
        wording = Wording(message="A tree to check\n", author=author)
        # No ref ever names this commit: it only carries the tree to the check.
        commit = await write_commit(self._repo, tree, [change.head], wording)
        found = await self.check_commit(state, commit, tree, check)
        return found if isinstance(found, Refusal) else replace(found, is_exact=True)

    async def _merged(self, state: RunState, w: Worker) -> Finished | Refusal:
        """Merge a worker's change with its target as it is now, or take what a human decided."""
        if w.phase is Phase.CONFLICTED:
            return await self._resolutions.tree(state, w)
        question = await landing_question(self._repo, state, w)
        merged = await self._merger.merge(question.sides)
        if merged.is_clean:
            return Finished(tree=merged.tree, onto=question.onto)
        names = ", ".join(conflict_paths(merged))
        return Refusal(reason=f"{w.id} conflicts with its target in {names}")

    async def result(self, state: RunState, w: Worker) -> MergedResult | Refusal:
        """Return what landing a worker now would give; its objects are in the repository.

        Raises:
            WorkspaceError: There is no change, no target, or something is not decided yet.
        """
        merged = await self._merged(state, w)
        if isinstance(merged, Refusal):
            return merged
        if merged.onto is None:
            return Refusal(reason=f"the base of {w.id} has conflicts, so there is no result yet")
        return MergedResult(
            run=str(state.run),
            worker=str(w.id),
            attempt=w.attempt.number,
            target=(await landing_question(self._repo, state, w)).names.target,
            onto=merged.onto,
            tree=merged.tree,
        )

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """Check exactly a commit's files, in surroundings that no agent had a hand in."""
        async with self.laid_out(state, commit, check) as (clean, folder, places):
            problem = await clean.setup(folder, places)
            if problem is not None:
                return Refusal(reason=problem)
            return await clean.check(folder, tree, places)

    @asynccontextmanager
    async def laid_out(
        self, state: RunState, commit: str, check: Checker
    ) -> AsyncIterator[tuple[CleanChecker, str, GitPlaces]]:
        """Yield a clean environment, a folder with exactly a commit's files, and its repository."""
        root = check_root(self._root, state.run)
        place = CheckTree(path=root / "tree", folder=self._layout.check(state.run))
        await anyio.to_thread.run_sync(private_folder, root)
        # What an agent left in HOME or in a cache could make a bad tree pass.
        async with check.alone() as clean:
            try:
                borrowed = await self.lay_out(state, place, commit)
            except (OSError, GitFailed):  # whatever a check left there that nobody can remove
                await to_thread.run_sync(_set_aside, place, self._layout.trash)
                borrowed = await self.lay_out(state, place, commit)
            places = GitPlaces(private=Path(place.git_dir), objects=tuple(map(Path, borrowed)))
            yield clean, str(place.path), places

    async def lay_out(self, state: RunState, place: CheckTree, commit: str) -> tuple[str, ...]:
        """Bring a tree to a commit, with what setup made of the user's own files."""
        note = place.folder / "planted.json"
        planted = await to_thread.run_sync(read_planted, note)
        filled = await fill_check_tree(self._repo, place, commit, keep=planted.tops)
        setup, base = state.plan.workspace.setup, state.plan.runtime.base

        def restore() -> None:
            key = self._seeds.key(place.path, setup, base=base) if setup is not None else None
            now = self._seeds.restore(key, place.path, planted, kept=filled.kept)
            if now is not planted:
                write_planted(note, now)

        await to_thread.run_sync(restore)
        return filled.borrowed

    async def undo(self, prepared: str, *, message: str) -> Undone | Refusal:
        """Move the target back, or add the opposite commit if others landed since."""
        landed = from_json(LandPrepared, prepared)
        undone = partial(Undone, target=short(landed.target) or landed.target)
        at = await resolve(self._repo, landed.target)
        # An earlier undo has already moved the target back: undoing twice is no error.
        if at == landed.old:
            return undone(at=at)
        trying = await why_not_while_trying(self._repo, landed.target)
        if trying:
            return Refusal(reason=trying)
        author = self._repo.settings.sign(int(self._clock.now()))
        try:
            wording = Wording(message=message, author=author)
            back = await undo_landing(self._repo, self._merger, landed, wording)
            if back is None:  # an engine that died had done it
                return undone(at=at)
            if isinstance(back, MergedTrees):
                paths = _named([one.path for one in back.conflicts])
                return Refusal(reason=f"later landings conflict with the undo: {paths}")
            done = back if isinstance(back, LandingRefused) else await self._go_back(back)
        except DirtyTarget as dirty:
            return Refusal(reason=f"{dirty}. {_WAYS_BACK}")
        if isinstance(done, LandingRefused):
            return Refusal(reason=f"{done.reason} {done.detail}".strip())
        return undone(at=done.commit, is_added=done.commit != landed.old)

    async def _go_back(self, back: LandPrepared) -> LandingDone | LandingRefused:
        """Land the way back, noted on disk so that a crash in between can be repaired."""
        note = self._layout.root / _UNDOING
        forget = partial(note.unlink, missing_ok=True)
        # Written before the move: if the engine dies in between, the next one finishes from here.
        await to_thread.run_sync(write_atomically, note, to_json(back).encode())
        try:
            done = await land(self._repo, back)
        except WorkspaceError:  # nothing was written
            await to_thread.run_sync(forget)
            raise
        await to_thread.run_sync(forget)
        return done

    async def land(self, effect: e.PerformLanding, ready: ReadyToLand) -> Moved | TryAgain:
        """Move the target by compare-and-swap, its checkout along with it."""
        prepared = from_json(LandPrepared, ready.detail)
        try:
            # A landing found in the journal may be half done: recovery finishes it or goes back.
            if effect.prepared is None:
                done = await land(self._repo, prepared)
            else:
                done = await recover_landing(self._repo, prepared, self._layout.trash)
        except DirtyTarget as dirty:
            return TryAgain(why=whole_of(dirty))
        if isinstance(done, LandingDone):
            return Moved()
        return TryAgain(why=f"{done.reason} {done.detail}".strip())


def _set_aside(place: CheckTree, trash: Path) -> None:
    """Move a check tree away; what cannot be removed now is purged with the trash."""
    if os.path.lexists(place.path):
        private_folder(trash)
        try:
            place.path.rename(trash / f"check-{token_hex(6)}")
        except OSError:  # on another disk
            remove_tree(place.path)


def _blocked(what: str, paths: Sequence[bytes]) -> Refusal:
    """Return a refusal that names the ways out."""
    names = tuple(map(os.fsdecode, paths))
    hint = (
        "Commit or stash them. Or land with `--edits carry` (they stay uncommitted on top), "
        "`--edits commit` (they become your commit first) or `--edits wait`, or on another branch "
        "with `--to`."
    )
    return Refusal(reason=f"{what}. {hint}", in_the_way=names)


def _edits_message(state: RunState, effect: e.PerformLanding) -> str:
    w = state.workers[effect.worker]
    return f"Edits under way when {w.id} landed\n"


def _ready(prepared: LandPrepared, *, tree: str) -> ReadyToLand:
    return ReadyToLand(
        target=short(prepared.target) or prepared.target,
        old=prepared.old or "",
        new=prepared.new or "",
        tree=tree,
        detail=to_json(prepared),
        leads_on=prepared.leads_on,
        note=prepared.note,
    )


def _named(paths: Sequence[bytes]) -> str:
    """Return paths for a sentence, each so that no other looks like it."""
    return ", ".join(legible_name(os.fsdecode(path)) for path in paths)


def _landing_message(state: RunState, w: Worker) -> str:
    words = w.begun.prompt or state.plan.step(w.id.step).run or ""
    first = next((line.strip() for line in words.splitlines() if line.strip()), "")
    subject = f"{w.id}: {legible_line(first)}" if first else f"{w.id}"
    return f"{cut_at_word(subject)}\n"


def _trailers(state: RunState, w: Worker) -> tuple[tuple[str, str], ...]:
    rows: list[tuple[str, str]] = [
        ("Plait-Run", state.run),
        ("Plait-Worker", str(w.id)),
        ("Plait-Attempt", str(w.attempt.number)),
    ]
    if w.review.left_out:
        rows.append(("Plait-Left-Out", str(len(w.review.left_out))))
    if w.review.edited:
        rows.append(("Plait-Edited", str(len(w.review.edited))))
    check = state.plan.step(w.id.step).check
    if check is not None:  # a commit whose tree then fails the check never lands
        rows.append((_CHECK, f"passed: {check}"))
    return tuple(rows)


def _with_verdict(
    state: RunState, effect: e.PerformLanding, rows: tuple[tuple[str, str], ...], *, tree: str
) -> tuple[tuple[str, str], ...]:
    """Mark the check's trailer if the tree lands for another reason than its own check."""
    known = state.workers[effect.worker].review.check
    if known is None or not known.speaks_for(tree):
        return rows
    found = dict(rows)
    if known.passed and known.batch is not None:
        found[_CHECK] += " (as one of a batch)"
    elif _is_overruled(state, effect, known):
        found[_CHECK] = "overruled"
    return tuple(found.items())


def _is_overruled(state: RunState, effect: e.PerformLanding, found: CheckResult) -> bool:
    """Return whether a human lands a tree although they know that its check is red."""
    is_known = found == state.workers[effect.worker].review.check
    return effect.wish.is_despite_check and is_known and not found.passed
