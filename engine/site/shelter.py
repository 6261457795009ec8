"""Make an attempt's surroundings, its environment and its profile, from plan and machine."""

import os
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self

import anyio
import anyio.to_thread

from engine.agents.contract import LaunchFile
from engine.beneath import Taken, Why, write_file
from engine.errors import AgentError, MechanismMissing, WorkspaceError
from engine.ids import AttemptId
from engine.limits import Dimension, Enforcement, Limits
from engine.plan.model import IsolationStrategy, Runtime
from engine.sandbox.confine import check_network, confine, looking, one_off, release, set_limits
from engine.sandbox.environment import environment
from engine.sandbox.ladder import (
    at_best,
    best_request,
    check_required,
    files_rung,
    keeps_content,
    report,
)
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.profile import Profile
from engine.sandbox.reach import may_write
from engine.sandbox.request import ConfineRequest, NetworkAccess, SandboxHoles
from engine.sandbox.view import look
from engine.site.seam import Terms
from engine.store.layout import Layout
from engine.values import dataclass

_NETWORKS = {
    "open": NetworkAccess.OPEN,
    "none": NetworkAccess.NONE,
    "allow": NetworkAccess.ALLOW_LIST,
}


@dataclass(frozen=True, kw_only=True)
class Sheltered:
    """One attempt's surroundings, ready to be started in."""

    profile: Profile
    env: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class GitPlaces:
    """The places of an attempt's private repository and of what it borrows from."""

    private: Path
    git_file: Path | None = None
    objects: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Folders:
    """The folders an attempt has beside its workspace: HOME, temporary files, package caches."""

    home: Path
    temp: Path
    cache: Path

    @classmethod
    def below(cls, folder: Path) -> Self:
        """Return the three folders below one."""
        return cls(home=folder / "home", temp=folder / "tmp", cache=folder / "cache")

    def made(self, layout: Layout) -> Self:
        """Make those that are missing."""
        for folder in (self.home, self.temp, self.cache):
            layout.make(folder)
        return self


@dataclass(frozen=True, kw_only=True)
class Job:
    """A program to start for an attempt, and its place.

    Attributes:
        folders: HOME and the like; None for those the worker keeps over its attempts.
        served_port: A port at which this machine is to reach the program; such a program ends with
            the engine, whatever becomes of its run.
    """

    attempt: AttemptId
    workspace: str
    terms: Terms
    limits: Limits
    git: GitPlaces | None = None
    folders: Folders | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    served_port: int | None = None


