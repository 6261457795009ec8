"""Try a worker's merged result in the user's own checkout, take it back, or leave it on."""

from collections.abc import Mapping
from os import PathLike, environ
from pathlib import Path

from engine.api.reaching import reach
from engine.clock import SystemClock
from engine.errors import WorkspaceError
from engine.git.runner import Repo
from engine.messages.commands import Seen
from engine.messages.merging import ReadResult
from engine.review.trying import OpenTry, TakenBack, leave_on, put_on, take_back
from engine.site.place import find_place


async def try_worker(
    folder: str | PathLike[str],
    worker: str,
    *,
    run: str = "",
    seen: Seen | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[OpenTry, TakenBack | None]:
    """Put a worker's merged result into the checkout; return the try, and the one it replaced.

    Raises:
        WorkspaceError: It cannot be done safely, and why; no file was touched.
    """
    env = dict(environ if environment is None else environment)
    repo = await _repository(folder, env)
    async with reach(folder, environment=env) as (port, _):
        result = await port.ask(ReadResult(run, worker, seen))
    return await put_on(repo, result, now=SystemClock().now())


async def end_try(
    folder: str | PathLike[str], *, environment: Mapping[str, str] | None = None
) -> TakenBack | None:
    """Take back the try that is on; None where none is.

    Raises:
        WorkspaceError: It cannot be done safely, and why; no file was touched.
    """
    return await take_back(await _repository(folder, environment))


async def keep_try(
    folder: str | PathLike[str], *, environment: Mapping[str, str] | None = None
) -> OpenTry | None:
    """End the try that is on and leave its files; None where none is.

    Raises:
        WorkspaceError: It was cut short, so its files are no whole result.
    """
    return await leave_on(await _repository(folder, environment))


async def _repository(folder: str | PathLike[str], environment: Mapping[str, str] | None) -> Repo:
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    if place.repo is None:
        raise WorkspaceError(
            f"{place.project} is not in a git repository, so there is nothing to merge"
        )
    return place.repo
