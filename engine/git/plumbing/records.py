"""A record of our running git children, which tells their locks from those of others.

A git that is killed leaves its `.lock` files behind and every later call refuses to work. Those of
our own dead children are removed; a lock that may be somebody else's never is.
"""

import functools
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import psutil
from anyio import to_thread

from engine.values import dataclass

_ENDING_S = 10
_EXEC_LOOKS, _EMPTY_LOOKS = 1000, 3
_PASSING_S = 0.2
"""No living git keeps such a lock for longer."""


@dataclass(frozen=True, kw_only=True)
class StaleLocks:
    """The locks found after a crash: those removed, and those left because they may be live."""

    removed: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]


class Records:
    """One small file for each writing git child, from before its start until after its end.

    Its name is a mark that the child carries in its environment: a child whose engine died is
    found alive by it. The content names the engine by pid and start time.
    """

    VARIABLE = "PLAIT_GIT"
    READS = "reads"
    """The mark of all those that take no locks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def begin(self, words: Sequence[str]) -> str:
        """Write down that a child is about to start; its mark."""
        mark = secrets.token_hex(8)
        return await to_thread.run_sync(self._begin, mark, words)

    def _begin(self, mark: str, words: Sequence[str]) -> str:
        pid = os.getpid()
        me = {"pid": pid, "start": _own_start(pid), "words": list(words)}
        (self.folder / f"{mark}.child").write_text(json.dumps(me), encoding="utf-8")
        return mark

    async def end(self, mark: str) -> None:
        """The child has ended and been reaped."""
        record = self.folder / f"{mark}.child"
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: record.unlink(missing_ok=True))

    async def end_killed(self, mark: str, common_dir: str) -> None:
        """A child was killed, and its locks go with it: those that nobody takes away by himself.

        Where one may be somebody else's the record stays: the next engine looks at them again.
        """
        with anyio.CancelScope(shield=True):
            seen = await to_thread.run_sync(_seen, common_dir)
            if seen:
                await anyio.sleep(_PASSING_S)
            await to_thread.run_sync(self._end_killed, mark, common_dir, seen)

    def _end_killed(self, mark: str, common_dir: str, seen: Mapping[Path, int]) -> None:
        record = self.folder / f"{mark}.child"
        left = [lock for lock, number in _seen(common_dir).items() if seen.get(lock) == number]
        stale = _removed(left, record.stat().st_mtime_ns, has_living=False)
        if not stale.kept:
            record.unlink(missing_ok=True)

    def orphans(self) -> dict[str, int]:
        """Marks of children whose engine is dead, each with the time (ns) it began after."""
        found: dict[str, int] = {}
        for record in self.folder.glob("*.child"):
            try:
                owner = json.loads(record.read_text(encoding="utf-8"))
                # The pid alone may belong to another process by now.
                is_alive = _start_of(owner["pid"]) == owner["start"]
            except (ValueError, KeyError, TypeError, FileNotFoundError):
                is_alive = False  # killed while writing it: the child never started
            if not is_alive and record.exists():
                found[record.stem] = record.stat().st_mtime_ns
        return found

    async def end_orphans(self) -> int:
        """Kill the children of dead engines that still run, and wait until they are gone.

        They would write beside whoever takes up the work; what they leave half done, the recovery
        of that work finishes.
        """
        return await to_thread.run_sync(self._end_orphans)

    def _end_orphans(self) -> int:
        orphans = self.orphans()
        if not orphans:
            return 0
        living = [p for p, mark in _marked(self.VARIABLE) if mark in orphans]
        for process in living:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(living, timeout=_ENDING_S)
        return len(living)

    def remove_stale(self, common_dir: str, worktrees: Iterable[str]) -> StaleLocks:
        """Remove the locks that dead children of dead engines left; never one that may be foreign.

        `worktrees` are the git directories of working trees that are ours. The user's own index is
        never among them: a landing locks it with a file whose content says so.
        """
        orphans = self.orphans()
        if not orphans:
            return StaleLocks(removed=(), kept=())
        living = {mark for _, mark in _marked(self.VARIABLE)} & orphans.keys()
        since = min(orphans.values())
        stale = _removed(_locks(common_dir, worktrees), since, has_living=bool(living))
        for mark in orphans.keys() - living if not stale.kept else ():
            (self.folder / f"{mark}.child").unlink(missing_ok=True)
        return stale


def _seen(common_dir: str) -> dict[Path, int]:
    """The locks that are there, each by the number of its file."""
    found: dict[Path, int] = {}
    for lock in _locks(common_dir, ()):
        with suppress(FileNotFoundError):
            found[lock] = lock.stat().st_ino
    return found


def _removed(locks: Iterable[Path], since: int, *, has_living: bool) -> StaleLocks:
    removed: list[str] = []
    kept: list[tuple[str, str]] = []
    for lock in locks:
        reason = _why_keep(lock, since, has_living=has_living)
        if reason:
            kept.append((str(lock), reason))
        else:
            lock.unlink(missing_ok=True)
            removed.append(str(lock))
    return StaleLocks(removed=tuple(removed), kept=tuple(kept))


def _locks(common_dir: str, worktrees: Iterable[str]) -> list[Path]:
    common = Path(common_dir)
    names = ("HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock")
    found = [common / name for name in names]
    found += sorted((common / "worktrees").glob("*/HEAD.lock"))  # locked to write down its move
    found += sorted((common / "refs").rglob("*.lock"))
    for own in worktrees:
        found += sorted(Path(own).glob("*.lock"))
    return [lock for lock in found if lock.exists()]


def _why_keep(lock: Path, since: int, *, has_living: bool) -> str:
    if has_living:
        return "a git process of an earlier engine is still running"
    if lock.stat().st_mtime_ns < since:
        return "it is older than every git process of plait"
    holder = _holder(lock)
    return f"process {holder} holds it" if holder else ""


def _holder(lock: Path) -> int | None:
    """A process that has the lock open, or a living git that works in this repository."""
    repository = str(lock)
    for process in psutil.process_iter(["pid", "name"]):
        try:
            if any(file.path == repository for file in process.open_files()):
                return int(process.pid)
            is_git = (process.info["name"] or "").startswith("git")
            if is_git and _is_near(process.cwd(), lock) and not _only_reads(process):
                return int(process.pid)
        except (psutil.Error, OSError):
            continue
    return None


def _only_reads(process: psutil.Process) -> bool:
    """It is one of ours that takes no locks."""
    return _environment(process).get(Records.VARIABLE) == Records.READS


def _is_near(folder: str, lock: Path) -> bool:
    """The folder is the repository's, or one around it, or one inside its working tree."""
    git_dir = next((p for p in lock.parents if (p / "objects").is_dir()), lock.parent)
    top = git_dir.parent if git_dir.name == ".git" else git_dir
    return Path(folder).is_relative_to(top)


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return the environment of a process, and wait while the process becomes another program.

    During execve the kernel shows a program, but neither its arguments nor its environment yet.
    """
    empty = 0
    for _ in range(_EXEC_LOOKS):
        found: dict[str, str] = process.environ()
        if found or not process.exe():  # a kernel thread has no program
            return found
        empty = empty + 1 if process.cmdline() else 0
        if empty == _EMPTY_LOOKS:
            break
        os.sched_yield()
    return {}


def _marked(variable: str) -> list[tuple[psutil.Process, str]]:
    """Living processes that carry a mark of ours."""
    found: list[tuple[psutil.Process, str]] = []
    for process in psutil.process_iter():
        try:
            mark = _environment(process).get(variable)
            if mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, mark))
        except (psutil.Error, OSError):
            continue
    return found


@functools.cache
def _own_start(pid: int) -> float | None:
    """The start of this process, asked once."""
    return _start_of(pid)


def _start_of(pid: int) -> float | None:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
