"""The site that is this machine: workspaces and processes on the disk of whoever calls.

Setup, checks and command steps run agent-written code, so they are attempts like any other: under
a keeper, in the worker's own surroundings, with their output recorded.
"""

import errno
import os
import platform
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread

from engine.agents.base_urls import check_base_urls
from engine.agents.command import shell_launch
from engine.agents.contract import AgentLaunch, LaunchRequest
from engine.agents.models import check_models
from engine.agents.registry import adapter_named, bare_request, check_startable
from engine.beneath import remove_tree
from engine.errors import HostLost, WorkspaceError
from engine.host.seam import AttemptSpec, Host, Stream
from engine.ids import AGENT, AttemptId, RunId, WorkerId
from engine.keeper import files, proc
from engine.limits import Dimension, Enforcement, Limits
from engine.messages.questions import TrashItem
from engine.messages.results import Entrance
from engine.phases import StopCause
from engine.plan.model import (
    AgentChoice,
    Runtime,
    WorkspaceRules,
)
from engine.private import private_folder
from engine.sandbox.ladder import check_required
from engine.sandbox.tamper import News, changed_since
from engine.site.place import Place
from engine.site.seam import (
    Ability,
    CommandEnd,
    Launched,
    SiteReport,
    SpaceAddress,
    Terms,
    Workplace,
)
from engine.site.seeds import Seedling, Seeds
from engine.site.shelter import Job, Shelter, Sheltered, place, user_home
from engine.site.spaces import FolderSpaces, GitSpaces, spaces_at
from engine.site.trash import bring_back, drop_empty, purge, trash_items

TAIL_BYTES = 16 * 1024
MARK = "PLAIT_MARK"
BROKEN_OFF = frozenset({StopCause.USER, StopCause.SHUTDOWN, StopCause.KEEPER_LOST})


@dataclass
class Ports:
    """The leases of one engine, over all its runs."""

    _held: dict[str, dict[str, str]] = field(default_factory=dict)

    def lease(self, holder: str, wanted: Mapping[str, int]) -> dict[str, str]:
        """Lease ports and return their variables: `PORT`, or `PORT`, `PORT_2`, … for several.

        The same holder gets the same ports again until they are released.
        """
        if holder not in self._held and wanted:
            taken = {port for held in self._held.values() for port in held.values()}
            names = [
                name if n == 1 else f"{name}_{n}"
                for name, count in wanted.items()
                for n in range(1, count + 1)
            ]
            self._held[holder] = dict(zip(names, _free(len(names), taken), strict=True))
        return dict(self._held.get(holder, {}))

    def release(self, holder: str) -> None:
        """Return a holder's ports for others to use."""
        self._held.pop(holder, None)


