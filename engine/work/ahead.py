"""Fetch help for conflicts ahead, so that it is there when a human looks at them."""

from functools import partial

import anyio

from engine.errors import EngineBug, EngineError, whole_of
from engine.ids import RunId, WorkerId
from engine.limits import Usage
from engine.merge import Formatted, HunkKey, OutsideAnswer
from engine.messages.merging import ConflictView
from engine.patterns.background import Background
from engine.phases import Phase
from engine.review.assisting import Assisted, Spent, is_over
from engine.review.desk import MergeDesk
from engine.review.inquiry import Inquiry
from engine.work.asking import ask_agent, bounds_of
from engine.work.helping import format_texts
from engine.work.run_ports import RunPort
from engine.work.tools import Tools

_FIRST_S = 1.0
"""So long nothing begins: an engine that only carries out one command ends before that."""


class Ahead:
    """Helps with the conflicts of each worker as soon as it has some, in the background."""

    def __init__(self, tools: Tools, tasks: Background) -> None:
        self._tools = tools
        self._tasks = tasks
        self._waiting: dict[RunId, frozenset[WorkerId]] = {}
        self._busy: dict[tuple[RunId, WorkerId], anyio.CancelScope] = {}
        self._asking: dict[tuple[RunId, WorkerId], tuple[HunkKey, anyio.CancelScope]] = {}

    def look(self, live: RunPort) -> None:
        """Begin where a worker has met conflicts; end where they are gone."""
        if not live.state.plan.review.has_help:
            return
        workers = live.state.workers.values()
        now = frozenset(w.id for w in workers if w.phase is Phase.CONFLICTED)
        before = self._waiting.get(live.state.run, frozenset())
        self._waiting[live.state.run] = now
        for worker in before - now:
            if scope := self._busy.get((live.state.run, worker)):
                scope.cancel()
        for worker in now - before:
            self.begin(live, worker)

    def begin(self, live: RunPort, worker: WorkerId) -> None:
        """Help with what is open and has had no help yet, unless that is under way."""
        key = live.state.run, worker
        if live.state.plan.review.has_help and key not in self._busy:
            self._busy[key] = anyio.CancelScope()
            failed = partial(_note, live, worker)
            self._tasks.start_soon(self._help, live, worker, failed=failed)

    def forget(self, run: RunId) -> None:
        """End all help of a run that is unloaded; it begins anew where the run is loaded again."""
        self._waiting.pop(run, None)
        for (known, _), scope in self._busy.items():
            if known == run:
                scope.cancel()

    async def _help(self, live: RunPort, worker: WorkerId) -> None:
        key = live.state.run, worker
        scope = self._busy[key]
        try:
            with scope:
                await self._tools.clock.sleep(_FIRST_S)
                await self._format(live, worker)
                await self._assist(live, worker)
        finally:
            del self._busy[key]
            # It conflicts again already: whoever saw that found this help still under way.
            if scope.cancel_called and worker in self._waiting.get(live.state.run, ()):
                self.begin(live, worker)

    async def _format(self, live: RunPort, worker: WorkerId) -> None:
        desk = self._desk(live)
        commit, files = await desk.unformatted(live.state, worker)
        if files:
            w = live.state.workers[worker]
            found: dict[bytes, Formatted | None] = {one.path: None for one in files}
            try:
                found |= await format_texts(self._tools, live, w, files, commit=commit)
            except EngineBug:
                raise
            except (EngineError, OSError) as error:  # it is not tried again
                _note(live, worker, error)
            await desk.formatted(live, worker, found)

    async def _assist(self, live: RunPort, worker: WorkerId) -> None:
        """Ask about one hunk after the other, until all are decided or the budget is used up."""
        rule, desk = live.state.plan.review.assist, self._desk(live)
        while rule is not None and live.state.workers[worker].begun.workspace is not None:
            await self._tools.ledger.share([rule.agent])
            if live.state.is_paused or self._tools.ledger.hold(rule.agent) is not None:
                return
            question, so_far = await desk.unsure(live.state, worker)
            if question is None:
                return
            inquiry, _ = await desk.ask(live, worker, question, by=rule.agent.name, is_ahead=True)
            await self._ask(live, worker, inquiry, so_far)

    async def _ask(
        self, live: RunPort, worker: WorkerId, inquiry: Inquiry, so_far: Assisted
    ) -> None:
        """Ask about one hunk, unless a human decides it before there is an answer."""
        rule = live.state.plan.review.assist
        if rule is None:
            return
        found: OutsideAnswer | str = ""
        used = [Usage()]
        began = self._tools.clock.monotonic()
        bounds = bounds_of(rule, so_far, live.state.limits_of(worker))
        scope = self._asking[live.state.run, worker] = (inquiry.key, anyio.CancelScope())
        try:
            with scope[1]:
                w = live.state.workers[worker]
                answer = await ask_agent(
                    self._tools,
                    live.state,
                    w,
                    choice=rule.agent,
                    inquiry=inquiry,
                    bounds=bounds,
                    count=used.append,
                )
                found = answer._replace(is_ahead=True)
        except EngineBug:
            raise
        except (EngineError, OSError) as error:
            found = f"{rule.agent.name}: {error}"
        finally:
            del self._asking[live.state.run, worker]
            with anyio.CancelScope(shield=True):
                spent = Spent(used[-1], self._tools.clock.monotonic() - began)
                await self._desk(live).answered(live, worker, inquiry.key, found, spent=spent)

    def decided(self, live: RunPort, worker: WorkerId, view: ConflictView) -> None:
        """Stop asking about a hunk that a human has decided."""
        key, scope = self._asking.get((live.state.run, worker), (None, None))
        if scope is not None and key is not None and is_over(view, key):
            scope.cancel()

    def _desk(self, live: RunPort) -> MergeDesk:
        return self._tools.workshops.of(live.state.plan).merging(live.state)


def _note(live: RunPort, worker: WorkerId, error: Exception) -> None:
    """Show in a worker's log why there is no help, unless nobody needs it any more."""
    w = live.state.workers[worker]
    if w.phase is Phase.CONFLICTED:
        said = f"plait could not help with the conflicts: {whole_of(error)}"
        live.note(worker, w.attempt.number, said)
