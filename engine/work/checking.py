"""Run setup and check: commands of the manifest, as attempts of the worker they serve.

In a worker's own workspace they run with its HOME, temporary files and caches, which its agent
writes. What is to prove a tree runs in a clean environment instead.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.core.effects import PerformLanding, PrepareWorkspace, ReleaseWorkspace, RunCheck
from engine.ids import AGENT, AttemptId
from engine.legible import legible_line
from engine.messages.results import CheckResult
from engine.proof.tampering import tell
from engine.site.seam import CommandEnd, SpaceAddress
from engine.site.shelter import Folders, GitPlaces, Job
from engine.store.layout import Layout
from engine.values import dataclass
from engine.work.run_ports import RunPort
from engine.work.tools import Tools
from engine.work.workplace import terms_of, workplace

_TOLD_TAIL = 2000
_TOLD_OUTPUT = 4096
"""So many characters of what a check printed are kept where it passed."""


_Served = PrepareWorkspace | RunCheck | PerformLanding | ReleaseWorkspace
"""The effects on whose behalf commands of the manifest are run."""


class Checking:
    """Runs what the manifest wants run for one worker's attempt."""

    def __init__(
        self,
        run: RunPort,
        tools: Tools,
        effect: PrepareWorkspace | RunCheck | PerformLanding | ReleaseWorkspace,
    ) -> None:
        self._run = run
        self._tools = tools
        self._effect = effect

    async def setup(self, address: SpaceAddress) -> str | None:
        """Make the worker's own workspace ready; return None, or why it could not be done."""
        command = self._run.state.plan.workspace.setup
        return None if command is None else _failed(await self._here("setup", command, address))

    async def teardown(self) -> None:
        """Undo what setup did outside of the workspace; ignore how that ends."""
        command = self._run.state.plan.workspace.teardown
        if command is not None:
            await self._here("teardown", command)

    async def check(self, tree: str) -> CheckResult:
        """Run the step's check in the worker's own tree and surroundings."""
        command = self.command
        return _result(command, await self._here("check", command), tree)

    @property
    def command(self) -> str:
        """Return the check of the step."""
        return self._run.state.plan.step(self._effect.worker.step).check or "true"

    async def _here(
        self, role: str, command: str, address: SpaceAddress | None = None
    ) -> CommandEnd:
        """Run a command in the worker's own workspace."""
        effect = self._effect
        at = workplace(
            self._run.state, effect.worker, number=effect.attempt, role=role, address=address
        )
        site = self._tools.sites.at(self._run.state, at.address)
        return await self._proved(at.attempt, partial(site.run, at, command))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator["CleanChecking"]:
        """Give surroundings that no agent had a hand in: empty HOME, temporary and cache folders.

        They are gone afterwards. What an engine that was killed left running there is ended first.
        """
        layout, run = self._tools.layout, self._run.state.run
        rooms = layout.clean_rooms(run)
        await self._evict(rooms)
        name = token_hex(4)
        holder = f"{run}/{self._effect.worker}/{name}"
        folders = Folders.below(rooms / name)
        try:
            setup = self._run.state.plan.workspace.setup
            yield CleanChecking(self, setup=setup, folders=folders, holder=holder, name=name)
        finally:
            self._tools.sites.near.ports.release(holder)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_clear, rooms)

    async def _evict(self, rooms: Path) -> None:
        """End the commands that still run on a tree that is to be filled anew."""
        for tenant in await anyio.to_thread.run_sync(_tenants, rooms):
            if await self._tools.sites.near.is_known(tenant):  # which takes it over
                await self._tools.sites.near.end(tenant)
        await anyio.to_thread.run_sync(_clear, rooms)

    async def run_alone(self, role: str, command: str, where: "_Alone") -> CommandEnd:
        """Run a command on a tree of ours, in a clean environment on this machine."""
        state, effect = self._run.state, self._effect
        job = Job(
            attempt=AttemptId(state.run, effect.worker, effect.attempt, role),
            workspace=where.folder,
            terms=terms_of(state.plan),
            limits=state.limits_of(effect.worker),
            git=where.git,
            env=self._tools.sites.near.ports.lease(where.holder, state.plan.workspace.ports),
            folders=where.folders,
        )
        # Noted before the start: after a crash the next engine ends it first.
        note = partial(_note_tenant, self._tools.layout, where.folders, job.attempt)
        await anyio.to_thread.run_sync(note)
        return await self._proved(
            job.attempt, partial(self._tools.sites.near.run_job, job, command)
        )

    async def _proved(
        self, attempt: AttemptId, act: Callable[[], Awaitable[CommandEnd]]
    ) -> CommandEnd:
        """Run a command: it runs code that agents wrote, so it is held to the same proof."""
        proof = self._tools.proof
        before = await proof.look(self._run.state, attempt)
        end = await act()
        found = await proof.compare(self._run, attempt.worker, before)
        tell(self._run, found, replace(attempt, role=AGENT), at=self._tools.clock.now())
        return end


