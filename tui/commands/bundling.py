"""`plait run --bundle FILE`: what a run has made, in one file, however the run ends.

For machines that are thrown away afterwards: nothing of a run lies anywhere else by then.
"""

import shlex
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from engine.api import Plan, bundle_run, reach
from engine.errors import EngineError, WorkspaceError
from engine.messages.questions import ReadRun
from tui.commands.base import EXIT_FAILED, say
from tui.words.figures import some


@dataclass
class Bundling:
    """The file that a run is to leave behind."""

    repo: str
    plan: Plan
    file: Path
    run: str = ""

    def check(self) -> None:
        """Make sure beforehand that the file can be written.

        Raises:
            WorkspaceError: It cannot.
        """
        if self.file.exists():
            raise WorkspaceError(
                f"{self.file} exists already and is not overwritten",
                hint="Name another file for the bundle, or move the existing one.",
            )
        try:
            with tempfile.TemporaryFile(dir=self.file.absolute().parent):
                pass
        except OSError as error:
            raise WorkspaceError(
                f"{self.file} cannot be written: {error.strerror}",
                hint="Name a file for the bundle in a folder that exists and is yours.",
            ) from error

    def begun(self, run: str) -> str:
        """The run has begun; its id."""
        self.run = run
        return run

    async def after(self, act: Callable[[], Awaitable[int]], *, goes_on: bool) -> int:
        """Do what ends with the run, then write the file, whatever came of it; the exit code."""
        is_written = False
        try:
            code = await act()
        finally:
            with anyio.CancelScope(shield=True):
                is_written = await self._write(goes_on=goes_on)
        return code if is_written or code else EXIT_FAILED

    async def _write(self, *, goes_on: bool) -> bool:
        """Write it; false where there was something to write and it could not be."""
        if not self.run:
            return True
        try:
            made = await bundle_run(self.repo, self.run, self.file, plan=self.plan)
            if goes_on and await self._goes_on():
                say(f"{self.run} is still running: what it does from now on is not in {self.file}")
        except (EngineError, OSError) as error:
            say(f"{self.file} could not be written: {error}")
            return False
        if not made.refs:
            say(f"nothing to bundle: no worker of {self.run} has a commit")
            return True
        needs = " and ".join(commit[:10] for commit in made.needs)
        where = f"a clone that has {needs}" if needs else "any repository"
        say(f"{self.file} holds {some(made.refs, 'ref')} of {self.run}; in {where}:")
        say(f"  git fetch {shlex.quote(str(self.file))} 'refs/*:refs/*'")
        return True

    async def _goes_on(self) -> bool:
        async with reach(self.repo) as (port, _):
            view = await port.ask(ReadRun(self.run))
        return view.ended_at is None and not view.is_waiting
