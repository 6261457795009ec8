"""Start the program of a worker for a human to look at, watch it, and end it without a trace.

It is an attempt like any other: under a keeper, in the worker's own sandbox and limits, so that it
reaches no more than its agent could. It runs in the workspace where that is there, else in a tree
laid out anew from the change. It ends with that, with its run, and with the engine however that
ends.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.core.feed import RunFeed
from engine.core.state import RunState, Worker
from engine.errors import EngineError, HostLost, WorkspaceError
from engine.git.checktree import CheckTree
from engine.host.seam import AttemptExit, Stream
from engine.ids import AttemptId
from engine.messages.events import ProgramServed
from engine.messages.served import Served, ServedState
from engine.patterns.background import Background, failure_in
from engine.phases import StopCause
from engine.plan.model import ServeRule
from engine.private import private_folder
from engine.proof.tampering import tell
from engine.site.listening import Listeners, listening
from engine.site.readiness import answers, is_page, is_said
from engine.site.seam import CommandEnd
from engine.site.shelter import Folders, GitPlaces, Job
from engine.site.sites import LOCAL
from engine.values import dataclass
from engine.work.served import LONGEST, Program
from engine.work.tools import Tools
from engine.work.workplace import address_of, terms_of

_ROLE, _TENANT = "serve", "tenant"
_HURRIES_S, _LOOKS_S = 0.1, 1.0
_PATIENCE_S = 10.0
_TAKEN = "a program that is not this worker's listens on its port"


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """Whose program is to be started, of which rule, on what."""

    state: RunState
    w: Worker
    rule: ServeRule
    commit: str


async def serve(
    tools: Tools, tasks: Background, state: RunState, w: Worker, *, live: RunFeed | None
) -> Served:
    """Begin to serve a worker's program, or find it served; return how it is.

    Raises:
        WorkspaceError: There is no program to start, or nothing to start it on.
    """
    rule = state.plan.workspace.serve
    if rule is None:
        raise WorkspaceError(
            "the manifest does not name a program to serve",
            hint="Give it `workspace: {serve: {command: …}}`; docs/pipeline.md has the keys.",
        )
    known = tools.served.find(state.run, w.id)
    if known is not None and not known.is_over:
        return known.view
    address = address_of(state, w)
    is_here = address.site in {"", LOCAL} and await tools.sites.near.is_there(address)
    commit = (w.change and w.change.head) or ""
    if not is_here and not (commit and tools.repo is not None):
        raise WorkspaceError(
            f"{w.id} has no workspace on this machine now, and no change to start from",
            hint="Serve it while it works, or once it has a change.",
        )
    program = Program(
        run=state.run,
        worker=w.id,
        view=Served(
            state=ServedState.STARTING if is_here else ServedState.PREPARING,
            attempt=w.attempt.number,
            is_own_tree=not is_here,
            since=tools.clock.now(),
        ),
        workspace=address.path if is_here else "",
        told=partial(_tell, tools, live),
    )
    tools.served.add(program)
    wanted = _Wanted(state=state, w=w, rule=rule, commit="" if is_here else commit)
    serving = _Serving(tools, live, wanted, program)
    tasks.start_soon(serving.go, failed=None)  # its view says why it ended
    program.told(program)
    return program.view


def _tell(tools: Tools, live: RunFeed | None, program: Program) -> None:
    if live is None:
        return
    is_known = tools.served.find(program.run, program.worker) is program
    served = program.view if is_known else None
    number = program.view.attempt
    live.mention(ProgramServed(worker=str(program.worker), attempt=number, served=served))


class _Serving:
    """The work on one program, from its start to its end."""

    def __init__(
        self, tools: Tools, live: RunFeed | None, wanted: _Wanted, program: Program
    ) -> None:
        self._tools = tools
        self._near = tools.sites.near
        self._live = live
        self._wanted = wanted
        self._program = program
        self._name = f"{_ROLE}-{token_hex(4)}"
        self._attempt = AttemptId(program.run, program.worker, program.view.attempt, self._name)
        self._offset = 0
        self._holder = f"{program.run}/{program.worker}/{self._name}"

    async def go(self) -> None:
        """Serve it until it ends or is ended; say what goes wrong, which ends nothing else."""
        program, why = self._program, "it was stopped"
        try:
            with program.scope:
                async with self._place() as job:
                    why = await self._served(job)
        except (EngineError, OSError, ExceptionGroup) as error:
            failure = failure_in(error)
            if failure is None:
                raise
            why = (
                "it was lost with its keeper"
                if isinstance(failure, HostLost)
                else f"could not be started: {failure}"
            )
        finally:
            self._near.ports.release(self._holder)
            self._move(ServedState.ENDED, note=why, url="")
            program.done.set()

    def _move(self, state: ServedState, **more: object) -> None:
        is_new = state is not self._program.view.state
        since = {"since": self._tools.clock.now()} if is_new else {}
        self._program.move(state=state, **since, **more)

    # Where it runs.

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[Job]:
        """Yield what is to be started; what was made for it goes afterwards."""
        state, w = self._wanted.state, self._wanted.w
        ports = self._ports()
        limits = replace(state.limits_of(w.id), time_seconds=None)
        rooms = self._tools.layout.served(state.run) / self._name
        address = address_of(state, w)
        job = Job(
            attempt=self._attempt,
            workspace=address.path,
            terms=terms_of(state.plan),
            limits=limits,
            env=ports,
            served_port=int(ports[self._wanted.rule.port]),
        )
        self._program.move(port=job.served_port)
        home = self._tools.layout.home(state.run, w.id)
        await anyio.to_thread.run_sync(_note, rooms, self._attempt)
        try:
            if self._wanted.commit:
                yield await self._laid_out(job, rooms)
            else:
                git = await self._near.spaces(job.terms).places(address)
                # Of its own, for its agent may be at work; HOME is where setup has put things.
                folders = replace(Folders.below(rooms), home=home)
                yield replace(job, git=git, folders=folders)
        finally:
            with anyio.CancelScope(shield=True):
                written = _folders_of(self._tools, self._attempt)
                for folder in (self._tree.parent, *written, rooms):
                    await anyio.to_thread.run_sync(remove_tree, folder)

    @property
    def _tree(self) -> Path:
        """Return where a tree is laid out anew: where workspaces are, which no sandbox hides."""
        return served_root(self._tools.workspaces, self._program.run) / self._name / "tree"

    def _ports(self) -> Mapping[str, str]:
        """Lease ports of its own: those of the worker may be in use by its agent."""
        rule, wanted = self._wanted.rule, dict(self._wanted.state.plan.workspace.ports)
        names = {
            name if n == 1 else f"{name}_{n}" for name, m in wanted.items() for n in range(1, m + 1)
        }
        if rule.port not in names:
            wanted[rule.port] = 1
        return self._near.ports.lease(self._holder, wanted)

    async def _laid_out(self, job: Job, rooms: Path) -> Job:
        """Lay the change's files out in surroundings that no agent had a hand in, and set them up.

        Raises:
            WorkspaceError: They cannot be, and why.
        """
        wanted = self._wanted
        await anyio.to_thread.run_sync(private_folder, self._tree.parent)
        place = CheckTree(path=self._tree, folder=rooms / "made")
        landings = self._tools.workshops.of(wanted.state.plan).landings
        borrowed = await landings.lay_out(wanted.state, place, wanted.commit)
        git = GitPlaces(private=Path(place.git_dir), objects=tuple(map(Path, borrowed)))
        job = replace(
            job, workspace=str(self._tree), git=git, folders=Folders.below(rooms / "surroundings")
        )
        setup = wanted.state.plan.workspace.setup
        if setup is not None:
            end = await self._near.run_job(replace(job, attempt=_setup_of(self._attempt)), setup)
            if not end.is_ok:
                raise WorkspaceError(f"setup {end.why}")
        return job

    # While it runs.

    async def _served(self, job: Job) -> str:
        """Run it until it ends; return how it ended. Cancelling this ends it first."""
        self._move(ServedState.STARTING)
        proof = self._tools.proof
        before = await proof.look(self._wanted.state, job.attempt)
        try:
            await self._near.serve(job, self._wanted.rule.command)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, job)
                end = await self._read(job.attempt)
                tasks.cancel_scope.cancel()
            return CommandEnd(exit=end, tail="").why
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(job.attempt)
                if self._live is not None:
                    found = await proof.compare(self._live, job.attempt.worker, before)
                    own = replace(job.attempt, role="agent")
                    tell(self._live, found, own, at=self._tools.clock.now())

    async def _end(self, attempt: AttemptId) -> None:
        """End it: asked first, then made to; wait until it is dead."""
        with suppress(HostLost):
            await self._near.host.cancel(attempt, StopCause.USER)
            while True:
                chunk = await self._near.host.read(attempt, self._offset)
                self._offset = chunk.next_offset
                if chunk.end is not None:
                    break
        await self._near.forget(attempt)

    async def _read(self, attempt: AttemptId) -> AttemptExit:
        """Follow what it writes to its end."""
        rest: dict[Stream, str] = {}
        while True:
            chunk = await self._near.host.read(attempt, self._offset)
            for frame in chunk.frames:
                if frame.stream in {Stream.OUT, Stream.ERR}:
                    text = rest.get(frame.stream, "") + frame.data.decode(errors="replace")
                    *lines, last = text.replace("\r\n", "\n").split("\n")
                    rest[frame.stream] = last[:LONGEST]  # no more of a line is ever shown
                    for line in lines:
                        self._program.say(line)
            self._offset = chunk.next_offset
            if chunk.end is not None:
                for line in filter(None, rest.values()):
                    self._program.say(line)
                return chunk.end

    async def _watch(self, job: Job) -> None:
        """Look again and again if it is ready; end it when its run is stopped."""
        began, stopped = anyio.current_time(), self._stop
        while True:
            found = await anyio.to_thread.run_sync(self._look, job)
            is_ready = await self._is_ready(found, job.served_port or 0)
            if is_ready:
                self._move(ServedState.READY, note="", url=f"http://localhost:{job.served_port}/")
            else:
                is_late = anyio.current_time() - began > _PATIENCE_S
                note = self._why_not(found, is_late=is_late)
                self._move(ServedState.STARTING, note=note, url="")
            if self._stop is not stopped:
                self._program.scope.cancel()
            is_new = anyio.current_time() - began < _PATIENCE_S
            await anyio.sleep(_HURRIES_S if is_new and not is_ready else _LOOKS_S)

    @property
    def _stop(self) -> object:
        """Return the wish to stop the run, if there is one."""
        return self._live.state.stop if self._live is not None else None

    def _look(self, job: Job) -> Listeners:
        is_closed = job.terms.runtime.holes.network.mode != "open"
        tree = partial(self._near.tree_of, job.attempt)
        found = listening(tree, job.served_port or 0, is_closed=is_closed)
        if (
            found.is_taken
        ):  # a process may be missed while its parent ends: nobody is accused by that
            return listening(tree, job.served_port or 0, is_closed=is_closed)
        return found

    async def _is_ready(self, found: Listeners, port: int) -> bool:
        """Return whether it is ready; once it was, it only has to go on listening."""
        if found.is_taken or port not in found.own:
            return False
        ready = self._wanted.rule.ready
        if not ready or self._program.view.state is ServedState.READY:
            return True
        if is_page(ready):
            return await answers(port, ready)
        return is_said(self._program.lines, ready)

    def _why_not(self, found: Listeners, *, is_late: bool) -> str:
        """Return what keeps it from being ready; nothing where it may only need its time."""
        port, ready = self._program.view.port, self._wanted.rule.ready
        if found.is_taken:
            return _TAKEN
        if port in found.own:
            if not is_late:
                return ""
            return (
                f"{ready} does not answer yet"
                if is_page(ready)
                else f"it has not printed {ready!r} yet"
            )
        if found.own:
            others = ", ".join(map(str, sorted(found.own)))
            return f"it listens on {others}, not on ${self._wanted.rule.port} ({port})"
        return f"nothing listens on ${self._wanted.rule.port} ({port}) yet" if is_late else ""


def served_root(workspaces: Path, run: str) -> Path:
    """Return where the trees of a run's served programs are laid out; no step has that name."""
    return workspaces / run / ".served"


