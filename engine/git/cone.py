"""The part of a repository that a worktree holds: some folders whole, and the files above them.

All other files stay in git and in the index, marked as left out: git's sparse checkout, in cone
mode. The patterns lie in the worktree's own folder, and the settings go along with each call, so
the user's configuration stays as it is.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from engine.values import dataclass

FILE = "info/sparse-checkout"
SETTINGS = (("core.sparseCheckout", "true"), ("core.sparseCheckoutCone", "true"))
FLAGS = tuple(word for key, value in SETTINGS for word in ("-c", f"{key}={value}"))
_SPECIAL = re.compile(rb"([*?\[\\])")


@dataclass(frozen=True, kw_only=True)
class Cone:
    """Some folders of a repository with all below them, and the files of every folder above.

    Attributes:
        folders: Their paths, none of them below another.
    """

    folders: tuple[str, ...]

    @cached_property
    def _whole(self) -> frozenset[bytes]:
        return frozenset(map(os.fsencode, self.folders))

    @cached_property
    def _above(self) -> frozenset[bytes]:
        above = (up for one in self._whole for up in _chain(one.rpartition(b"/")[0]))
        return frozenset((b"", *above))

    def holds(self, path: bytes) -> bool:
        """Tell if a file at a path belongs into the worktree."""
        above = _chain(path.rpartition(b"/")[0])
        return above[-1] in self._above or not self._whole.isdisjoint(above)

    @property
    def patterns(self) -> bytes:
        """Return the file from which git knows the folders, as git itself writes it."""
        lines = [b"/*", b"!/*/"]
        for up in sorted(self._above - {b""}):
            name = _SPECIAL.sub(rb"\\\1", up)
            lines += [b"/" + name + b"/", b"!/" + name + b"/*/"]
        lines += [b"/" + _SPECIAL.sub(rb"\\\1", whole) + b"/" for whole in sorted(self._whole)]
        return b"".join(line + b"\n" for line in lines)

    def write(self, git_dir: str | Path) -> None:
        """Let a git directory have these folders checked out."""
        file = Path(git_dir, FILE)
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(self.patterns)


def cone_of(folders: Sequence[str] | None) -> Cone | None:
    """Return the cone of some folders; None for the whole repository."""
    return None if folders is None else Cone(folders=tuple(folders))


def flags_of(cone: Cone | None) -> tuple[str, ...]:
    """Return the words by which a git call follows a cone."""
    return FLAGS if cone is not None else ()


@lru_cache(maxsize=4096)
def _chain(folder: bytes) -> tuple[bytes, ...]:
    """Return the top of a repository, which has no name, and each folder down to this one."""
    parts = folder.split(b"/") if folder else []
    return (b"", *(b"/".join(parts[: n + 1]) for n in range(len(parts))))


def replaced(name: bytes, others: Sequence[bytes]) -> bytes | None:
    """Return one of some sorted names that cannot stand beside another in a tree; None if all can.

    A file cannot have the name of a folder, nor lie below a file.
    """
    below = bisect_left(others, name + b"/")
    if below < len(others) and others[below].startswith(name + b"/"):
        return others[below]
    for up in _chain(name.rpartition(b"/")[0])[1:]:
        at = bisect_left(others, up)
        if at < len(others) and others[at] == up:
            return up
    return None
