"""The keys of `runtime` and `workspace`: what holds for the whole run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Tag, create_model

from engine.limits import KINDS, Dimension, Limits
from engine.spec.words import Count, InsidePath, Name, Positive, Section, Text, Variable

if TYPE_CHECKING:  # a type checker cannot follow what is made from the table
    Required = str
    _Limits = Section
else:
    Required = Literal[*(str(each) for each in Dimension if each is not Dimension.BUDGET)]
    _Limits = create_model(
        "_Limits",
        __base__=Section,
        **{
            name: (
                (Count if kind.is_whole else Positive) | None,
                Field(default=None, description=kind.about),
            )
            for name, kind in KINDS.items()
        },
    )


def _word_or_rules(value: object) -> str:
    return "<word>" if isinstance(value, str) else "<rules>"


class LimitsSpec(_Limits):
    """Limit what one attempt of a worker may use. A limit left out has the machine's default."""

    def said(self) -> Limits:
        """Return what the manifest says; None if it says nothing."""
        return Limits(**self.model_dump())


class DatabaseSpec(Section):
    """Choose who else has the history of runs. The run's own files are written in any case."""

    strategy: Literal["per_agent", "shared"] = "per_agent"
    """`per_agent`: SQLite files beside the repository; `shared`: also one PostgreSQL for a team."""
    url_env: Variable = "PLAIT_DATABASE_URL"
    """The environment variable that holds the address of the shared database."""


class NetworkRules(Section):
    """The hosts an agent may reach; nothing else answers."""

    allow: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Host names; `*.example.org` stands for everything below."""


class SandboxSpec(Section):
    """Open parts of this machine to agents, on purpose. Every opening is reported."""

    network: Annotated[
        Annotated[Literal["open", "none"], Tag("<word>")] | Annotated[NetworkRules, Tag("<rules>")],
        Discriminator(_word_or_rules),
    ] = "open"
    """`open`, `none`, or `{allow: [hosts]}`."""
    env: tuple[Variable, ...] = ()
    """Environment variables passed on, by name."""
    paths: tuple[Text, ...] = ()
    """Files and folders outside the repository that agents may read."""
    docker: bool = False
    """Open the container daemon's socket. Whoever has it owns the machine."""
    ssh_agent: bool = False
    """Open the SSH agent's socket."""


class PermissionRules(Section):
    """Name the tool uses that are answered without a human."""

    allow: tuple[Text, ...] = ()
    """Patterns of what is allowed unasked, such as `Bash(npm test*)`."""
    deny: tuple[Text, ...] = ()
    """Patterns of what is denied unasked; they win over `allow`."""


PermissionsSpec = Annotated[
    Annotated[Literal["auto", "ask"], Tag("<word>")] | Annotated[PermissionRules, Tag("<rules>")],
    Discriminator(_word_or_rules),
]


class RaySpec(Section):
    """A Ray cluster whose nodes workers live on."""

    address: Text
    """The address of its head: `HOST:PORT`."""
    resources: Mapping[Name, Positive] = Field(default_factory=dict)
    """Resources of the cluster that each worker reserves beside its cpu and memory limits."""
    env: tuple[Variable, ...] = ()
    """Variables of yours that cross to its nodes, by name; all others are the node's own."""
    unenforced: bool = False
    """Use nodes also where `files` and `git` are not enforced: agents could reach the cluster."""
    lease_minutes: Positive | None = None
    """The longest time that agents of a node go on while no engine speaks to them: its link is cut,
    or your laptop sleeps. If nothing is said, 1, and 30 where the run outlives its engine."""


class SiteSpec(Section):
    """Add a place where workers live."""

    ray: RaySpec
    """A Ray cluster."""


def _word_or_site(value: object) -> str:
    return "<word>" if isinstance(value, str) else "<site>"


SitesSpec = Mapping[
    Name,
    Annotated[
        Annotated[Name, Tag("<word>")] | Annotated[SiteSpec, Tag("<site>")],
        Discriminator(_word_or_site),
    ],
]


class LandSpec(Section):
    """Choose how a reviewed change reaches the target branch."""

    style: Literal["merge", "squash", "rebase"] = "merge"
    """`merge` keeps the worker's commits below a merge commit, if they are a line from its base."""


class RuntimeSpec(Section):
    """Set what holds for the whole run."""

    max_concurrent_workers: Count = 10
    """The most workers that run at once, all steps together; more than 100 is cut to 100."""
    isolation_strategy: Literal["worktree", "clone", "directory"] = "worktree"
    """`worktree`; `clone`; `directory` (an empty folder and `workspace.include`, without git)."""
    execution_mode: Literal["process", "thread"] = "process"
    """The place where Python-callable agents run."""
    sites: SitesSpec = Field(default_factory=dict)
    """The places where workers live. `default` names the site of every step that names none.
    `local` is this machine's own disk, and the default. `child` is a process of its own, on a
    mirror of the repository. You can add more here, each under a name of its own."""
    database: DatabaseSpec = DatabaseSpec()
    """Share the history of runs, or keep it to this machine."""
    workspace_root: Text | None = None
    """The folder of the workspaces; by default outside the repository, in your state folder."""
    agent: Name | None = None
    """The agent of every step that names none and whose persona names none."""
    limits: LimitsSpec = LimitsSpec()
    """Limits of one attempt of any worker."""
    stall_seconds: Positive = 600.0
    """Without progress for so long a worker is marked; after twice that you are asked."""
    run_timeout_minutes: Positive | None = None
    """The whole run is stopped after so long."""
    require: tuple[Required, ...] = ()
    """Dimensions that must be *enforced* on this machine, or the run does not start."""
    sandbox: SandboxSpec = SandboxSpec()
    """Openings for agents."""
    permissions: PermissionsSpec = "auto"
    """`auto` (what the sandbox contains is allowed, else you are asked), `ask`, or rules."""
    auto_merge: bool = False
    """Land what passed its check without a review, in plan order."""
    cleanup_on_complete: bool = True
    """Remove workspaces afterwards, where nothing can be lost by it."""
    target: Text | None = None
    """The branch to land on; by default the current one."""
    base: Text | None = None
    """The revision that workers begin from; by default the target."""
    branch_prefix: Name = "plait"
    """The beginning of the names of workers' branches."""
    land: LandSpec = LandSpec()
    """The way in which a reviewed change reaches the target branch."""


class ServeSpec(Section):
    """Show what a worker made: its program, started for you by `plait open`."""

    command: Text
    """The shell command that starts the program, such as `npm run dev -- --port $PORT`."""
    port: Variable = "PORT"
    """The variable with the port at which it has to listen; one is leased for each program."""
    ready: Text | None = None
    """Ready once this page answers (`/health`), or a line of its output has this text (`*` stands
    for anything); by default once it listens."""


class WorkspaceSpec(Section):
    """Prepare and clean up every worker's workspace, and the check's tree too."""

    include: tuple[InsidePath, ...] = ()
    """Ignored files to copy in, such as `.env`; those of `.worktreeinclude` are added."""
    setup: Text | None = None
    """A shell command that prepares the workspace, such as `npm ci`."""
    teardown: Text | None = None
    """A shell command that runs before the workspace is removed."""
    cwd: InsidePath = "."
    """The folder in which agents and commands start."""
    paths: tuple[InsidePath, ...] = ()
    """Only files that match are meant to be changed; others are pointed out in review."""
    ports: Mapping[Variable, Annotated[int, Field(ge=1, le=100)]] = Field(default_factory=dict)
    """Ports leased to each worker: the variable's name, and how many."""
    serve: ServeSpec | None = None
    """The program of a worker that you look at in your browser."""