def _failed(end: CommandEnd) -> str | None:
    return None if end.is_ok else f"setup {end.why}\n{end.tail[-_TOLD_TAIL:]}".rstrip()


def _last_line(text: str) -> str:
    """Return the last line that says something, for a sentence."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return legible_line(said[-1]) if said else "it printed nothing"


def _result(command: str, end: CommandEnd, tree: str, *, is_clean: bool = False) -> CheckResult:
    summary = "passed" if end.is_ok else f"the check {end.why}\n{end.tail}".rstrip()
    return CheckResult(
        command=command,
        passed=end.is_ok,
        tree=tree or None,
        exit_code=end.exit.exit_code,
        summary=summary,
        duration_s=round(end.exit.wall_s, 3),
        is_clean=is_clean,
        output=end.tail[-_TOLD_OUTPUT:] if end.is_ok else "",
    )


@dataclass(frozen=True, kw_only=True)
class _Alone:
    """A tree of ours, its repository, and its clean environment."""

    folder: str
    git: GitPlaces
    folders: Folders
    holder: str


class CleanChecking:
    """Runs setup and check of one tree in surroundings that no agent had a hand in.

    Both share them, so that what setup puts into HOME is there for the check. Their attempts have
    names of their own: no recording of an earlier one is taken for an answer.
    """

    def __init__(
        self, checking: Checking, *, setup: str | None, folders: Folders, holder: str, name: str
    ) -> None:
        self._checking = checking
        self._setup = setup
        self._folders = folders
        self._holder = holder
        self._name = name

    async def setup(self, folder: str, git: GitPlaces) -> str | None:
        """Make the tree ready with the manifest's setup; return None, or why it failed."""
        command = self._setup
        return None if command is None else _failed(await self._run("setup", command, folder, git))

    async def make(self, command: str, folder: str, git: GitPlaces) -> str | None:
        """Run a command that writes files of the tree; return None, or why it failed."""
        end = await self._run("make", command, folder, git)
        return None if end.is_ok else f"{end.why}: {_last_line(end.tail)}"

    async def check(self, folder: str, tree: str, git: GitPlaces) -> CheckResult:
        """Run the step's check on the tree."""
        command = self._checking.command
        end = await self._run("check", command, folder, git)
        return _result(command, end, tree, is_clean=True)

    async def _run(self, what: str, command: str, folder: str, git: GitPlaces) -> CommandEnd:
        where = _Alone(folder=folder, git=git, folders=self._folders, holder=self._holder)
        return await self._checking.run_alone(f"clean-{what}-{self._name}", command, where)


def _note_tenant(layout: Layout, folders: Folders, attempt: AttemptId) -> None:
    layout.make(folders.home.parent)
    note = folders.home.with_name(f"{attempt.role}.tenant")
    note.write_text(str(attempt), encoding="utf-8")


def _tenants(rooms: Path) -> list[AttemptId]:
    return [AttemptId.parse(note.read_text(encoding="utf-8")) for note in rooms.glob("*/*.tenant")]


def _clear(rooms: Path) -> None:
    remove_tree(rooms)
