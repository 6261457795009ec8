"""The keys of `runtime` and `workspace`: what holds for the whole run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Tag, create_model

from engine.limits import KINDS, Dimension, Limits
from engine.spec.words import (
    Count,
    InsidePath,
    Name,
    Positive,
    Section,
    SparseFolders,
    Text,
    Variable,
)

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
    """Limit what one attempt may use. Without a default, a limit is off until you set it."""

    def said(self) -> Limits:
        """Return what the manifest says; None if it says nothing."""
        return Limits(**self.model_dump())


class DatabaseSpec(Section):
    """Choose where the history of runs goes. The run's own files are always written."""

    strategy: Literal["per_agent", "shared"] = "per_agent"
    """`per_agent`: only on this machine, in SQLite. `shared`: also in your team's PostgreSQL."""
    url_env: Variable = "PLAIT_DATABASE_URL"
    """The environment variable that holds the address of the shared database."""


class NetworkRules(Section):
    """The hosts that an agent may reach. All others are blocked."""

    allow: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Host names. `*.example.org` means every host below `example.org`."""


class SandboxSpec(Section):
    """Open parts of this machine to agents, on purpose. Every opening is reported."""

    network: Annotated[
        Annotated[Literal["open", "none"], Tag("<word>")] | Annotated[NetworkRules, Tag("<rules>")],
        Discriminator(_word_or_rules),
    ] = "open"
    """`open`, `none`, or `{allow: [hosts]}`."""
    env: tuple[Variable, ...] = ()
    """Names of your environment variables that agents get."""
    paths: tuple[Text, ...] = ()
    """Files and folders outside the repository that agents may read, and with `:rw` at the
    end also write."""
    docker: bool = False
    """Open the socket of the container daemon. An agent that has it controls the machine."""
    ssh_agent: bool = False
    """Open the socket of your SSH agent."""


class PermissionRules(Section):
    """Answer these permission requests without a human."""

    allow: tuple[Text, ...] = ()
    """Patterns that plait allows without asking, such as `Bash(npm test*)`."""
    deny: tuple[Text, ...] = ()
    """Patterns that plait denies without asking. They win over `allow`."""


PermissionsSpec = Annotated[
    Annotated[Literal["auto", "ask"], Tag("<word>")] | Annotated[PermissionRules, Tag("<rules>")],
    Discriminator(_word_or_rules),
]


class RaySpec(Section):
    """Run workers on the nodes of a Ray cluster."""

    address: Text
    """The address of its head: `HOST:PORT`."""
    resources: Mapping[Name, Positive] = Field(default_factory=dict)
    """Resources of the cluster that each worker reserves, besides its cpu and memory limits."""
    env: tuple[Variable, ...] = ()
    """Names of your environment variables that its nodes get. All others are the node's own."""
    unenforced: bool = False
    """Also use nodes that do not enforce `files` and `git`: agents could then reach the cluster."""
    lease_minutes: Positive | None = None
    """The longest time that agents of a node keep working without an engine, for example while your
    laptop sleeps. The default is 1, and 30 on a detached engine."""


class SiteSpec(Section):
    """Add a place where workers run."""

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
    """`merge`: the worker's commits below a merge commit. `squash`: one commit. `rebase`: the
    worker's commits on top of the target. Commits that do not form one line from the base land
    as one commit."""