async def sweep(tools: Tools) -> None:
    """End what an engine that was killed still served, and remove what it had made for that.

    Its keepers have ended it by now, unless they were killed too.
    """
    near, layout = tools.sites.near, tools.layout
    for rooms, tenant in await anyio.to_thread.run_sync(_tenants, layout.runs):
        for attempt in (tenant, _setup_of(tenant)):
            if await near.is_known(attempt):  # which takes it over
                await near.end(attempt)
        tree = served_root(tools.workspaces, tenant.run) / tenant.role
        for folder in (tree, *_folders_of(tools, tenant), rooms):  # the note goes last
            await anyio.to_thread.run_sync(remove_tree, folder)


def _setup_of(attempt: AttemptId) -> AttemptId:
    """Return the attempt that sets the files of a served program up."""
    return replace(attempt, role=f"{attempt.role}-setup")


def _folders_of(tools: Tools, attempt: AttemptId) -> tuple[Path, ...]:
    """Return where the recordings of a program and of its setup are."""
    return tools.layout.attempt(attempt), tools.layout.attempt(_setup_of(attempt))


def _note(rooms: Path, attempt: AttemptId) -> None:
    """Write down whose rooms these are, before anything is started there."""
    private_folder(rooms)
    (rooms / _TENANT).write_text(str(attempt), encoding="utf-8")


def _tenants(runs: Path) -> list[tuple[Path, AttemptId]]:
    notes = runs.glob(f"*/.served/*/{_TENANT}")
    return [(note.parent, AttemptId.parse(note.read_text(encoding="utf-8"))) for note in notes]