class LocalSite:
    """The site of one engine on its own machine.

    `tethers` says of which runs the attempts end with the engine, however it ends.
    """

    def __init__(
        self,
        place: Place,
        *,
        host: Host,
        shelter: Shelter,
        environment: Mapping[str, str],
        tethers: Callable[[RunId], bool],
    ) -> None:
        self.host = host
        self.seeds = Seeds(place.workspaces / ".trusted-seeds", environment)
        self.kinds = spaces_at(place, shelter)
        self.ports = Ports()
        self._shelter = shelter
        self._layout = place.layout
        self.repo = place.repo
        self._root = place.workspaces
        self._tethers = tethers
        self._sheltered: dict[AttemptId, Sheltered] = {}
        self._seedlings: dict[AttemptId, Seedling] = {}

    @property
    def abilities(self) -> frozenset[Ability]:
        """Return all abilities; without walls there is no sandbox to come into."""
        every = frozenset(Ability)
        return every if self._shelter.fences else every - {Ability.ENTER}

    @property
    def can_confine(self) -> bool:
        """Return whether agents here can be kept from the content of the user's files."""
        return self._shelter.can_confine

    async def describe(self) -> SiteReport:
        """Return what this machine enforces, has to give, and runs."""
        capacity = await self.host.capacity()
        versions = await anyio.to_thread.run_sync(own_versions)
        if self.repo is not None:
            said = await self.repo.read("version")
            versions["git"] = said.decode(errors="replace").strip().removeprefix("git version ")
        return SiteReport(rows=self._shelter.report, capacity=capacity, versions=versions)

    def spaces(self, terms: Terms) -> GitSpaces | FolderSpaces:
        """Return the workspaces of the kind that a plan names."""
        kind = terms.runtime.isolation
        if kind not in self.kinds:
            raise WorkspaceError(
                f"{kind} needs a git repository, and this folder is not in one",
                hint="Run `git init`, or set `runtime.isolation_strategy: directory`.",
            )
        return self.kinds[kind]

    async def recover(self) -> None:
        """Remove what engines that died had made for workers that have not begun."""
        if self.repo is not None:
            git = self.spaces(Terms(runtime=Runtime(), workspace=WorkspaceRules()))
            if isinstance(git, GitSpaces):
                await git.clear_ahead()

    async def admit(self, terms: Terms, rows: tuple[Enforcement, ...] | None = None) -> None:
        """Refuse a run unless everything it requires is enforced, here or as `rows` say.

        What counts is not the best this machine can do, but what is left of it with the openings
        and the network of this run. A network that is to be closed is required by that alone.
        """
        found = await anyio.to_thread.run_sync(self._shelter.report_on, terms.runtime)
        check_required([Dimension(name) for name in terms.runtime.require], rows or found)

    async def check_agents(
        self, agents: tuple[AgentChoice, ...], runtime: Runtime, folder: str
    ) -> None:
        """Refuse agents that cannot be started here, and models or providers not to be had."""
        environ = {**self._shelter.environ, "HOME": user_home(self._shelter.environ)}
        more = {"folder": folder, "is_confined": self.can_confine}
        launches = []
        for choice in agents:
            if choice.has_vendor:
                request = bare_request(choice, runtime, environ, **more)
                launch = await anyio.to_thread.run_sync(check_startable, request)
                launches.append((request, launch))
        await check_base_urls(launches)
        await check_models(launches)

    async def report(self, at: Workplace) -> tuple[Enforcement, ...]:
        """Return how each dimension holds for one attempt, with its own network and limits."""
        return await self._shelter.report_for(await self._job(at))

    # Processes.

    async def _job(self, at: Workplace, env: Mapping[str, str] | None = None) -> Job:
        is_own = at.address.attempt.role == AGENT
        return Job(
            attempt=at.attempt,
            workspace=at.address.path,
            terms=at.terms,
            limits=at.limits,
            git=await self.spaces(at.terms).places(at.address) if is_own else None,
            env={**(env or {}), **(self._lease(at) if is_own else {})},
        )

    def _lease(self, at: Workplace) -> Mapping[str, str]:
        holder = f"{at.attempt.run}/{at.attempt.worker}"
        return self.ports.lease(holder, at.terms.workspace.ports)

    async def free_ports(self, run: RunId, worker: WorkerId) -> None:
        """Return a worker's ports for others to use."""
        self.ports.release(f"{run}/{worker}")

    async def launch(
        self, at: Workplace, program: LaunchRequest | str, env: Mapping[str, str]
    ) -> Launched:
        """Start an agent or a shell command as the attempt itself, or find it started."""
        job = await self._job(at, env)
        if isinstance(program, str):
            launch = shell_launch(program)
        else:
            launch = await anyio.to_thread.run_sync(self._launch, job, program)
        await self._start(job, launch)
        return Launched(
            keeps_stdin=launch.keeps_stdin, login=launch.login, notes=launch.settings.lines
        )

    def _launch(self, job: Job, asked: LaunchRequest) -> AgentLaunch:
        home = self._layout.make(self._layout.home(job.attempt.run, job.attempt.worker))
        request = replace(
            asked,
            workspace=job.workspace,
            home=str(home),
            environment=self._shelter.environ,
            user_home=user_home(self._shelter.environ),
        )
        return adapter_named(request.choice.adapter).launch(request)

    async def _start(self, job: Job, launch: AgentLaunch) -> None:
        mark = f"{job.attempt.run}:{job.attempt}"
        sheltered = await anyio.to_thread.run_sync(self._surround, job, launch, mark)
        self._sheltered[job.attempt] = sheltered
        await self.host.start(
            AttemptSpec(
                attempt=job.attempt,
                directory=self._directory(job.attempt),
                argv=launch.argv,
                env=sheltered.env,
                cwd=str(Path(job.workspace) / job.terms.workspace.cwd),
                mark=mark,
                first_input=launch.first_input,
                keeps_stdin=launch.keeps_stdin,
                terminal=launch.terminal,
                limits=job.limits,
                is_tethered=job.served_port is not None or self._tethers(job.attempt.run),
                profile=sheltered.profile,
            )
        )

    def _directory(self, attempt: AttemptId) -> str:
        return str(self._layout.attempt(attempt))

    def _surround(self, job: Job, launch: AgentLaunch, mark: str) -> Sheltered:
        sheltered = self._shelter.make(
            job,
            reads=launch.reads,
            extra={**launch.env, **job.env, MARK: mark},
            has_terminal=launch.terminal is not None,
        )
        place(str(self._shelter.folders(job).home), launch.files)
        return sheltered

    async def is_known(self, attempt: AttemptId) -> bool:
        """Return whether the attempt was ever started, by this engine or by an earlier one."""
        return bool(await self.host.attempts([self._directory(attempt)]))

    async def stop(self, attempt: AttemptId) -> None:
        """End an attempt at once; whoever watches it learns of its end."""
        with suppress(HostLost):
            await self.host.cancel(attempt, StopCause.USER, grace_s=0)

    async def end(self, attempt: AttemptId) -> None:
        """End an attempt that nobody can watch any more, and wait until it is dead."""
        with anyio.CancelScope(shield=True):
            with suppress(HostLost):
                await self.host.cancel(attempt, StopCause.SHUTDOWN)
                await self._until_end(attempt)
            await self.forget(attempt)

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is kept for an attempt that is dead, and remove its surroundings."""
        await self.host.forget(attempt)
        sheltered = self._sheltered.pop(attempt, None)
        if sheltered is not None:
            await self._shelter.release(sheltered)

    async def change_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Change the kernel's limits of a living attempt; the host tells its keeper."""
        sheltered = self._sheltered.get(attempt)
        if sheltered is not None:
            await self._shelter.change_limits(sheltered, limits)

    async def run(self, at: Workplace, command: str) -> CommandEnd:
        """Run a shell command on an attempt's behalf to its end."""
        return await self.run_job(await self._job(at), command)

    async def serve(self, job: Job, command: str) -> None:
        """Start a program that goes on until it is ended, and is reached at a port of its job.

        Raises:
            EngineError: It cannot be started, and why.
        """
        await self._start(job, shell_launch(command))

    def tree_of(self, attempt: AttemptId) -> list[int]:
        """Return the processes of an attempt that lives here, parents first; it reads /proc."""
        with suppress(OSError):
            fd = files.open_directory(self._directory(attempt))
            try:
                kept = files.load(fd, files.KEEPER) or {}
            finally:
                os.close(fd)
            return proc.descendants(kept["keeper"]["pid"]) if kept else []
        return []

    async def run_job(self, job: Job, command: str) -> CommandEnd:
        """Run a shell command to its end; cancelling this ends the command first.

        One that ended before a crash is not run again; one that the crash broke off is.
        """
        first = job.attempt
        for n in count(1):
            role = first.role if n == 1 else f"{first.role}.{n}"
            again = replace(job, attempt=replace(first, role=role))
            was_known = await self.is_known(again.attempt)
            end = await self._run_once(again, command)
            if not (was_known and end.exit.cause in BROKEN_OFF):
                return end
        raise AssertionError  # count() has no end

    async def _run_once(self, job: Job, command: str) -> CommandEnd:
        try:
            await self._start(job, shell_launch(command))
            return await self._until_end(job.attempt)
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(HostLost):
                await self.host.cancel(job.attempt, StopCause.USER, grace_s=1.0)
                await self._until_end(job.attempt)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self.forget(job.attempt)

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

    # Folders.

    async def earlier(
        self, address: SpaceAddress, numbers: Sequence[int]
    ) -> tuple[SpaceAddress, ...]:
        """Return the workspaces of other attempts of the same worker that are still there."""
        places = [
            SpaceAddress(
                attempt=replace(address.attempt, number=number),
                path=str(Path(address.path).with_name(f"attempt_{number}")),
            )
            for number in numbers
        ]
        return tuple([one for one in places if await self.is_there(one)])

    async def is_there(self, address: SpaceAddress) -> bool:
        """Return whether a workspace is there."""
        return bool(address.path) and await anyio.to_thread.run_sync(os.path.isdir, address.path)

    async def written_since(self, runtime: Runtime, trees: Mapping[str, int]) -> News:
        """Return what was written in workspaces since a moment for each."""
        return await anyio.to_thread.run_sync(self._written_since, runtime, trees)

    def _written_since(self, runtime: Runtime, trees: Mapping[str, int]) -> News:
        if not self._shelter.may_write(runtime, self._root):
            return News(paths=(), is_whole=True)
        each = [changed_since([Path(tree)], since_ns) for tree, since_ns in trees.items()]
        paths = tuple(path for news in each for path in news.paths)
        return News(paths=paths, is_whole=all(news.is_whole for news in each))

    async def aside(self, at: Workplace) -> SpaceAddress:
        """Make an empty folder beside a workspace, for an attempt with a role of its own."""
        folder = Path(at.address.path).with_name(at.attempt.role)
        await anyio.to_thread.run_sync(private_folder, folder / at.terms.workspace.cwd)
        return SpaceAddress(
            attempt=replace(at.address.attempt, role=at.attempt.role), path=str(folder)
        )

    async def drop(self, address: SpaceAddress) -> None:
        """Remove such a folder, whatever is in it."""
        if address.attempt.role == AGENT:
            raise WorkspaceError(f"{address.path} is not a folder beside a workspace")
        await anyio.to_thread.run_sync(remove_tree, Path(address.path))

    async def sow(self, at: Workplace, *, is_users: bool) -> None:
        """Give a workspace what setup made earlier of the user's own files."""
        if at.terms.workspace.setup is None:
            return
        sow = partial(
            self.seeds.sow,
            Path(at.address.path),
            at.terms.workspace.setup,
            base=at.terms.runtime.base,
            is_users=is_users,
        )
        seedling = await anyio.to_thread.run_sync(sow)
        if seedling is not None:
            self._seedlings[at.attempt] = seedling

    async def reap(self, at: Workplace, *, is_well: bool) -> None:
        """Keep what setup has made for later workspaces, if it went well."""
        seedling = self._seedlings.pop(at.attempt, None)
        if seedling is not None:
            keep = partial(self.seeds.keep, seedling, is_well=is_well)
            await anyio.to_thread.run_sync(keep)

    async def enter(self, at: Workplace, *, is_collected: bool) -> Entrance:
        """Return how to start a human's program inside an attempt's sandbox."""
        job = await self._job(at)
        argv, env = await anyio.to_thread.run_sync(self._shelter.enter, job)
        if is_collected and not self._shelter.mounts:
            env = (*env, *_git_of(job))
        folder = str(Path(job.workspace) / job.terms.workspace.cwd)
        return Entrance(argv=argv, env=dict(env), folder=folder)

    async def tidy(self, run: RunId) -> None:
        """Remove the empty folders of a run that is over."""
        await anyio.to_thread.run_sync(drop_empty, self._root / run)

    async def trashed(self) -> tuple[TrashItem, ...]:
        """Return the contents of the trash here, newest first."""
        return tuple(await anyio.to_thread.run_sync(trash_items, self._layout.trash))

    async def restore(self, name: str) -> str:
        """Restore what is in the trash to its place; return the paths."""
        return await bring_back(self.repo, self._layout.trash, name)

    async def purge(self, now: float) -> None:
        """Delete what has been in the trash for long enough."""
        await anyio.to_thread.run_sync(purge, self._layout.trash, now)