class RuntimeSpec(Section):
    """Set what applies to the whole run."""

    max_concurrent_workers: Count = 10
    """The most workers that run at once in all steps, at most 500. Little memory lowers it."""
    isolation_strategy: Literal["worktree", "clone", "directory"] = "worktree"
    """`worktree`, `clone`, or `directory`: a folder with only `workspace.include`, without git."""
    execution_mode: Literal["process", "thread"] = "process"
    """Run agents that are Python functions in their own process, or in a thread of the engine."""
    sites: SitesSpec = Field(default_factory=dict)
    """The places where workers run. `default` names the site of every step without a `site`.
    `local` is this machine, and the default. `child` is a separate process with a mirror of the
    repository. You can add more, each under a name of your own."""
    database: DatabaseSpec = DatabaseSpec()
    """Share the history of runs, or keep it to this machine."""
    workspace_root: Text | None = None
    """The folder for workspaces; by default in your state folder, outside the repository."""
    agent: Name | None = None
    """The agent of every step that names none, and whose persona names none."""
    limits: LimitsSpec = LimitsSpec()
    """Limits of one attempt of any worker."""
    stall_seconds: Positive = 600.0
    """After this time without progress, plait marks a worker. After twice that, it asks you."""
    run_timeout_minutes: Positive | None = None
    """plait stops the whole run after this time."""
    require: tuple[Required, ...] = ()
    """Limits and isolation that must be *enforced* here. Otherwise the run does not start."""
    sandbox: SandboxSpec = SandboxSpec()
    """Parts of this machine that you open to agents."""
    permissions: PermissionsSpec = "auto"
    """`auto` (allow all inside the sandbox; ask if there is no sandbox), `ask`, or rules."""
    auto_merge: bool = False
    """Land each change whose step succeeded, in the order of the plan, without a review."""
    cleanup_on_complete: bool = True
    """Remove workspaces afterwards, if nothing can be lost."""
    target: Text | None = None
    """The branch to land on; by default the current one."""
    base: Text | None = None
    """The revision that workers start from; by default the target."""
    branch_prefix: Name = "plait"
    """The prefix of the branches of workers."""
    land: LandSpec = LandSpec()
    """The way in which a reviewed change reaches the target branch."""


class ServeSpec(Section):
    """Name the program that `plait open` starts in a worker's sandbox."""

    command: Text
    """The shell command that starts the program, such as `npm run dev -- --port $PORT`."""
    port: Variable = "PORT"
    """The variable with the port that the program must listen on. Each program has its own."""
    ready: Text | None = None
    """The sign that it is ready: a page that answers (`/health`), or a text in a line of its output
    (`*` matches anything). By default, it is ready once it listens."""


class AssistBudget(Section):
    """Limit the questions about one merge, or about the candidates of one step."""

    requests: Count = 10
    """The most questions; each is about one conflict, or about all candidates of a step."""
    usd: Positive | None = None
    """The most that the answers may cost, in US dollars, as far as the agent reports it."""
    minutes: Positive = 10.0
    """The most time that the agent may work, all questions together."""


class AssistSpec(Section):
    """Let an agent propose answers to conflicts, and explain candidates (`gy` in Compare)."""

    agent: Name
    """The agent: a name from `agents`, or an adapter's."""
    budget: AssistBudget = AssistBudget()
    """Bounds for each merge, and for the candidates of each step."""


class ReviewSpec(Section):
    """Help with conflicts. Commands run in the sandbox, as a check does."""

    regenerate: Mapping[InsidePath, Text] = Field(default_factory=dict)
    """Shell commands that regenerate files, such as `{uv.lock: uv lock}`. Each key is
    the name of a file, or a path with a `/`; `*` matches anything."""
    format: Mapping[InsidePath, Text] = Field(default_factory=dict)
    """Shell commands that read a file and print it formatted, such as `{"*.py": ruff format -}`.
    They make proposals; the file's name is in `PLAIT_FILE`."""
    assist: AssistSpec | None = None
    """An agent that proposes answers to conflicts and explains candidates. It decides nothing."""


class WorkspaceSpec(Section):
    """Prepare and clean up the workspace of each worker, and the tree that the check runs on."""

    include: tuple[InsidePath, ...] = ()
    """Ignored files to copy in, such as `.env`. plait adds those of `.worktreeinclude`."""
    setup: Text | None = None
    """A shell command that prepares the workspace, such as `npm ci`."""
    teardown: Text | None = None
    """A shell command that runs before the workspace is removed."""
    cwd: InsidePath = "."
    """The folder in which agents and commands start."""
    paths: tuple[InsidePath, ...] = ()
    """The files that agents should change. Review points out all others."""
    sparse_checkout: SparseFolders = ()
    """The folders that worktrees hold, such as `[src/parser, "services/*/api"]`; by default all.
    Files above these folders are there too. Checks run on the whole repository."""
    ports: Mapping[Variable, Annotated[int, Field(ge=1, le=100)]] = Field(default_factory=dict)
    """Ports that each worker gets: the name of the variable, and how many."""
    serve: ServeSpec | None = None
    """The program of a worker that you open in your browser."""
