"""The seam between near and far, in plain data.

Near are the user's repository, the journal, all merging and all humans. Far is the place where a
worker lives: its workspace, its HOME, its sandbox and its processes. A path of a workspace means
something to its own site alone; everybody else hands it on, or shows it to people.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from engine.agents.contract import LaunchRequest
from engine.git.arrivals import MOST_REFS
from engine.git.collection import CollectedChange, CollectRefused
from engine.git.radar import Snapshot
from engine.git.settings import Signature
from engine.git.staging import MOST_NEW
from engine.host.seam import AttemptExit, Capacity, Host
from engine.ids import AttemptId, RunId, WorkerId
from engine.limits import Enforcement, Limits
from engine.messages.questions import CleanItem, TrashItem
from engine.messages.results import Entrance, Holding
from engine.plan.model import AgentChoice, Runtime, WorkspaceRules
from engine.sandbox.tamper import News
from engine.site.artifacts import Artifacts
from engine.values import dataclass


class Ability(StrEnum):
    """Something that not every site can do: whatever needs it is refused there."""

    ENTER = "enter"
    """A human can come into an attempt's sandbox from here."""
    FOLDERS = "folders"
    """Workspaces may be plain folders, without git."""
    FREEZE = "freeze"
    """An attempt can be stopped where it stands, and go on."""
    LIMITS = "limits"
    """Limits hold, and can be changed while an attempt runs."""
    OUTLIVE = "outlive"
    """Attempts can go on without their engine, and be read by the next."""
    TERMINAL = "terminal"
    """An agent can be given a terminal."""


@dataclass(frozen=True, kw_only=True)
class SpaceAddress:
    """The place of a workspace.

    Attributes:
        attempt: The attempt that it was made for; later ones may go on in it. With a role of its
            own it names an empty folder beside the workspace.
        path: Where it lies at its site; empty while it is not made.
        site: The name of its site; empty for the engine's own machine.
    """

    attempt: AttemptId
    path: str = ""
    site: str = ""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The part of a plan that says how its workers live."""

    runtime: Runtime
    workspace: WorkspaceRules


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """An attempt in its workspace, and what is allowed to it there."""

    attempt: AttemptId
    address: SpaceAddress
    terms: Terms
    limits: Limits


@dataclass(frozen=True, kw_only=True)
class Filling:
    """The content of a new workspace.

    Attributes:
        commit: What it begins from; empty without git.
        givers: The earlier attempts whose artifacts it is given.
        previous: The workspace that it is a copy of, where there is no git to begin from.
        brought: The folder at the site with the files of the user's that git does not know, where
            the user's own folder cannot be read there.
        holds: The folders of the commit to check out; None for all.
    """

    commit: str = ""
    givers: tuple[tuple[WorkerId, int], ...] = ()
    previous: SpaceAddress | None = None
    brought: str = ""
    holds: Holding | None = None


@dataclass(frozen=True, kw_only=True)
class FilledSpace:
    """A workspace that is there and filled, but not yet set up."""

    address: SpaceAddress
    branch: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Collecting:
    """A request to collect: who signs what the agent left uncommitted, and how much may come.

    Attributes:
        artifacts: Patterns of the files that are kept for later steps.
    """

    author: Signature
    message: str = ""
    most_new: int = MOST_NEW
    most_refs: int = MOST_REFS
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Brought:
    """All that an attempt left: its commits on its refs, and its artifacts.

    Attributes:
        change: What became of its files; None without git.
    """

    change: CollectedChange | CollectRefused | None
    artifacts: Artifacts


@dataclass(frozen=True, kw_only=True)
class Launched:
    """An attempt that was started.

    Attributes:
        keeps_stdin: Its input stays open.
        login: By what its agent logs in, as the user knows it.
        notes: What to write into its log.
    """

    keeps_stdin: bool = False
    login: str = ""
    notes: tuple[str, ...] = ()


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


@dataclass(frozen=True, kw_only=True)
class SiteReport:
    """The machine of a site, as it says itself.

    Attributes:
        rows: How each dimension can hold there at best.
        versions: Of plait and of what it stands on, by name.
    """

    rows: tuple[Enforcement, ...]
    capacity: Capacity
    versions: Mapping[str, str]


class Spaces(Protocol):
    """One kind of workspaces at a site."""

    async def prepare(self, at: Workplace, filling: Filling) -> FilledSpace:
        """Make and fill the workspace of an attempt; making it again is harmless."""

    async def resume(self, at: Workplace) -> FilledSpace:
        """Make a workspace that is there ready for another attempt."""

    async def look(self, at: Workplace, wanted: Collecting, objects: Path) -> Snapshot | None:
        """Take the tree as it is now; its objects go into a folder of the caller's."""

    async def collect(self, at: Workplace, wanted: Collecting) -> Brought:
        """Bring everything that the attempt left; bringing it again gives the same.

        Raises:
            WorkspaceError: The workspace is gone.
        """

    async def examine(self, at: Workplace, wanted: Collecting) -> tuple[str, ...]:
        """Return why a workspace has to stay; nothing where it may go."""

    async def release(self, at: Workplace, wanted: Collecting) -> bool:
        """Remove a workspace if every byte of it is proved to be kept elsewhere; say if it went."""

    async def abandon(self, at: Workplace, *, with_branch: bool) -> None:
        """Remove a half-made workspace in which nothing has worked yet."""

    async def clear_strays(self, known: Sequence[RunId], *, is_dry: bool) -> tuple[CleanItem, ...]:
        """Remove provably safe workspaces of runs that are not known; return all such, with why."""


