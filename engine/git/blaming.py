"""Ask git who wrote each line of a file, and which landing brought a commit in."""

import re
from collections.abc import Mapping, Sequence

from engine.git.runner import Call, Repo, Where
from engine.values import dataclass

MOST_CANDIDATES = 50
"""Landings behind a commit that are looked at, the oldest first."""
_HEAD = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")
_FIELDS = ("Plait-Run", "Plait-Worker", "Plait-Attempt", "Plait-Check")
_FORMAT = "%x00".join(
    ("%x01%H", "%P", "%an", "%at", "%s", *(f"%(trailers:key={key},valueonly)" for key in _FIELDS))
)


@dataclass(frozen=True, kw_only=True)
class BlamedCommit:
    """A commit, and what plait's trailers in its message say; empty where there are none.

    Attributes:
        at: When it was written, in seconds since 1970.
    """

    commit: str
    parents: tuple[str, ...]
    author: str
    at: float
    subject: str
    run: str = ""
    worker: str = ""
    attempt: int = 0
    check: str = ""


async def blamed_lines(
    repo: Repo, path: str, lines: tuple[int, int] | None
) -> list[tuple[int, str]]:
    """Return the number of each line of a file in the working tree, and the commit it is from.

    The commit of a line that is in none is all zeros.

    Raises:
        GitFailed: There is no such file, or no such line.
    """
    chosen = () if lines is None else ("-L", f"{lines[0]},{lines[1]}")
    words = ("blame", "--porcelain", *chosen, "--", path)
    told = await repo.read(*words, where=Where(worktree=repo.worktree))
    found = (_HEAD.fullmatch(line) for line in told.split(b"\n") if line[:1] != b"\t")
    return [(int(head[2]), head[1].decode()) for head in found if head is not None]


async def described(repo: Repo, commits: Sequence[str]) -> Mapping[str, BlamedCommit]:
    """Return what these commits say."""
    if not commits:
        return {}
    words = ("log", "--no-walk=unsorted", "--no-show-signature", f"--format={_FORMAT}")
    return {one.commit: one for one in _parsed(await repo.read(*words, *commits, "--"))}


async def landings_behind(repo: Repo, commit: str) -> list[BlamedCommit]:
    """Return commits of plait's that are built on a commit, the oldest first."""
    words = ("log", "--reverse", "--ancestry-path", "--no-show-signature", "--grep=^Plait-Run: ")
    told = await repo.read(*words, f"--format={_FORMAT}", f"{commit}..HEAD", "--")
    return [one for one in _parsed(told) if one.run][:MOST_CANDIDATES]


async def is_in(repo: Repo, commit: str, other: str) -> bool:
    """Return whether a commit is another one, or an ancestor of it."""
    call = Call(ok=(0, 1, 128))  # 128: that other one is gone
    done = await repo.run("merge-base", "--is-ancestor", commit, other, call=call)
    return done.exit_code == 0


def _parsed(told: bytes) -> list[BlamedCommit]:
    found = []
    for record in told.decode(errors="replace").split("\x01")[1:]:
        commit, parents, author, at, subject, *trailers = (
            part.strip() for part in record.split("\0")
        )
        run, worker, attempt, check = trailers
        found.append(
            BlamedCommit(
                commit=commit,
                parents=tuple(parents.split()),
                author=author,
                at=float(at or 0),
                subject=subject,
                run=run,
                worker=worker,
                attempt=int(attempt) if attempt.isdecimal() else 0,
                check=check,
            )
        )
    return found
