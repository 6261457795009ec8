"""Release what a site keeps beside workspaces, once it is kept at home or wanted nowhere.

A recording goes once the same bytes are at home. The folder of a run, with its recordings and
HOMEs, goes once the user's repository has no such run any more. On the user's own disk it goes with
the run, too. Commits must be at home first.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread

from engine.beneath import remove_tree
from engine.git.objects import refs_below
from engine.git.runner import Call, Repo
from engine.ids import RunId
from engine.keeper import files, recording
from engine.messages.questions import CleanItem
from engine.site.trash import drop_empty
from engine.store.layout import Layout
from engine.values import dataclass


def recorded(worker: Path, names: Iterable[str] | None = None) -> Mapping[str, str]:
    """Return a digest of each recording of a worker whose attempt has ended, by folder.

    With `names`, only of these.
    """
    there = [one.name for one in worker.glob("attempt_*")] if names is None else names
    folders = (worker / name for name in there)
    return {
        folder.name: _digest(folder / recording.FILE)
        for folder in folders
        if (folder / files.EXIT).is_file() and (folder / recording.FILE).is_file()
    }


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def drop_recorded(worker: Path, at_home: Mapping[str, str]) -> None:
    """Remove the recordings of a worker that are at home byte by byte."""
    for name, digest in recorded(worker, at_home).items():
        if at_home[name] == digest:
            (worker / name / recording.FILE).unlink()


@dataclass(frozen=True, kw_only=True)
class FarStore:
    """All that a site keeps of one repository: its mirror, the files of its runs, their trees."""

    mirror: Repo
    layout: Layout
    trees: Path

    async def clear(
        self,
        known: Sequence[RunId],
        at_home: Mapping[str, str],
        *,
        going: Collection[str],
        is_dry: bool,
    ) -> tuple[tuple[CleanItem, ...], bool]:
        """Remove the folders of runs that are not known at home; return all such, with why.

        Also say whether nothing but the mirror would be left. `at_home` are the refs at home, and
        `going` the workspaces that are as good as gone.
        """
        refs = await refs_below(self.mirror, "refs/plait", "refs/heads")
        items = []
        for run in await anyio.to_thread.run_sync(_names, self.layout.runs):
            if run in known:
                continue
            lacking = [
                ref
                for ref, oid in refs.items()
                if ref.startswith(f"refs/plait/{run}/") and at_home.get(ref) != oid
            ]
            reasons = await anyio.to_thread.run_sync(self._why_it_stays, run, lacking, going)
            if not reasons and not is_dry:
                await self._drop(run, refs)
            folder = str(self.layout.runs / run)
            items.append(
                CleanItem(
                    run=run,
                    path=folder,
                    reasons=reasons,
                    was_removed=not reasons and not is_dry,
                    is_for_good=True,
                )
            )
        gone = {item.run for item in items if item.is_safe}
        return tuple(items), await anyio.to_thread.run_sync(self._is_empty_without, gone)

    def _why_it_stays(
        self, run: str, lacking: Sequence[str], going: Collection[str]
    ) -> tuple[str, ...]:
        drop_empty(self.trees / run)
        reasons = []
        if any(str(tree) not in going for tree in (self.trees / run).glob("*/*/*")):
            reasons.append("one of its workspaces still exists")
        if any(_lives(folder) for folder in (self.layout.runs / run).glob("*/*/attempt_*")):
            reasons.append("one of its agents still runs")
        if lacking:
            reasons.append(f"{lacking[0]} is not in your repository")
        return tuple(reasons)

    async def _drop(self, run: str, refs: Mapping[str, str]) -> None:
        own = [ref for ref in refs if f"/{run}/" in ref]
        steps = "".join(f"delete {ref}\0\0" for ref in own).encode()
        if steps:
            await self.mirror.run(
                "update-ref", "--stdin", "-z", call=Call(stdin=steps, writes=True)
            )
        await anyio.to_thread.run_sync(remove_tree, self.layout.runs / run)

    def _is_empty_without(self, gone: set[str]) -> bool:
        """Return whether no run, no workspace and nothing in the trash would be left."""
        trees = [one for one in _names(self.trees) if not one.startswith(".")]
        left = set(_names(self.layout.runs)) - gone
        return not (left or trees or _names(self.layout.trash))


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir()) if folder.is_dir() else []


def _lives(attempt: Path) -> bool:
    """Return whether an attempt has begun and its keeper lives."""
    fd = files.open_directory(str(attempt))
    try:
        return files.exists(fd, files.KEEPER) and not files.lock(fd)
    finally:
        os.close(fd)