def own_versions() -> dict[str, str]:
    """Return the versions of this program, and of what it runs on."""
    found = {
        "plait": version("plait"),
        "Python": platform.python_version(),
        "system": platform.platform(),
    }
    with suppress(PackageNotFoundError):  # an extra
        found["Ray"] = version("ray")
    return found


def _git_of(job: Job) -> tuple[tuple[str, str], ...]:
    """Return the variables git needs if the workspace's `.git` leads out of the sandbox."""
    git = job.git
    if git is None or git.private.is_relative_to(job.workspace):
        return ()
    return (("GIT_DIR", str(git.private)), ("GIT_WORK_TREE", job.workspace))


def _free(count: int, taken: set[str]) -> list[str]:
    """Return ports that nobody uses or has leased; hold all open while looking."""
    found: list[str] = []
    with ExitStack() as stack:
        while len(found) < count:
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if str(port) not in taken and _is_free_everywhere(port, stack):
                found.append(str(port))
    return found


def _is_free_everywhere(port: int, stack: ExitStack) -> bool:
    """Return whether nobody listens on IPv6 either: `localhost` leads there first."""
    if not socket.has_ipv6:
        return True
    try:
        probe = stack.enter_context(socket.socket(socket.AF_INET6))
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        probe.bind(("::1", port))
    except OSError as error:
        return error.errno != errno.EADDRINUSE  # a machine without IPv6 has nobody there
    return True
