"""Start things for a worker: its agent, and the commands that run on its behalf.

Setup, checks and command steps run agent-written code, so they are attempts like any other: under
a keeper, in the worker's own surroundings, with their output recorded.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread

from engine.agents.command import shell_launch
from engine.agents.contract import AgentLaunch
from engine.agents.placing import place
from engine.core.state import RunState
from engine.errors import HostLost
from engine.host.seam import AttemptExit, AttemptSpec, Host, Stream
from engine.ids import AttemptId, RunId
from engine.phases import StopCause
from engine.site.shelter import Job, Shelter, Sheltered
from engine.store.layout import Layout

TAIL_BYTES = 16 * 1024
MARK = "PLAIT_MARK"
BROKEN_OFF = frozenset({StopCause.USER, StopCause.SHUTDOWN, StopCause.KEEPER_LOST})


@dataclass(frozen=True, kw_only=True)
class CommandEnd:
    """The end of one of our commands, with the last of its output."""

    exit: AttemptExit
    tail: str

    @property
    def is_ok(self) -> bool:
        """Return whether it ended by itself with exit code 0."""
        return self.exit.exit_code == 0 and self.exit.cause is None

    @property
    def why(self) -> str:
        """Return one sentence on how it ended."""
        if self.exit.not_started is not None:
            return f"could not be started: {self.exit.not_started}"
        if self.exit.limit is not None:
            return f"was stopped by its limit, {self.exit.limit}"
        if self.exit.cause is not None:
            return f"was stopped ({self.exit.cause})"
        if self.exit.signal is not None:
            return f"was killed by signal {self.exit.signal}"
        return f"ended with exit code {self.exit.exit_code}"


class Starter:
    """Starts attempts of one engine on its host.

    `tethers` says of which runs the attempts end with the engine, however it ends.
    """

    def __init__(
        self, *, host: Host, shelter: Shelter, layout: Layout, tethers: Callable[[RunId], bool]
    ) -> None:
        self.host = host
        self.shelter = shelter
        self._layout = layout
        self._tethers = tethers

    def directory(self, attempt: AttemptId) -> str:
        """Return the attempt's own folder."""
        return str(self._layout.attempt(attempt))

    async def start(self, state: RunState, job: Job, launch: AgentLaunch) -> Sheltered:
        """Start an attempt, or find it started."""
        mark = f"{state.run}:{job.attempt}"
        sheltered = await anyio.to_thread.run_sync(self._surround, state, job, launch, mark)
        await self.host.start(
            AttemptSpec(
                attempt=job.attempt,
                directory=self.directory(job.attempt),
                argv=launch.argv,
                env=sheltered.env,
                cwd=str(Path(job.workspace) / state.plan.workspace.cwd),
                mark=mark,
                first_input=launch.first_input,
                keeps_stdin=launch.keeps_stdin,
                terminal=launch.terminal,
                limits=job.limits,
                is_tethered=self._tethers(job.attempt.run),
                profile=sheltered.profile,
            )
        )
        return sheltered

    def _surround(self, state: RunState, job: Job, launch: AgentLaunch, mark: str) -> Sheltered:
        sheltered = self.shelter.make(
            state,
            job,
            reads=launch.reads,
            extra={**launch.env, **job.env, MARK: mark},
            has_terminal=launch.terminal is not None,
        )
        place(str(self.shelter.folders(job).home), launch.files)
        return sheltered

    async def is_known(self, attempt: AttemptId) -> bool:
        """Return whether the attempt was ever started, by this engine or by an earlier one."""
        return bool(await self.host.attempts([self.directory(attempt)]))

    async def stop(self, attempt: AttemptId) -> None:
        """End an attempt at once; whoever watches it learns of its end."""
        with suppress(HostLost):
            await self.host.cancel(attempt, StopCause.USER, grace_s=0)

    async def end(self, attempt: AttemptId) -> None:
        """End an attempt that nobody can watch any more, and wait until it is dead."""
        with anyio.CancelScope(shield=True), suppress(HostLost):
            await self.host.cancel(attempt, StopCause.SHUTDOWN)
            await self._until_end(attempt)
            await self.host.forget(attempt)

    async def run_command(self, state: RunState, job: Job, command: str) -> CommandEnd:
        """Run a shell command to its end; cancelling this ends the command first.

        One that ended before a crash is not run again; one that the crash broke off is.
        """
        first = job.attempt
        for n in count(1):
            role = first.role if n == 1 else f"{first.role}.{n}"
            again = replace(job, attempt=with_role(first, role))
            was_known = await self.is_known(again.attempt)
            end = await self._run_once(state, again, command)
            if not (was_known and end.exit.cause in BROKEN_OFF):
                return end
        raise AssertionError  # count() has no end

    async def _run_once(self, state: RunState, job: Job, command: str) -> CommandEnd:
        sheltered = await self.start(state, job, shell_launch(command))
        try:
            return await self._until_end(job.attempt)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.host.cancel(job.attempt, StopCause.USER, grace_s=1.0)
                await self._until_end(job.attempt)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self.host.forget(job.attempt)
                await self.shelter.release(sheltered)

    async def _until_end(self, attempt: AttemptId) -> CommandEnd:
        tail, offset = b"", 0
        while True:
            chunk = await self.host.read(attempt, offset)
            for frame in chunk.frames:
                if frame.stream in {Stream.OUT, Stream.ERR}:
                    tail = (tail + frame.data)[-TAIL_BYTES:]
            offset = chunk.next_offset
            if chunk.end is not None:
                return CommandEnd(exit=chunk.end, tail=tail.decode(errors="replace"))


def with_role(attempt: AttemptId, role: str) -> AttemptId:
    """Return the same attempt under a role, for a command that runs on its behalf."""
    return replace(attempt, role=role)