class Site(Protocol):
    """A place where workers live.

    `host` has the processes of attempts by name; `spaces` knows the workspaces of a kind.
    """

    @property
    def host(self) -> Host:
        """Return what reads, tells and ends attempts here."""

    @property
    def abilities(self) -> frozenset[Ability]:
        """Return what can be done here of what not every site can do."""

    @property
    def can_confine(self) -> bool:
        """Return whether agents here can be kept from the content of the user's files."""

    async def describe(self) -> SiteReport:
        """Return what the machine of this site enforces, has to give, and runs."""

    def spaces(self, terms: Terms) -> Spaces:
        """Return the workspaces of the kind that a plan names.

        Raises:
            WorkspaceError: There are none of that kind here.
        """

    async def admit(self, terms: Terms, rows: tuple[Enforcement, ...] | None = None) -> None:
        """Refuse a run unless everything it requires is enforced, here or as `rows` say.

        Raises:
            MechanismMissing: The first thing that is not, with what to do about it.
            WorkspaceError: It needs something that cannot be carried here.
        """

    async def check_agents(
        self, agents: tuple[AgentChoice, ...], runtime: Runtime, folder: str
    ) -> None:
        """Refuse agents that cannot be started here, as far as that is known beforehand.

        Raises:
            AgentError: The first one of them, with what to do about it.
        """

    async def report(self, at: Workplace) -> tuple[Enforcement, ...]:
        """Return how each dimension holds for one attempt, with its own network and limits."""

    async def launch(
        self, at: Workplace, program: LaunchRequest | str, env: Mapping[str, str]
    ) -> Launched:
        """Start an agent or a shell command as the attempt itself, or find it started.

        Of a request the site fills in what only it knows: folders, environment, logins.

        Raises:
            EngineError: It cannot be launched, and why.
        """

    async def run(self, at: Workplace, command: str) -> CommandEnd:
        """Run a shell command on an attempt's behalf to its end; cancelling this ends it first."""

    async def is_known(self, attempt: AttemptId) -> bool:
        """Return whether the attempt was ever started here, by this engine or an earlier one."""

    async def stop(self, attempt: AttemptId) -> None:
        """End an attempt at once; whoever watches it learns of its end."""

    async def end(self, attempt: AttemptId) -> None:
        """End an attempt that nobody can watch any more, and wait until it is dead."""

    async def forget(self, attempt: AttemptId) -> None:
        """Drop what is kept for an attempt that is dead, and remove its surroundings."""

    async def change_limits(self, attempt: AttemptId, limits: Limits) -> None:
        """Change the kernel's limits of a living attempt; the host tells its keeper.

        Raises:
            EngineError: Not all of them could be changed.
        """

    async def earlier(
        self, address: SpaceAddress, numbers: Sequence[int]
    ) -> tuple[SpaceAddress, ...]:
        """Return the workspaces of other attempts of the same worker that are still there."""

    async def is_there(self, address: SpaceAddress) -> bool:
        """Return whether a workspace is there."""

    async def written_since(self, runtime: Runtime, trees: Mapping[str, int]) -> News:
        """Return what was written in workspaces since a moment for each, by path and nanoseconds.

        Nothing is looked at where the agents of such a run cannot write there.
        """

    async def aside(self, at: Workplace) -> SpaceAddress:
        """Make an empty folder beside a workspace, for an attempt with a role of its own."""

    async def drop(self, address: SpaceAddress) -> None:
        """Remove such a folder, whatever is in it."""

    async def sow(self, at: Workplace, *, is_users: bool) -> None:
        """Give a workspace what setup made earlier; `is_users` where no agent's file is in it."""

    async def reap(self, at: Workplace, *, is_well: bool) -> None:
        """Keep what setup has made for later workspaces, if it went well."""

    async def enter(self, at: Workplace, *, is_collected: bool) -> Entrance:
        """Return how to start a human's program inside an attempt's sandbox.

        Once its work is collected, the workspace's own `.git` may lead out of the sandbox.

        Raises:
            WorkspaceError: Nothing would hold it in, or nobody can come in from here.
        """

    async def free_ports(self, run: RunId, worker: WorkerId) -> None:
        """Return a worker's ports for others to use."""

    async def tidy(self, run: RunId) -> None:
        """Remove the empty folders of a run that is over."""

    async def trashed(self) -> tuple[TrashItem, ...]:
        """Return the contents of the trash here, newest first."""

    async def restore(self, name: str) -> str:
        """Restore what is in the trash to its place; return the paths.

        Raises:
            WorkspaceError: There is none of that name, or something else is in its place now.
        """

    async def purge(self, now: float) -> None:
        """Delete what has been in the trash for long enough."""
