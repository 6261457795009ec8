"""Carry one repository's commits and settings to a mirror of it elsewhere, and its work back.

A mirror is a bare repository that knows no path of the user's. What its worktrees need of the
user's repository comes in a parcel: refs, settings, excludes, attributes, hooks, a pack. What comes
back is a pack too: every object in it is checked, and names are taken below the attempt's own only.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.collection import settle
from engine.git.inside import sane_name
from engine.git.names import RefNames, check_prefix
from engine.git.objects import refs_below, resolve, set_refs
from engine.git.private import COPIED, config_text, passed_on, seen_refs
from engine.git.runner import HERE, Call, Repo, Where
from engine.git.settings import UserSettings
from engine.git.workspace import Strategy, Workspace
from engine.git.worktrees import detach_others
from engine.private import private_folder
from engine.values import dataclass

_SLOW_S = 1800.0
_SHALLOW = "shallow"


@dataclass(frozen=True, kw_only=True)
class ParcelFile:
    """A file for the mirror's own folder."""

    name: str
    data: bytes
    is_program: bool = False


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """All that a mirror has to know of the user's repository, but for the objects.

    Attributes:
        refs: What an agent may see of the user's.
        rows: The configuration that an agent's git needs.
        commit: What the next workspace begins from; it comes with the pack.
        hide: What the names of workers' branches begin with.
    """

    object_format: str
    commit: str = ""
    hide: str = ""
    refs: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[tuple[str, str], ...] = ()
    settings: UserSettings = field(default_factory=UserSettings)
    files: tuple[ParcelFile, ...] = ()

    @property
    def shallow(self) -> bytes:
        """Return the commits at which the user's history ends, as git lists them."""
        return next((file.data for file in self.files if file.name == _SHALLOW), b"")


async def parcel_of(repo: Repo, commit: str, *, hide: str) -> Parcel:
    """Return what a mirror needs for work that begins at a commit.

    Raises:
        WorkspaceError: The repository has something that cannot be carried yet.
    """
    await check_carried(repo, commit)
    own = replace(repo.settings, excludes=None, signing=None, network=(), environment={})
    return Parcel(
        commit=commit,
        hide=hide,
        object_format=repo.object_format,
        refs=await seen_refs(repo, hide),
        rows=tuple(await passed_on(repo)),
        settings=own,
        files=tuple(await to_thread.run_sync(_files, repo)),
    )


async def check_carried(repo: Repo, base: str) -> None:
    """Refuse work that begins at a revision if a mirror could not be given all that it needs.

    Raises:
        WorkspaceError: The repository has something that cannot be carried yet.
    """
    if repo.settings.promisor is not None:
        raise _refused("a partial clone", "Fetch all of it: `git fetch --refetch --no-filter`.")
    commit = await resolve(repo, base) or await resolve(repo, "HEAD")
    if commit is not None and await repo.read("ls-tree", commit, "--", ".gitmodules"):
        raise _refused("submodules", "Leave out `sites`, so that workers run on your own disk.")


def _refused(what: str, hint: str) -> WorkspaceError:
    return WorkspaceError(f"{what} cannot move to another site yet", hint=hint)


