"""Lead into an engine of this process: commands, questions and events come through here."""

from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

from engine.core import facts as f
from engine.errors import EngineError
from engine.ids import RunId
from engine.messages import commands as c
from engine.messages.events import Landed, Told
from engine.messages.patches import Show, ViewPatch
from engine.messages.questions import A, Ask
from engine.phases import Phase
from engine.run.answers import ANSWERS
from engine.run.judge import judge
from engine.run.moments import moments_for
from engine.run.runs import Runs, split_run


class Coordinator:
    """An engine as whoever uses it sees it."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    async def ask(self, question: Ask[A]) -> A:
        """Answer a question.

        Raises:
            EngineError: It cannot be answered, and why.
        """
        found: A = await ANSWERS[type(question)](self.runs, question)
        return found

    def events(
        self, after_seq: int = 0, *, run: str | None = None, show: Show | None = None
    ) -> AsyncIterator[Told]:
        """Tell what happened behind a number, then what happens; show what is new of the views."""
        if show is None:
            return self.runs.tools.bus.subscribe(run, after_seq)
        return self._events_shown(after_seq, run, show)

    async def _events_shown(
        self, after_seq: int, run: str | None, show: Show
    ) -> AsyncIterator[Told]:
        async for news in self.watch(after_seq, run=run):
            if isinstance(news, ViewPatch):
                show(news)
            else:
                yield news

    def watch(
        self, after_seq: int = 0, *, run: str | None = None
    ) -> AsyncIterator[Told | ViewPatch]:
        """Yield the same events, and before them what is new of the views."""
        return self.runs.tools.bus.watch(self.runs.views().news, run, after_seq)

    async def command(self, command: c.Command) -> c.Reply:
        """Carry out a command, or say why not."""
        runs = self.runs
        name, command = split_run(command)
        live = runs.find(name)
        if live is None:
            try:
                name = await runs.name_of(name)
                if not name:
                    return c.Refused("there is no run", hint="Start one: plait run")
                live = await runs.resume(RunId(name))
            except EngineError as error:
                return c.Refused(str(error), hint=error.hint)
        if live.is_unwritable and not isinstance(command, c.StopRun | c.StopWorker):
            trouble = live.troubles.told
            why = trouble.what if trouble is not None else "its journal cannot be written"
            return c.Refused(
                f"plait cannot record anything: {why}", hint=trouble.help if trouble else ""
            )
        # Read before judging: an await between verdict and facts would let the state change.
        moments = await moments_for(runs, live, command)
        verdict = judge(live.state, command, at=runs.tools.clock.now(), moments=moments)
        if isinstance(verdict, c.Refused):
            return verdict
        runs.note_command(live, type(command).__name__, getattr(command, "worker", None) or "")
        for fact in verdict.facts:
            live.feed(fact)
        if live.is_unwritable:  # what was fed waits, and nobody would tell the agents
            stopped = [one.worker for one in verdict.facts if isinstance(one, f.StopRequested)]
            live.end_agents(stopped or live.state.workers)
            return c.Accepted(f"{verdict.note}; plait records this as soon as it can")
        return c.Accepted(verdict.note)

    async def land(self, command: c.Land) -> Landed | c.Conflicted | c.Refused:
        """Land a worker's change and wait for what becomes of it."""
        runs = self.runs
        with suppress(EngineError):  # a run that nobody works on is taken up; else we are told why
            await runs.worker(command.worker, run=command.run)
        before = runs.find(split_run(command)[0])
        # Taken before the command, so that the event of this landing cannot be missed.
        after = before.seq if before is not None else 0
        reply = await self.command(command)
        if isinstance(reply, c.Refused):
            return reply
        live, found = await runs.worker(command.worker, run=command.run)
        w = await live.wait_phase(found.id, lambda phase: phase is not Phase.LANDING)
        if w.phase is Phase.CONFLICTED and w.review.conflict is not None:
            return c.Conflicted(worker=str(w.id), paths=w.review.conflict.paths)
        if w.phase is not Phase.LANDED:
            return c.Refused(w.error or f"{w.id} is {w.phase}: it did not land")
        async with aclosing(runs.tools.bus.subscribe(live.run, after)) as news:
            async for told in news:
                if isinstance(told.event, Landed) and told.event.worker == str(w.id):
                    return told.event
        return c.Refused("the engine was closed", hint=f"{w.id} has landed.")

    async def release(self, worker: str) -> bool:
        """Release a workspace whose every byte is provably kept; return whether it is gone.

        Raises:
            WorkspaceError: There is no such worker.
        """
        live, found = await self.runs.worker(worker)
        return await live.release(found.id)
