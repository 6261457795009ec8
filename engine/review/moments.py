"""Keep the radar's snapshots of a run's workers by time, as points to begin again from.

The objects lie in a folder that no sandbox sees, and a list beside it says whose files were in
which commit, and when. None of it is in the user's repository until an attempt begins from one.
"""

import os
import shutil
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed, StoreError, WorkspaceError
from engine.git.runner import Call, Repo, Where
from engine.ids import WorkerId
from engine.messages import commands as c
from engine.messages.results import Moment
from engine.plan.model import RetryMode
from engine.store.files import write_atomically

_FIELDS = 5


class Moments:
    """The moments of one run.

    Attributes:
        folder: All that the radar keeps of the run.
        objects: Where the objects of the moments lie.
    """

    def __init__(self, repo: Repo, folder: Path) -> None:
        self._repo = repo
        self.folder = folder
        self._list = folder / "moments"
        self.objects = folder / "objects"

    async def note(self, worker: WorkerId, moment: Moment) -> None:
        """Record a worker's files at a moment; the commit is among the objects already.

        Raises:
            StoreError: The list cannot be written.
        """
        line = f"{moment.at:.3f} {moment.attempt} {moment.commit} {moment.base} {worker}\n"
        try:
            await to_thread.run_sync(self._append, line)
        except OSError as error:
            said = f"{self._list} cannot be written: {error.strerror}"
            raise StoreError(said, hint="Free some space there.") from error

    def _append(self, line: str) -> None:
        with self._list.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else f"\n{line}"  # who wrote it last had died
            file.write(line.encode())

    async def of(self, worker: WorkerId) -> tuple[Moment, ...]:
        """Return a worker's moments over all attempts, oldest first.

        Unchanged files of an attempt count once.
        """
        found: list[Moment] = []
        for line in await to_thread.run_sync(self._lines):
            whose, moment = _parse(line)
            is_known = found and found[-1].commit == moment.commit
            if whose == str(worker) and not (is_known and found[-1].attempt == moment.attempt):
                found.append(moment)
        return tuple(found)

    def _lines(self) -> list[str]:
        """Return the complete lines; skip a last line that a dying process cut off."""
        try:
            text = self._list.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return [line for line in text.split("\n")[:-1] if line.count(" ") == _FIELDS - 1]

    async def take(self, moment: Moment) -> None:
        """Bring a moment's commits into the repository, for an attempt to begin from them.

        Raises:
            WorkspaceError: They are gone.
        """
        where = Where(objects=str(self.objects))
        asked = Call(stdin=f"{moment.commit}\n^{moment.base}\n".encode())
        try:
            words = ("pack-objects", "-q", "--revs", "--stdout")
            pack = await self._repo.read(*words, call=asked, where=where)
        except GitFailed as failed:
            raise WorkspaceError(
                f"the checkpoint {clock_time(moment.at)} is gone",
                hint="A cleanup removed it. Retry without a time.",
            ) from failed
        await self._repo.run("index-pack", "--stdin", call=Call(stdin=pack, writes=True))

    async def keep(self, workers: Collection[WorkerId]) -> None:
        """Delete the moments of all other workers; delete the folder if none is left."""
        await to_thread.run_sync(partial(self._keep, frozenset(map(str, workers))))

    def _keep(self, workers: frozenset[str]) -> None:
        lines = self._lines()
        kept = [line for line in lines if _parse(line)[0] in workers]
        if not kept:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif kept != lines:
            write_atomically(self._list, "".join(f"{line}\n" for line in kept).encode())


def moment_at(moments: Sequence[Moment], command: c.RetryWorker, at: float) -> Moment | c.Refused:
    """Return the newest moment no later than a time, or why an attempt cannot begin there."""
    if command.begins is not RetryMode.FRESH:
        return c.Refused(
            "an attempt that starts from an earlier time starts a new session",
            hint=f"Leave out `--mode {command.mode}`.",
        )
    found = [moment for moment in moments if moment.at <= at]
    if found:
        return found[-1]
    hint = (
        f"The first checkpoint was saved {clock_time(moments[0].at)}."
        if moments
        else "plait saves checkpoints every few seconds while an agent works."
    )
    reason = f"there is no checkpoint of {command.worker} {clock_time(at)} or before"
    return c.Refused(reason, hint=hint)


def clock_time(at: float) -> str:
    """Return a time as wall-clock text, with the day unless it is today."""
    then, now = (datetime.fromtimestamp(one, UTC).astimezone() for one in (at, time.time()))
    return then.strftime("at %H:%M:%S" if then.date() == now.date() else "on %Y-%m-%d at %H:%M:%S")


def _parse(line: str) -> tuple[str, Moment]:
    at, attempt, commit, base, worker = line.split(" ")
    return worker, Moment(attempt=int(attempt), at=float(at), commit=commit, base=base)
