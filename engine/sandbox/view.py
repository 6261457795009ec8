"""An attempt's view of the file system: folders shown and hidden, before any mechanism.

Allow-listed: the system's own folders, the user's toolchains, the attempt's own folders, openings.
Whatever is not named is not there; so a disk mounted at `/data` tomorrow is not there either.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from engine.errors import WorkspaceError
from engine.sandbox import outlet
from engine.sandbox.holes import hole_paths, hole_sockets
from engine.sandbox.machine import MachineSupport
from engine.sandbox.request import ConfineRequest, NetworkAccess
from engine.sandbox.toolchains import Toolchains, find_toolchains, is_below
from engine.values import dataclass

SYSTEM_FOLDERS = tuple(
    Path("/", name)
    for name in (
        *("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "sys"),
        *("nix/store", "nix/var/nix/profiles", "gnu/store", "run/current-system", "snap"),
        *("var/lib/dpkg", "var/lib/rpm", "var/lib/pacman", "var/lib/alternatives"),
        *("var/lib/ca-certificates", "var/lib/ghc", "var/lib/texmf", "var/cache/fontconfig"),
    )
)
"""Programs and what they need, of many distributions. Not `/run`, nor the whole of `/var` or
`/nix`: there lie the sockets of daemons that would do for an agent what it may not."""

_TMP = Path("/tmp")  # noqa: S108 - the attempt's own; nothing of the machine's is seen there
_MADE = frozenset(map(Path, ("/proc", "/dev", "/var/run", "/var/lock", "/var/tmp")))  # noqa: S108
"""The mounts that every sandbox has of its own."""
_RESOLVER_FOLDER = Path("/run/systemd/resolve")


class Access(StrEnum):
    """The way a path is seen; on the same path the later in this list wins."""

    READ = "ro"
    WRITE = "rw"
    HIDDEN = "hidden"


@dataclass(frozen=True, kw_only=True)
class BindMount:
    """One path inside, and the path outside that is seen there."""

    inside: Path
    outside: Path
    access: Access


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything an attempt sees, shallow paths first so that deeper ones lie on top.

    Attributes:
        links: Links to make where nothing else is seen, so that what is shown has all its names.
        temp: What TMPDIR should be.
    """

    sights: tuple[BindMount, ...]
    links: tuple[Path, ...]
    toolchains: Toolchains
    temp: Path


def look(machine: MachineSupport, request: ConfineRequest) -> View:
    """Return what the attempt of this request is to see on this machine.

    Raises:
        WorkspaceError: The workspace's `.git` is a link.
    """
    system = tuple(folder for folder in SYSTEM_FOLDERS if folder.exists())
    toolchains = find_toolchains(request.env, system)
    common = _common((*system, *toolchains.folders), toolchains.links)
    sights = [
        *_same((*request.read_only, *outlet.shown(machine, request)), Access.READ),
        *_name_resolution(request),
        *_same(request.git_objects, Access.READ),
        *_own_folders(request),
        *_same(request.writable, Access.WRITE),
        *_holes(request),
        *_same((*request.hide, *map(Path, machine.root_only)), Access.HIDDEN),
    ]
    if request.git_file is not None:
        dot_git = request.workspace.resolve() / ".git"
        if dot_git.is_symlink():
            # bubblewrap would follow it and make its mount point wherever it leads.
            raise WorkspaceError(
                f"{dot_git} is a link, and git never creates one there: somebody tampered with it"
            )
        sights.append(BindMount(inside=dot_git, outside=request.git_file, access=Access.READ))
    links = tuple(_links(common.links, sights))
    crowded = any(map(_is_inside_tmp, (*(sight.inside for sight in sights), *links)))
    own_tmp = not (common.is_crowded or crowded) or request.temp is None
    if request.temp is not None:
        inside = _TMP if own_tmp else request.temp.resolve()
        sights.append(BindMount(inside=inside, outside=request.temp.resolve(), access=Access.WRITE))
    temp = _TMP if own_tmp or request.temp is None else request.temp.resolve()
    return View(
        sights=tuple(_in_order((*common.sights, *sights))),
        links=links,
        toolchains=toolchains,
        temp=temp,
    )


