"""Say of each line of a file which attempt wrote it, why, and how it was checked and landed."""

import json
from collections.abc import Sequence
from os import PathLike, environ
from pathlib import Path

import anyio.to_thread

from engine.api.histories import OpenHistory, open_history
from engine.errors import WorkspaceError
from engine.git.blaming import BlamedCommit, blamed_lines, described, is_in, landings_behind
from engine.git.runner import Repo
from engine.history.seam import Hit, Query
from engine.site.place import find_place
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class BlamedLines:
    """Lines of a file that are from one commit, with all that is known of them.

    Attributes:
        commit: The commit that wrote them; None where they are not committed.
        landing: The commit that brought them in as a worker's change; None where none did.
        hit: The attempt, where a history still knows it.
    """

    first: int
    last: int
    commit: BlamedCommit | None = None
    landing: BlamedCommit | None = None
    hit: Hit | None = None


async def blame(
    folder: str | PathLike[str], path: str | PathLike[str], lines: tuple[int, int] | None = None
) -> list[BlamedLines]:
    """Return where the lines of a file come from; no network is needed.

    Args:
        folder: Anywhere inside the repository.
        path: The file, from the current folder on.
        lines: The first and the last; all where it is None.

    Raises:
        WorkspaceError: There is no repository, or the file is not in it.
        GitFailed: There is no such file or line in it.
    """
    repo, inside = await _found(Path(folder), Path(path))
    told = await blamed_lines(repo, inside, lines)
    known = await described(repo, sorted({one for _, one in told if one.strip("0")}))
    async with open_history(folder) as history:
        reader = _Tracer(repo, history)
        sources = {one: await reader.source(commit) for one, commit in known.items()}
    return [
        BlamedLines(first=first, last=last, commit=known.get(one), landing=landing, hit=hit)
        for first, last, one in _pieces(told)
        for landing, hit in (sources.get(one, (None, None)),)
    ]


async def _found(folder: Path, path: Path) -> tuple[Repo, str]:
    place = await find_place(folder, dict(environ))
    resolved = await anyio.to_thread.run_sync(path.absolute)
    top = place.repo.worktree if place.repo is not None else None
    if place.repo is None or top is None or not resolved.is_relative_to(top):
        raise WorkspaceError(f"{path} is not in a working tree of {place.project}")
    return place.repo, str(resolved.relative_to(top))


def _pieces(told: Sequence[tuple[int, str]]) -> list[tuple[int, int, str]]:
    """Return lines that follow each other and are from one commit as one piece."""
    pieces: list[tuple[int, int, str]] = []
    for number, commit in told:
        if pieces and pieces[-1][1:] == (number - 1, commit):
            pieces[-1] = (pieces[-1][0], number, commit)
        else:
            pieces.append((number, number, commit))
    return pieces


class _Tracer:
    """Finds the landing and the attempt of commits."""

    def __init__(self, repo: Repo, history: OpenHistory) -> None:
        self._repo = repo
        self._history = history

    async def source(self, commit: BlamedCommit) -> tuple[BlamedCommit | None, Hit | None]:
        """Return the landing that brought a commit in, and its attempt."""
        if commit.run:
            return commit, await self._hit(commit)
        for landing in await landings_behind(self._repo, commit.commit):
            hit = await self._hit(landing)
            before = await self._before(landing, hit)
            if before and not await is_in(self._repo, commit.commit, before):
                return landing, hit
        return None, None

    async def _hit(self, landing: BlamedCommit) -> Hit | None:
        query = Query(run=landing.run, repository=self._history.repository, most=1000)
        for hit in await self._history.search(query):
            if (hit.attempt.worker, hit.attempt.attempt) == (landing.worker, landing.attempt):
                return hit
        return None

    async def _before(self, landing: BlamedCommit, hit: Hit | None) -> str:
        """Return what its target was before a landing; empty where that is not known."""
        if len(landing.parents) > 1:
            return landing.parents[0]
        if hit is None:
            return ""
        for entry in await self._history.events(hit.run.uid):
            if entry.kind == "Landed":
                event = json.loads(entry.json)
                if event["new"] == landing.commit:
                    return str(event["old"])
        return ""
