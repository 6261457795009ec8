"""Run setup and check: commands of the manifest, as attempts of the worker they serve.

In a worker's own workspace they run with its HOME, temporary files and caches, which its agent
writes. What is to prove a tree runs in clean surroundings instead.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
import anyio.to_thread

from engine.beneath import remove_tree
from engine.core.effects import Land, PrepareWorkspace, ReleaseWorkspace, RunCheck
from engine.ids import AttemptId
from engine.messages.results import CheckResult
from engine.proof.tampering import tell
from engine.site.attempts import CommandEnd, with_role
from engine.site.shelter import Folders, GitPlaces, Job
from engine.store.layout import Layout
from engine.work.run_ports import RunPort
from engine.work.tools import Tools

_TOLD_TAIL = 2000


_Served = PrepareWorkspace | RunCheck | Land | ReleaseWorkspace
"""The effects on whose behalf commands of the manifest are run."""


class Checking:
    """Runs what the manifest wants run for one worker's attempt."""

    def __init__(
        self,
        run: RunPort,
        tools: Tools,
        effect: PrepareWorkspace | RunCheck | Land | ReleaseWorkspace,
    ) -> None:
        self._run = run
        self._tools = tools
        self._effect = effect

    async def setup(self, folder: str) -> str | None:
        """Make the worker's own workspace ready; return None, or why it could not be done."""
        return await self.set_up(folder, _Around(role="setup"))

    async def teardown(self, folder: str) -> None:
        """Undo what setup did outside of the workspace; ignore how that ends."""
        command = self._run.state.plan.workspace.teardown
        if command is not None:
            await self._command(folder, command, _Around(role="teardown"))

    async def check(self, folder: str, tree: str) -> CheckResult:
        """Run the step's check in the worker's own tree and surroundings."""
        return await self.run_check(folder, tree, _Around(role="check"))

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
            yield CleanChecking(self, folders=folders, holder=holder, name=name)
        finally:
            self._tools.ports.release(holder)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_clear, rooms)

    async def _evict(self, rooms: Path) -> None:
        """End the commands that still run on a tree that is to be filled anew."""
        for tenant in await anyio.to_thread.run_sync(_tenants, rooms):
            if await self._tools.starter.is_known(tenant):  # which takes it over
                await self._tools.starter.end(tenant)
        await anyio.to_thread.run_sync(_clear, rooms)

    async def set_up(self, folder: str, around: "_Around") -> str | None:
        """Run the manifest's setup; return None, or why it failed."""
        command = self._run.state.plan.workspace.setup
        if command is None:
            return None
        end = await self._command(folder, command, around)
        return None if end.is_ok else f"setup {end.why}\n{end.tail[-_TOLD_TAIL:]}".rstrip()

    async def run_check(self, folder: str, tree: str, around: "_Around") -> CheckResult:
        """Run the step's check and say in which surroundings it ran."""
        command = self._run.state.plan.step(self._effect.worker.step).check or "true"
        end = await self._command(folder, command, around)
        summary = "passed" if end.is_ok else f"the check {end.why}\n{end.tail}".rstrip()
        return CheckResult(
            command=command,
            passed=end.is_ok,
            tree=tree or None,
            exit_code=end.exit.exit_code,
            summary=summary,
            duration_s=round(end.exit.wall_s, 3),
            is_clean=around.folders is not None,
        )

    async def _command(self, folder: str, command: str, around: "_Around") -> CommandEnd:
        state, effect = self._run.state, self._effect
        attempt = AttemptId(state.run, effect.worker, effect.attempt)
        holder = around.holder or f"{state.run}/{effect.worker}"
        job = Job(
            attempt=with_role(attempt, around.role),
            workspace=folder,
            limits=state.limits_of(effect.worker),
            git=around.git or self._tools.workshops.of(state.plan).git_places(state, effect.worker),
            env=self._tools.ports.lease(holder, state.plan.workspace.ports),
            folders=around.folders,
        )
        if around.folders is not None:
            # Noted before the start: after a crash the next engine ends it first.
            note = partial(_note_tenant, self._tools.layout, around.folders, job.attempt)
            await anyio.to_thread.run_sync(note)
        proof = self._tools.proof
        # A command runs code that agents wrote, so it is held to the same proof.
        before = await proof.look(state, job.attempt)
        end = await self._tools.starter.run_command(state, job, command)
        found = await proof.compare(self._run, effect.worker, before)
        tell(self._run, found, attempt, at=self._tools.clock.now())
        return end


@dataclass(frozen=True, kw_only=True)
class _Around:
    """The surroundings of one command: those of the worker, unless folders are given."""

    role: str
    git: GitPlaces | None = None
    folders: Folders | None = None
    holder: str | None = None


class CleanChecking:
    """Runs setup and check of one tree in surroundings that no agent had a hand in.

    Both share them, so that what setup puts into HOME is there for the check. Their attempts have
    names of their own: no recording of an earlier one is taken for an answer.
    """

    def __init__(self, checking: Checking, *, folders: Folders, holder: str, name: str) -> None:
        self._checking = checking
        self._folders = folders
        self._holder = holder
        self._name = name

    async def setup(self, folder: str, git: GitPlaces) -> str | None:
        """Make the tree ready with the manifest's setup; return None, or why it failed."""
        return await self._checking.set_up(folder, self._around("setup", git))

    async def check(self, folder: str, tree: str, git: GitPlaces) -> CheckResult:
        """Run the step's check on the tree."""
        return await self._checking.run_check(folder, tree, self._around("check", git))

    def _around(self, what: str, git: GitPlaces) -> _Around:
        role = f"clean-{what}-{self._name}"
        return _Around(role=role, git=git, folders=self._folders, holder=self._holder)


def _note_tenant(layout: Layout, folders: Folders, attempt: AttemptId) -> None:
    layout.make(folders.home.parent)
    note = folders.home.with_name(f"{attempt.role}.tenant")
    note.write_text(str(attempt), encoding="utf-8")


def _tenants(rooms: Path) -> list[AttemptId]:
    return [AttemptId.parse(note.read_text(encoding="utf-8")) for note in rooms.glob("*/*.tenant")]


def _clear(rooms: Path) -> None:
    remove_tree(rooms)
