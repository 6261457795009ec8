"""Files that a step gives to those after it, kept where no agent reaches them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from engine.ids import AttemptId
from engine.store.layout import Layout


def artifacts_folder(layout: Layout, attempt: AttemptId) -> Path:
    """Where an attempt's artifacts are kept."""
    return layout.attempt(attempt).with_name(f"artifacts_{attempt.number}")


def keep_artifacts(root: Path, patterns: Sequence[str], kept: Path) -> tuple[str, ...]:
    """Copy what matches out of a workspace; links that lead out of it are passed over."""
    root = root.resolve()
    found: list[str] = []
    for pattern in patterns:
        for source in sorted(root.glob(pattern)):
            if source.resolve().is_relative_to(root):
                name = source.relative_to(root)
                copy(source, kept / name)
                found.append(str(name))
    return tuple(found)


def give_artifacts(kept: Path, workspace: Path) -> tuple[str, ...]:
    """Copy kept artifacts into a workspace; what is there already stays as it is."""
    given: list[str] = []
    if not kept.is_dir():
        return ()
    for source in sorted(kept.rglob("*")):
        name = source.relative_to(kept)
        target = workspace / name
        if not source.is_dir() and not target.exists() and not target.is_symlink():
            copy(source, target)
            given.append(str(name))
    return tuple(given)


def copy(source: Path, target: Path) -> None:
    """Copy a file, a link or a whole folder; links are copied as links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
