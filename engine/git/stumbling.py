"""Put out of git's way what it stumbles over in a place that an agent shaped.

Git opens what it takes for rules or for objects without asking what it is: it waits forever for
the other end of a FIFO, and dies of rules that are too long. What it passes over in silence is
looked for here too.
"""

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from anyio import to_thread

from engine.beneath import PathRefused, Why, move_aside, release, survey
from engine.errors import GitFailed
from engine.patterns import gather
from engine.values import dataclass

_RULES = frozenset({b".gitignore", b".gitattributes", b".gitmodules"})
_LONGEST_RULES = 10 << 20
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class LookedThrough:
    """The findings in a working tree.

    Attributes:
        odd: What no commit can hold, and what could not be looked at.
        moved: Rules that git could not read: what each was called, and is called now.
    """

    odd: tuple[PathRefused, ...] = ()
    moved: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def is_closed(self) -> bool:
        """A folder forbids to be entered."""
        return any(one.why is Why.UNREADABLE for one in self.odd)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say which files have another name now."""
        return tuple(
            f"git could not read {os.fsdecode(old)}; plait moved it to {os.fsdecode(new)}."
            for old, new in self.moved
        )


async def past_obstacles(
    worktree: str, work: Callable[[], Awaitable[T]]
) -> tuple[LookedThrough, T]:
    """Let git do its work beside the search for what is in its way; once more if something was.

    Raises:
        GitFailed: It failed, and nothing was in its way, or failed again.
    """
    failed: list[GitFailed] = []

    async def look() -> LookedThrough:
        return await to_thread.run_sync(look_through, worktree)

    async def attempt() -> T | None:
        try:
            return await work()
        except GitFailed as error:
            failed.append(error)
            return None

    pair: list[LookedThrough | T | None] = await gather([look, attempt])
    found, done = cast("tuple[LookedThrough, T | None]", tuple(pair))
    if failed and not (found.moved or found.is_closed):
        raise failed[0]
    if done is None or found.moved:
        return found, await work()
    return found, done


def look_through(worktree: str) -> LookedThrough:
    """Look through a working tree in which git may be at work already.

    A git that waits for rules which are no file goes on.
    """
    moved: list[tuple[bytes, bytes]] = []
    odd: list[PathRefused] = []

    def put_aside(name: bytes, *, is_file: bool) -> None:
        found = move_aside(worktree, name)
        if isinstance(found, bytes):
            moved.append((name, found))
            if not is_file:
                odd.append(PathRefused(found, Why.NOT_A_FILE))
                release(worktree, found)

    seen = survey(
        worktree, skipped={b".git"}, watched=_RULES, longest=_LONGEST_RULES, on_bad=put_aside
    )
    return LookedThrough(odd=(*seen.odd, *odd), moved=tuple(moved))


def clear_objects(git_dir: str) -> None:
    """Put aside what is neither file, folder nor link among the objects of an agent's git."""
    objects = f"{git_dir}/objects"
    for one in survey(objects).odd:
        if one.why is Why.NOT_A_FILE:
            move_aside(objects, one.path)