class Shelter:
    """Makes the surroundings of every attempt of one engine."""

    def __init__(
        self, *, machine: MachineSupport, layout: Layout, project: Path, environ: Mapping[str, str]
    ) -> None:
        self.machine = machine
        self.environ = dict(environ)
        self._layout = layout
        self._project = project
        self._reports: dict[Hashable, tuple[Enforcement, ...]] = {}

    @cached_property
    def report(self) -> tuple[Enforcement, ...]:
        """Return what this machine can enforce, for the report of a site."""
        return at_best(self.machine)

    async def report_for(self, job: Job) -> tuple[Enforcement, ...]:
        """Return how each dimension holds for one attempt, with its own network and limits."""
        clone = job.git.private if job.git else None
        request = replace(
            asked_by(job.terms.runtime, self.environ), private_clone=clone, limits=job.limits
        )
        if request.holes != SandboxHoles():  # each is looked for
            return await anyio.to_thread.run_sync(report, self.machine, request, {})
        alike = (clone is None, request.network, request.allowed_hosts, request.limits)
        if alike not in self._reports:
            self._reports[alike] = report(self.machine, request, {})
        return self._reports[alike]

    @cached_property
    def can_confine(self) -> bool:
        """Return whether agents here can be kept from the content of the user's files."""
        return keeps_content(self.machine, best_request())

    @property
    def fences(self) -> bool:
        """Return whether anything here holds a worker inside its files."""
        return files_rung(self.machine) is not None

    @property
    def mounts(self) -> bool:
        """Return whether a worker's view of the machine is made of mounts."""
        return files_rung(self.machine) is Mechanism.BWRAP

    def report_on(self, runtime: Runtime) -> tuple[Enforcement, ...]:
        """Return how each dimension holds for a plan, with its openings and its network.

        Raises:
            MechanismMissing: Its network is to be closed, and cannot be.
        """
        asked = asked_by(runtime, self.environ)
        check_network(self.machine, asked)
        return report(self.machine, asked, {})

    def may_write(self, runtime: Runtime, path: Path) -> bool:
        """Return whether a run's agents can write in the project or its repository."""
        return may_write(self.machine, asked_by(runtime, self.environ), path)

    @asynccontextmanager
    async def looking(
        self, job: Job, *, writable: tuple[Path, ...]
    ) -> AsyncIterator[tuple[str, ...]]:
        """Yield words that run a short program of ours inside an attempt's view, to look only."""
        found = await anyio.to_thread.run_sync(self._request, job)
        view = looking(self.machine, replace(found, writable=writable))
        words = await anyio.to_thread.run_sync(view.__enter__)
        try:
            yield words
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(view.__exit__, None, None, None)

    def enter(self, job: Job) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return words that run a human's program in an attempt's view, and its environment.

        Nothing is left behind, so nothing has to be taken away: there are no cgroups. Where only
        some hosts are allowed there is no network, for the one who lets them through is not there.

        Raises:
            WorkspaceError: No rung of file isolation holds here.
        """
        rung = files_rung(self.machine)
        if rung is None:
            raise WorkspaceError(
                "nothing on this machine can confine a program to the worker's files",
                hint="`plait doctor` says what is missing.",
            )
        asked = self._request(job, has_terminal=True)
        is_listed = asked.network is NetworkAccess.ALLOW_LIST
        asked = replace(
            asked,
            network=NetworkAccess.NONE if is_listed else asked.network,
            allowed_hosts=(),
            way_dir=None,
            cache_dir=None,
            limits=Limits(),
        )
        machine = replace(self.machine, hierarchies=())
        view = look(machine, asked)
        profile = confine(machine, asked, view)
        return one_off(machine, profile), environment(machine, asked, view=view)

    def _request(
        self,
        job: Job,
        *,
        reads: tuple[str, ...] = (),
        has_terminal: bool = False,
    ) -> ConfineRequest:
        attempt, git = job.attempt, job.git
        folders = self.folders(job).made(self._layout)
        asked = job.terms.runtime.holes.network
        network = _NETWORKS[asked.mode]
        is_listed = network is NetworkAccess.ALLOW_LIST
        has_way = is_listed or (job.served_port is not None and network is not NetworkAccess.OPEN)
        return ConfineRequest(
            name=str(attempt).replace("/", ".").replace("@", ".").replace("+", "."),
            workspace=Path(job.workspace),
            home=folders.home,
            temp=folders.temp,
            cache_dir=folders.cache,
            private_clone=git.private if git else None,
            git_file=git.git_file if git else None,
            git_objects=git.objects if git else (),
            hide=self._hidden(),
            read_only=tuple(Path(path) for path in reads if Path(path).is_absolute()),
            env=_shown_to_agents(job.terms.runtime, self.environ),
            holes=_holes(job.terms.runtime),
            network=network,
            allowed_hosts=asked.allow if is_listed else (),
            served_port=job.served_port,
            way_dir=self._ways(attempt) if has_way else None,
            limits=job.limits,
            has_terminal=has_terminal,
        )

    def folders(self, job: Job) -> Folders:
        """Return the folders a job has beside its workspace."""
        worker = self._layout.worker(job.attempt.run, job.attempt.worker)
        return job.folders or Folders.below(worker)

    def _ways(self, attempt: AttemptId) -> Path:
        return self._layout.make(self._layout.attempt(attempt))

    def make(
        self,
        job: Job,
        *,
        reads: tuple[str, ...] = (),
        extra: Mapping[str, str] | None = None,
        has_terminal: bool = False,
    ) -> Sheltered:
        """Make the surroundings of one attempt; the same each time.

        It looks at many files, so it belongs in a thread.

        Raises:
            MechanismMissing: The run requires more than holds here; it may have begun elsewhere.
        """
        request = self._request(job, reads=reads, has_terminal=has_terminal)
        view = look(self.machine, request) if self.fences else None
        profile = confine(self.machine, request, view)
        required = {Dimension(name) for name in job.terms.runtime.require}
        if job.git is None:  # a command that is given no repository, and sees none
            required.discard(Dimension.GIT)
        try:
            check_required(required, profile.report)
        except MechanismMissing:
            release(profile)
            raise
        env = environment(self.machine, request, extra, view=view)
        return Sheltered(profile=profile, env=env)

    def _hidden(self) -> tuple[Path, ...]:
        places = (self._project, self._layout.common_dir)
        return tuple(place for place in places if place.exists())

    async def change_limits(self, sheltered: Sheltered, limits: Limits) -> None:
        """Change the kernel's limits of a living attempt; the host tells its keeper."""
        change = partial(set_limits, sheltered.profile, limits, self.environ)
        await anyio.to_thread.run_sync(change)

    async def release(self, sheltered: Sheltered) -> None:
        """Remove what was made for an attempt that is dead."""
        if sheltered.profile.cgroups:
            await anyio.to_thread.run_sync(release, sheltered.profile)


def asked_by(runtime: Runtime, environ: Mapping[str, str]) -> ConfineRequest:
    """Return the request that all attempts of a plan have in common."""
    here = Path("/")
    network = runtime.holes.network
    has_git = runtime.isolation is not IsolationStrategy.DIRECTORY
    return ConfineRequest(
        name="plan",
        workspace=here,
        home=here,
        private_clone=here if has_git else None,
        env=_shown_to_agents(runtime, environ),
        holes=_holes(runtime),
        network=_NETWORKS[network.mode],
        allowed_hosts=network.allow,
        way_dir=here,
    )


def _shown_to_agents(runtime: Runtime, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return the user's environment without the address of the shared history."""
    shared = runtime.history
    if shared is None or shared.url_env not in environ:
        return environ
    return {name: value for name, value in environ.items() if name != shared.url_env}


def _holes(runtime: Runtime) -> SandboxHoles:
    holes = runtime.holes
    return SandboxHoles(
        env=holes.env,
        paths=holes.paths,
        docker=holes.has_docker,
        ssh_agent=holes.has_ssh_agent,
    )


def user_home(environ: Mapping[str, str]) -> str:
    """Return the user's own HOME."""
    return environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  text in, text out


def place(home: str, files: Iterable[LaunchFile]) -> None:
    """Write the files; what is in the way of one, a link above all, is put aside and kept.

    They are written as the user, outside the sandbox, below a HOME that an agent may have filled:
    a link that it left must not lead a write to where the agent itself cannot reach.

    Raises:
        AgentError: One of them cannot be written.
    """
    for file in files:
        refused = write_file(
            home, file.path, file.data, mode=file.mode, folder_mode=0o700, taken=Taken.ASIDE
        )
        if refused is not None and refused.why is Why.NO_NAME:
            raise AgentError(f"{file.path!r} is not a path below a HOME")
        if refused is not None and not refused.path:
            raise AgentError(f"the HOME {home} cannot be opened: {refused.reason}")
        if refused is not None:
            raise AgentError(
                f"{file.path!r} below the HOME {home} cannot be written: {refused.reason}"
            )
