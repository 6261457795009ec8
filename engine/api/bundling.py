"""Bundle all that a run has made into one file for `git fetch`, to leave its machine."""

from collections.abc import Mapping
from os import PathLike, environ
from pathlib import Path

from engine.errors import WorkspaceError
from engine.git.bundling import Bundled, write_bundle
from engine.plan.model import Plan
from engine.site.place import find_place


async def bundle_run(
    folder: str | PathLike[str],
    run: str,
    file: Path,
    *,
    plan: Plan,
    environment: Mapping[str, str] | None = None,
) -> Bundled:
    """Write every branch and every attempt of a run, as far as it has come, into a new file.

    Raises:
        WorkspaceError: No repository holds the folder.
        GitFailed: It could not be written.
    """
    place = await find_place(Path(folder), dict(environ if environment is None else environment))
    if place.repo is None:
        raise WorkspaceError(
            f"{folder} is in no git repository, so there is nothing to bundle",
            hint="`plait export` writes a run as plain files.",
        )
    below = (f"refs/heads/{plan.runtime.branch_prefix}/{run}", f"refs/plait/{run}")
    return await write_bundle(place.repo, file, below=below, base=f"refs/plait/{run}/@base")