def _files(repo: Repo) -> Iterable[ParcelFile]:
    common = Path(repo.common_dir)
    found = [ParcelFile(name=n, data=_read(common / n)) for n in (*COPIED, _SHALLOW)]
    excludes = [common / "info/exclude"]
    excludes += [Path(repo.settings.excludes)] if repo.settings.excludes else []
    found.append(ParcelFile(name="info/exclude", data=b"\n".join(map(_read, excludes))))
    hooks = common / "hooks"
    found += [
        ParcelFile(name=f"hooks/{hook.name}", data=hook.read_bytes(), is_program=True)
        for hook in (sorted(hooks.iterdir()) if hooks.is_dir() else ())
        if hook.suffix != ".sample" and hook.is_file() and os.access(hook, os.X_OK)
    ]
    return [one for one in found if one.data]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def lay_out(mirror: Path, parcel: Parcel) -> None:
    """Make a mirror, or bring what its own files say up to date."""
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        private_folder(mirror / folder)
    shutil.rmtree(mirror / "hooks", ignore_errors=True)
    private_folder(mirror / "hooks")
    for name in (*COPIED, _SHALLOW):
        (mirror / name).unlink(missing_ok=True)
    for file in parcel.files:
        path = mirror / file.name
        path.write_bytes(file.data)
        path.chmod(0o700 if file.is_program else 0o600)
    text = config_text(list(parcel.rows), parcel.object_format, is_bare=True)
    draft = mirror / "config.new"
    draft.write_bytes(text.encode(errors="surrogateescape"))
    draft.replace(mirror / "config")
    if not (mirror / "HEAD").exists():
        (mirror / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")


async def take_parcel(mirror: Repo, parcel: Parcel, pack: bytes) -> None:
    """Take a parcel's commits into a mirror, and show exactly its refs of the user's."""
    await unpack(mirror, pack, is_trusted=True)
    mirror.work_for(parcel.settings)
    mirror.is_shallow = bool(parcel.shallow)
    known = await refs_below(mirror)
    wanted = dict(parcel.refs)
    ours = ("refs/plait/", f"refs/heads/{parcel.hide}/")
    gone = [ref for ref in known if ref not in wanted and not ref.startswith(ours)]
    news = [(ref, oid) for ref, oid in wanted.items() if known.get(ref) != oid]
    await set_refs(mirror, news, say="plait: parcel")
    steps = "".join(f"delete {ref}\0\0" for ref in gone).encode()
    if steps:
        await mirror.run("update-ref", "--stdin", "-z", call=Call(stdin=steps, writes=True))


async def pack_of(
    repo: Repo, wanted: Iterable[str], had: Iterable[str], *, where: Where = HERE
) -> bytes:
    """Return a pack of these commits without what the other side has; empty if it lacks nothing."""
    names = [*dict.fromkeys(wanted)]
    asked = "".join(f"{oid}\n" for oid in had).encode()
    words = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    said = (await repo.read(*words, call=Call(stdin=asked), where=where)).decode().splitlines()
    known = {line.split(" ")[0] for line in said if not line.endswith(" missing")}
    if set(names) <= known:
        return b""
    stdin = "\n".join([*names, *(f"^{oid}" for oid in known), ""]).encode()
    options = ("-q", "--revs", "--thin", "--delta-base-offset", "--stdout")
    return await repo.read(
        "pack-objects", *options, call=Call(stdin=stdin, timeout_s=_SLOW_S), where=where
    )


async def unpack(repo: Repo, pack: bytes, *, where: Where = HERE, is_trusted: bool = False) -> None:
    """Take the objects of a pack in; each is checked unless they are the user's own.

    Raises:
        GitFailed: One of them was refused, and so all are.
    """
    if pack:
        call = Call(stdin=pack, writes=True, timeout_s=_SLOW_S)
        strict = () if is_trusted else ("--strict",)
        await repo.run("index-pack", "--stdin", "--fix-thin", *strict, call=call, where=where)


async def pin(repo: Repo, names: RefNames, commit: str) -> None:
    """Name the commit that an attempt begins from, and put the worker's branch there."""
    async with repo.lock.held():
        await detach_others(repo, names.branch_ref)
        refs = [(names.base, commit), (names.branch_ref, commit)]
        try:
            await set_refs(repo, refs, say="plait: prepare")
        except GitFailed:
            await check_prefix(repo, names.prefix)  # the one reason that can be told in words
            raise


def _check_own(names: RefNames, refs: Iterable[str]) -> None:
    below = f"{names.pinned}/"
    odd = [ref for ref in refs if not (ref.startswith(below) and sane_name(ref))]
    if odd:
        raise WorkspaceError(
            f"the work of {names.attempt} has a ref outside its namespace: {odd[0]}"
        )


async def bring_late(repo: Repo, names: RefNames, refs: Mapping[str, str], pack: bytes) -> None:
    """Take in the work of an attempt that was given up, under refs that nothing merges.

    Raises:
        WorkspaceError: A name leads elsewhere.
        GitFailed: An object was refused.
    """
    _check_own(names, refs)
    await unpack(repo, pack)
    late = ((names.late + ref.removeprefix(names.pinned), oid) for ref, oid in refs.items())
    await set_refs(repo, tuple(late), say="plait: late")


async def bring_home(repo: Repo, names: RefNames, refs: Mapping[str, str], pack: bytes) -> str:
    """Take the work of an attempt in, under its own refs; return what was left undone.

    Raises:
        WorkspaceError: A name leads elsewhere.
        GitFailed: An object was refused.
    """
    _check_own(names, refs)
    await unpack(repo, pack)
    await set_refs(repo, refs.items(), say="plait: collect")
    head = refs.get(names.head)
    if head is None:
        return ""
    space = Workspace(
        attempt=names.attempt,
        strategy=Strategy.CLONE,
        path="",
        directory="",
        base="",
        branch_prefix=names.prefix,
        branch=names.branch,
    )
    return await settle(repo, space, head, tip=await resolve(repo, names.branch_ref))