def toolchains_for(request: ConfineRequest) -> Toolchains:
    """The user's toolchains, where nothing is hidden and no view is made."""
    return find_toolchains(request.env, SYSTEM_FOLDERS)


class _Common(NamedTuple):
    """The common view of all attempts; `links` are those that none of it is in the way of."""

    sights: tuple[BindMount, ...]
    links: tuple[Path, ...]
    is_crowded: bool


@lru_cache(maxsize=16)
def _common(folders: tuple[Path, ...], links: tuple[Path, ...]) -> _Common:
    """Most of every view: making that anew for each attempt took longer than all the rest.

    None of the folders goes through a link, but for those of the system (`/bin` to `usr/bin`),
    which are shown under their own names.
    """
    sights = tuple(BindMount(inside=path, outside=path, access=Access.READ) for path in folders)
    is_crowded = any(map(_is_inside_tmp, folders))
    return _Common(sights, tuple(_free(links, sights)), is_crowded)


def _links(links: Sequence[Path], sights: Iterable[BindMount]) -> Iterator[Path]:
    """Those that lie in nothing that is shown, and in nobody's way."""
    for link in _free(links, sights):
        if link.is_symlink():  # it may be gone since PATH was looked at
            yield link


def _free(links: Sequence[Path], sights: Iterable[BindMount]) -> Iterator[Path]:
    if not links:
        return
    shown = {sight.inside for sight in sights if sight.access is not Access.HIDDEN}
    taken = {parent for sight in sights for parent in sight.inside.parents}
    for link in links:
        if link not in taken and not is_below(link, shown | _MADE):
            yield link


def _is_inside_tmp(path: Path) -> bool:
    return len(path.parts) > len(_TMP.parts) and path.parts[: len(_TMP.parts)] == _TMP.parts


def _in_order(sights: Iterable[BindMount]) -> list[BindMount]:
    """Shallow first; of several on one path the strongest alone; nothing hidden in the void."""
    ranks = list(Access)
    chosen: dict[Path, BindMount] = {}
    for sight in sorted(sights, key=lambda each: ranks.index(each.access)):
        chosen[sight.inside] = sight
    ordered = sorted(chosen.values(), key=lambda each: (len(each.inside.parts), each.inside))
    # A folder in memory counts as shown: what seems written in there would be gone afterwards.
    shown = {_TMP, *(sight.inside for sight in ordered if sight.access is not Access.HIDDEN)}
    return [
        sight
        for sight in ordered
        if sight.access is not Access.HIDDEN
        or (is_below(sight.inside, shown) and os.path.lexists(sight.inside))
    ]


def _same(paths: Iterable[Path], access: Access) -> Iterator[BindMount]:
    for path in paths:
        real = path.resolve()
        yield BindMount(inside=real, outside=real, access=access)


def _own_folders(request: ConfineRequest) -> Iterator[BindMount]:
    work = Access.READ if request.is_read_only else Access.WRITE
    yield from _same((request.workspace,), work)
    if request.private_clone is not None:
        yield from _same((request.private_clone,), work)
    yield from _same((request.home,), Access.WRITE)


def _name_resolution(request: ConfineRequest) -> Iterator[BindMount]:
    """Show what `/etc/resolv.conf` leads to; the resolver's sockets would pass a closed network."""
    if request.network is not NetworkAccess.OPEN:
        return
    real = Path("/etc/resolv.conf").resolve()
    if real.is_relative_to(_RESOLVER_FOLDER):
        yield from _same((_RESOLVER_FOLDER,), Access.READ)
    elif real.is_file() and not is_below(real, SYSTEM_FOLDERS):
        yield from _same((real,), Access.READ)


def _holes(request: ConfineRequest) -> Iterator[BindMount]:
    for path, is_writable in hole_paths(request):
        yield from _same((path,), Access.WRITE if is_writable else Access.READ)
    for path in hole_sockets(request):
        # Under both names: the variable that leads to it may go through a link (`/var/run`).
        yield BindMount(inside=path, outside=path.resolve(), access=Access.WRITE)
        yield from _same((path,), Access.WRITE)
