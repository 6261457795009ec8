"""What setup made once, given to the next workspace with the same lock files before setup runs.

A seed is what a setup command added at the top of a workspace: `node_modules`, `.venv`, `target`.
It is known by the command and by the lock files, so another state of the dependencies is another
seed. Setup runs all the same; it only finds most of its work done.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LOCK_FILES = (
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock"),
    *("uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "requirements.txt"),
    *("Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock", "flake.lock"),
)
KEPT_S = 14 * 24 * 3600.0
"""A seed that nobody took for so long goes."""
_FICLONE = 0x40049409
"""The ioctl that shares a file's blocks where the file system can (Btrfs, XFS, bcachefs)."""


@dataclass(frozen=True)
class Seedling:
    """A workspace about to be set up: what it is known by, and what lay in it before."""

    key: str
    workspace: Path
    before: frozenset[str]


class Seeds:
    """The seeds of one repository, beside its workspaces."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, workspace: Path, setup: str) -> Seedling | None:
        """Give a workspace what there is for it; None where it has no lock file to be known by."""
        digest = hashlib.sha256(setup.encode())
        locks = [name for name in LOCK_FILES if (workspace / name).is_file()]
        if not locks:
            return None
        for name in locks:
            digest.update(f"\0{name}\0".encode() + (workspace / name).read_bytes())
        key = digest.hexdigest()[:32]
        before = _names(workspace)
        seed = self._root / key
        if seed.is_dir():
            os.utime(seed)
            for entry in seed.iterdir():
                if entry.name not in before:
                    _copy(entry, workspace / entry.name)
        return Seedling(key, workspace, before)

    def keep(self, seedling: Seedling) -> None:
        """Keep what setup added, if nothing is kept under that key yet; seeds of old go."""
        seed = self._root / seedling.key
        added = _names(seedling.workspace) - seedling.before
        if added and not seed.exists():
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = self._root / f".{seedling.key}.{secrets.token_hex(4)}"
            draft.mkdir(mode=0o700)
            try:
                for name in sorted(added):
                    _copy(seedling.workspace / name, draft / name)
                draft.rename(seed)
            except OSError:  # a full disk, or another was quicker: setup has done its work anyway
                shutil.rmtree(draft, ignore_errors=True)
        self._drop_old()

    def _drop_old(self) -> None:
        now = time.time()
        for seed in self._root.iterdir() if self._root.is_dir() else ():
            with suppress(OSError):
                if now - seed.stat().st_mtime > KEPT_S:
                    shutil.rmtree(seed)


def _names(folder: Path) -> frozenset[str]:
    return frozenset(entry.name for entry in folder.iterdir())


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, copy_function=_clone)
    else:
        _clone(str(source), str(target), follow_symlinks=False)


def _clone(source: str, target: str, *, follow_symlinks: bool = True) -> str:
    """Copy a file, sharing its blocks where that can be had."""
    if os.path.islink(source) and not follow_symlinks:  # noqa: PTH114  shutil hands over text
        return str(shutil.copy2(source, target, follow_symlinks=False))
    try:
        with open(source, "rb") as old, open(target, "xb") as new:  # noqa: PTH123  as above
            fcntl.ioctl(new.fileno(), _FICLONE, old.fileno())
        shutil.copystat(source, target)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(target)  # noqa: PTH108  as above
        shutil.copy2(source, target)
    return target
