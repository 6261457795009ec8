"""Landing a change: composed in memory, checked as the exact tree, moved by compare-and-swap."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine import commands as c
from engine.core import effects as e
from engine.core.state import RunState, Worker
from engine.errors import DirtyTarget, EngineError, WorkspaceError
from engine.git.carrying import edited_paths, prepare_carrying, prepare_committing
from engine.git.checktree import CheckTree, fill_check_tree
from engine.git.composition import Composed, LandRequest, Style, compose
from engine.git.landing import (
    Landed,
    LandPrepared,
    LandRefused,
    land,
    let_go,
    prepare_landing,
    recover_landing,
)
from engine.git.merge3 import MergedTrees, Merger
from engine.git.objects import Wording, read_ref, resolve, write_commit
from engine.git.runner import Repo
from engine.git.undo import undo_landing
from engine.phases import Phase
from engine.results import CheckResult
from engine.store.codec import from_json, to_json
from engine.store.files import write_atomically
from engine.store.layout import Layout, check_root
from engine.supervisor.clock import Clock
from engine.supervisor.git_names import short
from engine.supervisor.merging.conflicts import conflict_paths
from engine.supervisor.merging.questions import landing_question
from engine.supervisor.merging.sessions import Resolutions
from engine.supervisor.shelter import GitPlaces
from engine.supervisor.workshop import Checker, Conflicted, ReadyToLand, Refusal

_UNDOING = "undoing.json"


async def finish_undoing(repo: Repo, layout: Layout) -> None:
    """End an undo that was under way when its engine died: files, index and ref go back together.

    Its worker is told when the undo is asked for again, which then finds that all is done.
    """
    note = layout.root / _UNDOING
    if await to_thread.run_sync(note.exists):
        text = await to_thread.run_sync(note.read_text)
        with suppress(EngineError):  # the user has gone on from there: nothing of theirs is written
            await recover_landing(repo, from_json(LandPrepared, text), layout.trash)
        await to_thread.run_sync(partial(note.unlink, missing_ok=True))


_CHECK = "Plait-Check"
_WAYS_BACK = (
    "Commit them (the undo then adds a commit), stash them (`git stash`, and `git stash pop` after"
    " it), or take them back; then undo again."
)


class Landings:
    """Landings in one repository."""

    def __init__(
        self,
        repo: Repo,
        *,
        root: Path,
        layout: Layout,
        clock: Clock,
        resolutions: Resolutions,
    ) -> None:
        self._repo = repo
        self._resolutions = resolutions
        self._root = root
        self._layout = layout
        self._clock = clock
        self._merger = Merger(repo)

    async def prepare(
        self, state: RunState, effect: e.Land, check: Checker | None
    ) -> ReadyToLand | Conflicted | Refusal | CheckResult:
        """Merged in memory and checked as the exact tree that will be there."""
        if effect.prepared is not None:
            return _ready(from_json(LandPrepared, effect.prepared), tree="")
        composed = await self._compose(state, effect)
        if not isinstance(composed, Composed):
            return composed
        try:
            prepared = await self._prove(state, effect, composed)
        except DirtyTarget as dirty:
            return _blocked(str(dirty), dirty.paths)
        if isinstance(prepared, Refusal):
            return prepared
        if check is not None and not effect.is_despite_check and not prepared.leads_on:
            failed = await self._check(state, effect, composed, check)
            if failed is not None:
                await let_go(self._repo, prepared)
                return failed
        return _ready(prepared, tree=composed.tree)

    async def _prove(
        self, state: RunState, effect: e.Land, composed: Composed
    ) -> LandPrepared | Refusal:
        """What will be moved; edits of the user's in the way are treated as asked.

        Raises:
            DirtyTarget: There are some, and nothing was asked that helps.
        """
        prepared: LandPrepared | LandRefused | MergedTrees
        try:
            prepared = await prepare_landing(self._repo, composed)
        except DirtyTarget as dirty:
            author = self._repo.settings.sign(int(self._clock.now()))
            wording = Wording(message=_edits_message(state, effect), author=author)
            match effect.edits:
                case c.Edits.CARRY:
                    prepared = await prepare_carrying(self._repo, self._merger, composed, wording)
                case c.Edits.COMMIT:
                    prepared = await prepare_committing(
                        self._repo, composed, wording, paths=dirty.paths
                    )
                case _:
                    raise
        if isinstance(prepared, LandRefused):
            return Refusal(reason=f"{prepared.reason} {prepared.detail}".strip())
        if isinstance(prepared, MergedTrees):
            paths = tuple(one.path for one in prepared.conflicts)
            names = ", ".join(map(os.fsdecode, paths))
            return _blocked(f"your own edits conflict with the change in {names}", paths)
        return prepared

    async def is_in_the_way(self, state: RunState, effect: e.Land, paths: Sequence[str]) -> bool:
        """Whether edits of the user's in these files still keep a landing from its target."""
        target = effect.to or state.plan.runtime.target or ""
        wanted = [os.fsencode(path) for path in paths]
        return bool(await edited_paths(self._repo, f"refs/heads/{target}", wanted))

    async def _compose(self, state: RunState, effect: e.Land) -> Composed | Conflicted | Refusal:
        w = state.workers[effect.worker]
        change, target = w.change, effect.to or state.plan.runtime.target
        if change is None or change.head is None or change.base is None or target is None:
            return Refusal(reason=f"{w.id} has nothing that could be landed")
        signature = self._repo.settings.sign(int(self._clock.now()))
        old = await read_ref(self._repo, f"refs/heads/{target}", change.head, change.base)
        tree = await self._resolved(state, effect, target=target, old=old)
        if isinstance(tree, Conflicted):
            return tree
        request = LandRequest(
            target=target,
            base=change.base,
            head=change.head,
            style=Style(effect.style or state.plan.runtime.land_style),
            message=_landing_message(state, w),
            author=signature,
            committer=signature,
            trailers=_trailers(state, w, effect, tree=tree),
            tree=tree,
            creates=old is None,
        )
        composed = await compose(self._repo, self._merger, request)
        if isinstance(composed, Composed) and _is_of_batch(w, composed.tree):
            rows = tuple(
                (k, f"{v} (as one of a batch)" if k == _CHECK else v) for k, v in request.trailers
            )
            composed = await compose(self._repo, self._merger, replace(request, trailers=rows))
        if isinstance(composed, Composed):
            return composed
        if composed.unsafe:
            names = ", ".join(map(os.fsdecode, composed.unsafe))
            return Refusal(reason=f"the result would hold paths that git refuses: {names}")
        return Conflicted(paths=conflict_paths(composed))

    async def _resolved(
        self, state: RunState, effect: e.Land, *, target: str, old: str | None
    ) -> str | Conflicted | None:
        """The tree that a human made of the conflicts, for the target as it is now.

        On a target that has moved since, that tree would take back what came in between: the
        merge is made again, and the decisions kept wherever they still fit.
        """
        if effect.resolved is None or old == effect.resolved_onto:
            return effect.resolved
        again = await self._resolutions.again(state, state.workers[effect.worker], target=target)
        return again if isinstance(again, str) else Conflicted(paths=again)

    async def _check(
        self, state: RunState, effect: e.Land, composed: Composed, check: Checker
    ) -> CheckResult | Refusal | None:
        """The check on the exact tree; one that passed on this very tree is not run again."""
        known = state.workers[effect.worker].check
        if known is not None and known.passed and known.tree == composed.tree:
            return None
        result = await self.check_commit(state, composed.new, composed.tree, check)
        return result if isinstance(result, Refusal) or not result.passed else None

    async def check_again(
        self, state: RunState, w: Worker, check: Checker, *, is_own: bool
    ) -> CheckResult | Refusal:
        """The check on the exact tree that would land now, or on the worker's own."""
        change = w.change
        if change is None or change.head is None:
            return Refusal(reason=f"{w.id} has no change that could be checked")
        if is_own:
            return await self.check_commit(state, change.head, change.tree or "", check)
        if w.phase is Phase.CONFLICTED:
            tree = (await self._resolutions.tree(state, w)).tree
        else:
            sides = (await landing_question(self._repo, state, w)).sides
            merged = await self._merger.merge3(sides.base, sides.ours, sides.theirs)
            if not merged.is_clean:
                names = ", ".join(conflict_paths(merged))
                return Refusal(reason=f"{w.id} conflicts with its target in {names}")
            tree = merged.tree
        author = self._repo.settings.sign(int(state.started_at or 0))
        wording = Wording(message="A tree to be checked\n", author=author)
        commit = await write_commit(self._repo, tree, [change.head], wording)
        return await self.check_commit(state, commit, tree, check)

    async def check_commit(
        self, state: RunState, commit: str, tree: str, check: Checker
    ) -> CheckResult | Refusal:
        """The check in a tree that holds exactly a commit's files, and is warm from before."""
        root = check_root(self._root, state.run)
        place = CheckTree(path=root / "tree", folder=self._layout.check(state.run))
        await anyio.Path(root).mkdir(mode=0o700, parents=True, exist_ok=True)
        borrowed = await fill_check_tree(self._repo, place, commit)
        places = GitPlaces(private=Path(place.git_dir), objects=tuple(map(Path, borrowed)))
        problem = await check.setup(str(place.path), places)
        if problem is not None:
            return Refusal(reason=problem)
        return await check.check(str(place.path), tree, places)

    async def undo(self, prepared: str, *, message: str) -> str | None:
        """Go back to where the target was, or add the opposite where others landed since."""
        landed = from_json(LandPrepared, prepared)
        if await resolve(self._repo, landed.target) == landed.old:
            return None
        author = self._repo.settings.sign(int(self._clock.now()))
        try:
            wording = Wording(message=message, author=author)
            back = await undo_landing(self._repo, self._merger, landed, wording)
            if isinstance(back, MergedTrees):
                paths = ", ".join(os.fsdecode(one.path) for one in back.conflicts)
                return f"what landed since conflicts with taking it back: {paths}"
            done = back if isinstance(back, LandRefused) else await self._go_back(back)
        except DirtyTarget as dirty:
            return f"{dirty}. {_WAYS_BACK}"
        if isinstance(done, LandRefused):
            return f"{done.reason} {done.detail}".strip()
        return None

    async def _go_back(self, back: LandPrepared) -> Landed | LandRefused:
        """Land the way back, noted on disk so that a death in between can be repaired."""
        note = self._layout.root / _UNDOING
        forget = partial(note.unlink, missing_ok=True)
        await to_thread.run_sync(write_atomically, note, to_json(back).encode())
        try:
            done = await land(self._repo, back)
        except WorkspaceError:  # nothing was written
            await to_thread.run_sync(forget)
            raise
        await to_thread.run_sync(forget)
        return done

    async def land(self, effect: e.Land, ready: ReadyToLand) -> str | None:
        """Move the target by compare-and-swap, its checkout along with it."""
        prepared = from_json(LandPrepared, ready.detail)
        try:
            if effect.prepared is None:
                done = await land(self._repo, prepared)
            else:
                done = await recover_landing(self._repo, prepared, self._layout.trash)
        except DirtyTarget as dirty:
            return f"{dirty}. {dirty.hint}"
        if isinstance(done, Landed):
            return None
        return f"{done.reason} {done.detail}".strip()


