"""The note that our git has filled a tree: when, from which commit, and by which settings."""

import hashlib
import json
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio import to_thread

from engine.git.disk_moment import DiskMoment
from engine.git.runner import Repo

_NOTE = "filled.json"


@dataclass(frozen=True, kw_only=True)
class FillNote:
    """A tree as our git made it, before anybody else was in it.

    Attributes:
        base: The commit whose files it holds.
        moment: When they were all there.
        made_by: The settings by which git wrote them.
        folder_mode: The mode of a folder that git made.
    """

    base: str
    moment: DiskMoment
    made_by: str
    folder_mode: int


async def note_filled(repo: Repo, path: str, directory: Path, base: str) -> None:
    """Note beside a tree that git has just filled it; without the note it is never used again."""
    made_by = await settings_of(repo)
    if made_by is not None:
        await to_thread.run_sync(_note_filled, path, directory, base, made_by)


def _note_filled(path: str, directory: Path, base: str, made_by: str) -> None:
    with suppress(OSError):  # a full disk, for example: half of a note is none
        moment = DiskMoment.next(path)
        if moment is not None:
            mode = folder_mode(directory)
            noted = {"base": base, "moment": moment, "made_by": made_by, "folder_mode": mode}
            (directory / _NOTE).write_text(json.dumps(noted))


def folder_mode(directory: Path) -> int:
    """Return the mode of a folder that git makes now: the umask decides, of files too."""
    with TemporaryDirectory(dir=directory) as folder:
        Path(folder, "made").mkdir()
        return stat.S_IMODE(Path(folder, "made").stat().st_mode)


def filled(directory: Path) -> FillNote | None:
    """Return what was noted about the tree of an attempt; None if nothing was."""
    try:
        noted = json.loads((directory / _NOTE).read_bytes())
        return FillNote(**noted | {"moment": DiskMoment.noted(noted["moment"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def settings_of(repo: Repo) -> str | None:
    """Return a digest of all that decides how git writes a file; None if it writes only some."""
    await repo.configuration()  # the settings follow it
    return await to_thread.run_sync(_settings, repo)


def _settings(repo: Repo) -> str | None:
    if Path(repo.common_dir, "info/sparse-checkout").exists():
        return None
    own = repo.settings
    said = repr((own.conversion, own.lfs, own.is_shared, repo.object_format, repo.version)).encode()
    with suppress(FileNotFoundError):
        said += Path(repo.common_dir, "info/attributes").read_bytes()
    return hashlib.sha256(said).hexdigest()
