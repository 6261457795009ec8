"""Decide if a worker's commits are all its own, or if the user has some on a branch as well.

Commits with plait's own trailers do not count as a worker's: they would claim on the target what
nobody proved.

What the user's refs reach above a base is asked of git once for as long as these refs stand still;
that they do is read from their files. In doubt git is asked again.
"""

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path

from anyio import to_thread

from engine.git.ancestry import above, line_from
from engine.git.objects import read_objects
from engine.git.plumbing.cache import stamp
from engine.git.runner import Repo
from engine.values import dataclass

_MOST_COMMITS = 4096
_MOST_FILES = 4096
_OWN = "refs/plait"
_IN_OUR_NAME = re.compile(r"^[ \t]*plait-[\w-]*[ \t]*:", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class CommitLine:
    """A worker's commits, oldest first, and where they are to come.

    Attributes:
        besides: A commit whose history stands for itself: the target's, or the base.
        target: The ref that is about to be moved, in full.
        prefix: The branches of workers stand below it.
    """

    base: str
    commits: Sequence[str]
    besides: str
    target: str = ""
    prefix: str

    @property
    def excluded(self) -> tuple[str, ...]:
        """Patterns of refs that are not the user's."""
        mine = (f"refs/heads/{self.prefix}", f"refs/remotes/*/{self.prefix}")
        return tuple(f"{one}/*" for one in (_OWN, *mine))


async def plain_line(repo: Repo, base: str, head: str) -> tuple[str, ...] | None:
    """Return the commits of the line from a base to a head, if none speaks in plait's name.

    Such a line cannot become history as it is: `Plait-Check: passed` there is a claim of the agent.
    """
    line = await line_from(repo, base, head)
    read = await read_objects(repo, line or ())
    return None if any(one is None or _speaks_for_us(one[1]) for one in read) else line


def _speaks_for_us(commit: bytes) -> bool:
    """Tell whether the message of a commit, as git shows it, has one of plait's trailers."""
    headers, _, message = commit.partition(b"\n\n")
    coded = re.search(rb"^encoding (.+)$", headers, re.MULTILINE)
    try:
        text = message.decode(coded[1].decode() if coded else "utf-8", errors="replace")
    except (LookupError, UnicodeError):
        return True  # a code that git may know
    return _IN_OUR_NAME.search(text) is not None


async def is_own(repo: Repo, line: CommitLine) -> bool:
    """Tell whether nobody but a worker stands on a part of its line of commits.

    A branch or tag that holds some of the commits and not the last one would be taken as merged
    along with them, whatever the later ones took back. One that holds the last one is built on the
    whole.
    """
    if not line.commits or await _is_apart(repo, line):
        return True
    first, last = line.commits[0], line.commits[-1]
    refs = (*(f"--exclude={one}" for one in line.excluded), "--glob=refs/*")
    words = ("rev-list", "--count", "--ignore-missing", last, f"^{line.besides}", "--not", *refs)
    if await repo.line(*words) == str(len(line.commits)):
        return True
    words = ("for-each-ref", "--format=%(refname)", f"--contains={first}", f"--no-contains={last}")
    names = (await repo.read(*words)).decode(errors="replace").splitlines()
    return all(any(fnmatchcase(name, one) for one in line.excluded) for name in names)


async def _is_apart(repo: Repo, line: CommitLine) -> bool:
    """Prove that no ref of the user's splits the line, by what is known; False where it is not."""
    if repo.is_shallow or repo.has_grafts:
        return False
    near = await above(repo, line.base, line.besides)
    if near is None or line.commits[0] in near:
        return False
    look = partial(_files_of_refs, repo, line)
    before = await to_thread.run_sync(look)
    if before is None:
        return False
    key = ("users' commits", line.base, line.target, line.prefix, before)
    known = repo.cache.known(key)
    if not isinstance(known, _Reached):
        known = await _reached(repo, line)
        if before == await to_thread.run_sync(look):
            repo.cache.put(key, known)
    return len(known) <= _MOST_COMMITS and not known.splits(line.commits[0], line.commits[-1])


@dataclass(frozen=True)
class _Reached:
    """The commits above a base that the user's refs reach, older ones first, and where refs are."""

    parents: Mapping[str, Sequence[str]]
    tips: frozenset[str]

    def __len__(self) -> int:
        return len(self.parents)

    def splits(self, first: str, last: str) -> bool:
        """Tell whether a ref reaches the first commit of a line and not its last one."""
        if first not in self.parents:
            return False
        return bool((self._over(first) - self._over(last)) & self.tips)

    def _over(self, commit: str) -> set[str]:
        found = {commit}
        for one, parents in self.parents.items():
            if not found.isdisjoint(parents):
                found.add(one)
        return found


async def _reached(repo: Repo, line: CommitLine) -> _Reached:
    """Ask git for them; for one more than counts at most."""
    refs = (*(f"--exclude={one}" for one in (*line.excluded, line.target) if one), "--glob=refs/*")
    order = ("--topo-order", "--reverse", "--parents", "--ignore-missing")
    words = ("rev-list", *order, f"--max-count={_MOST_COMMITS + 1}", *refs, f"^{line.base}", "--")
    rows = [row.split(" ") for row in (await repo.read(*words)).decode().splitlines()]
    words = ("for-each-ref", "--format=%(refname) %(objectname) %(*objectname)")
    listed = [
        row.split(" ") for row in (await repo.read(*words)).decode(errors="replace").splitlines()
    ]
    tips = [ids for ref, *ids in listed if ref != line.target and not _is_excluded(ref, line)]
    parents = {commit: tuple(parents) for commit, *parents in rows}
    return _Reached(parents, frozenset(chain.from_iterable(tips)))


def _files_of_refs(repo: Repo, line: CommitLine) -> Hashable | None:
    """Return what says where the user's refs stand; None where no files do, or too many."""
    common = Path(repo.common_dir)
    if (common / "reftable").exists():
        return None
    found: dict[str, bytes] = {}
    for folder, folders, files in os.walk(common / "refs"):
        below = os.path.relpath(folder, common)
        folders[:] = [one for one in folders if not _is_excluded(f"{below}/{one}/", line)]
        for name in files:
            ref = f"{below}/{name}"
            if ref != line.target and not _is_excluded(ref, line):
                found[ref] = _content(Path(folder, name))
        if len(found) > _MOST_FILES:
            return None
    return stamp(common / "packed-refs"), frozenset(found.items())


def _is_excluded(ref: str, line: CommitLine) -> bool:
    return any(fnmatchcase(ref, one) for one in line.excluded)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