def _blocked(what: str, paths: Sequence[bytes]) -> Refusal:
    """A refusal that names the ways out."""
    names = tuple(map(os.fsdecode, paths))
    hint = (
        "Commit or stash them; or land with `--edits carry` (they stay as they are, on top),"
        " `--edits commit` (they become a commit of yours first), `--edits wait`,"
        " or `--to` another branch."
    )
    return Refusal(reason=f"{what}. {hint}", in_the_way=names)


def _edits_message(state: RunState, effect: e.Land) -> str:
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
    )


def _landing_message(state: RunState, w: Worker) -> str:
    words = w.prompt or state.plan.step(w.id.step).run or ""
    first = next((line.strip() for line in words.splitlines() if line.strip()), "")
    subject = f"{w.id}: {first}" if first else f"{w.id}"
    return f"{subject[:72]}\n"


def _is_of_batch(w: Worker, tree: str) -> bool:
    """That this tree is good was concluded from the result of a batch that it is part of."""
    known = w.check
    return known is not None and known.passed and known.batch is not None and known.tree == tree


def _trailers(
    state: RunState, w: Worker, effect: e.Land, *, tree: str | None
) -> tuple[tuple[str, str], ...]:
    check, known = state.plan.step(w.id.step).check, w.check
    rows: list[tuple[str, str]] = [
        ("Plait-Run", state.run),
        ("Plait-Worker", str(w.id)),
        ("Plait-Attempt", str(w.attempt)),
    ]
    if w.left_out:
        rows.append(("Plait-Left-Out", str(len(w.left_out))))
    if check is not None:
        is_proved = known is not None and known.passed and tree is not None and known.tree == tree
        is_overruled = effect.is_despite_check and not is_proved
        rows.append((_CHECK, "overruled" if is_overruled else f"passed: {check}"))
    return tuple(rows)
