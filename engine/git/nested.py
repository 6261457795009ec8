"""Keeps the user's git from obeying a repository that an agent left in its worktree.

Whoever types `git status` in a folder runs what the configuration found there names: a file
monitor, a pager, a filter, a hook. So after each attempt the worktree's own `.git` must be what it
was, and every repository below it must hold settings that run nothing. What is not so is renamed,
kept beside its old name, and reported.
"""

import os
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from anyio import to_thread

from engine.beneath import PathRefused, Taken, move_aside, read_file, remove_file, write_file
from engine.errors import GitFailed
from engine.git.runner import Call, Repo
from engine.legible import legible_line
from engine.values import dataclass

_REACH = b"gitdir: "
_MOST_BYTES = 1 << 20
_MOST_TOLD = 20
_BARE = frozenset({"HEAD", "objects", "refs"})
_LEADING = ("config.worktree", "commondir", "gitdir")
"""Settings that lead a repository to other files than its `config`."""
_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks"
    r"|precomposeunicode|abbrev|autocrlf|eol|safecrlf|quotepath|sharedrepository"
    r"|sparsecheckout|sparsecheckoutcone)|index\.sparse"
    r"|extensions\.objectformat|user\.(name|email)|init\.defaultbranch|gc\.auto|push\.default"
    r"|pull\.(rebase|ff)|maintenance\.auto|lfs\.repositoryformatversion|submodule\.active"
    r"|remote\..*\.(url|pushurl|fetch|tagopt|prune)|submodule\..*\.(url|active)"
    r"|branch\..*\.(remote|merge|rebase|description)",
    re.DOTALL,
)
"""Settings that run nothing and lead nowhere; all others are taken for such that might."""


@dataclass(frozen=True)
class _Repository:
    """A repository that git would find: what is looked into, and how it is called for people."""

    root: Path
    inner: str
    is_submodule: bool = False

    @property
    def path(self) -> Path:
        """The path of its configuration."""
        return self.root / self.inner


async def quiet_repositories(
    repo: Repo, worktree: str, *, admin: str | None, private: str | None
) -> tuple[str, ...]:
    """Set aside what the user's git would run in a worker's tree; return that as sentences.

    Args:
        repo: The user's repository, whose git reads the settings.
        worktree: The tree, in which no agent is at work any more.
        admin: The tree's own folder in the user's repository; None where it has none.
        private: The agent's own git directory, to which submodules may lead.
    """
    notes: list[str] = []
    if admin is not None:
        notes += await to_thread.run_sync(_restore, worktree, admin)
    own = Path(private) if private else None
    found, strange = await to_thread.run_sync(_look, Path(worktree), own)
    notes += strange
    users = await _users_settings(repo) if found else frozenset()
    for each in found:
        notes += await _quiet(repo, each, users)
    more = len(notes) - _MOST_TOLD
    # A name and a setting are the agent's own words: nothing of them may act on a terminal.
    return (
        *map(legible_line, notes[:_MOST_TOLD]),
        *([f"{more} more were set aside in the same way."] if more > 0 else []),
    )


def _restore(worktree: str, admin: str) -> list[str]:
    """Let the worktree's own `.git` lead to the user's repository, whatever it became."""
    if not Path(worktree).is_dir() or Path(worktree).is_symlink() or not Path(admin).is_dir():
        return []
    wanted = _REACH + os.fsencode(admin)
    said = read_file(worktree, ".git", most=_MOST_BYTES)
    if isinstance(said, bytes) and said.rstrip(b"\n") == wanted:
        return []
    aside = None
    if isinstance(said, PathRefused):  # a folder, a link, or nothing at all
        aside = move_aside(worktree, ".git")
    point_to(worktree, admin)
    if not isinstance(aside, bytes):
        return []
    return [
        f"The agent put another `.git` into its tree; plait set it aside as `{os.fsdecode(aside)}`."
    ]


def point_to(worktree: str, admin: str) -> None:
    """Let the workspace's own `.git` lead to a repository.

    Not where the agent removed the tree, or made a repository there: that is set aside first.
    """
    # Not by renaming: a file left beside it by a crash would be taken for the agent's. A crash
    # here is repaired by collecting again.
    if remove_file(worktree, ".git") is None:
        write_file(worktree, ".git", _REACH + os.fsencode(admin) + b"\n", taken=Taken.KEEP)


def _look(worktree: Path, private: Path | None) -> tuple[list[_Repository], list[str]]:
    """Find the repositories of a tree, and set aside what leads out of it."""
    found: dict[Path, _Repository] = {}
    notes: list[str] = []
    for inner, names in _folders(worktree):
        if ".git" in names and inner:
            one = _behind(worktree, f"{inner}/.git", private)
            if one is None:
                aside = move_aside(worktree, f"{inner}/.git")
                notes.append(f"`{inner}/.git` pointed elsewhere; plait set it aside.")
                if isinstance(aside, PathRefused):
                    notes[-1] = f"`{inner}/.git` points elsewhere and stays: do not use git there."
            else:
                found[one.path] = one
        if names >= _BARE:
            found[worktree / inner] = _Repository(worktree, inner or ".")
    top = worktree / ".git"
    if top.is_dir() and not top.is_symlink():  # the tree is a clone of its own
        found[top] = _Repository(worktree, ".git")
    return list(found.values()), notes


def _folders(top: Path) -> Iterator[tuple[str, set[str]]]:
    """Every folder of a tree with the names in it, `.git` itself left out; the top has no name."""
    waiting = [""] if top.is_dir() and not top.is_symlink() else []
    while waiting:
        folder = waiting.pop()
        prefix = f"{folder}/" if folder else ""
        names: set[str] = set()
        try:
            with os.scandir(f"{top}/{folder}") as entries:
                for entry in entries:
                    names.add(entry.name)
                    if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                        waiting.append(prefix + entry.name)
        except OSError:  # closed: nobody's git gets in there either
            continue
        yield folder, names


def _behind(worktree: Path, name: str, private: Path | None) -> _Repository | None:
    """The repository that a nested `.git` stands for; None where it leads out of the agent's."""
    place = worktree / name
    if place.is_dir() and not place.is_symlink():
        return _Repository(worktree, name)
    said = read_file(worktree, name, most=_MOST_BYTES)
    if isinstance(said, PathRefused) or not said.startswith(_REACH):
        return None
    target = Path(place.parent, os.fsdecode(said.removeprefix(_REACH).rstrip(b"\n"))).resolve()
    for root, is_submodule in ((worktree, False), (private, True)):
        if root is not None and root.resolve() in target.parents:
            inner = target.relative_to(root.resolve())
            return _Repository(root, str(inner), is_submodule)
    return None


async def _users_settings(repo: Repo) -> frozenset[tuple[str, str]]:
    """Return the settings of the user's own repository: an agent's copy of them is no news."""
    done = await repo.run("config", "--list", "-z", call=Call(ok=(0, 1)))
    return frozenset(_pairs(done.stdout))


async def _quiet(repo: Repo, one: _Repository, users: Container[tuple[str, str]]) -> list[str]:
    """Leave a repository with settings and hooks that run nothing, or nothing but the user's."""
    notes = await to_thread.run_sync(_set_aside_hooks, one, Path(repo.common_dir, "hooks"))
    said = await to_thread.run_sync(_config, one)
    if said is None:
        return notes
    settings = await _settings(repo, said)
    strange = (pair for pair in settings or () if pair not in users)
    reasons = sorted({key for key, _ in strange if not _is_harmless(one, key)})
    if settings is not None and not reasons:
        return notes
    aside = await to_thread.run_sync(move_aside, one.root, f"{one.inner}/config")
    if isinstance(aside, bytes):
        plain = _plain(dict(settings or ()))
        await to_thread.run_sync(write_file, one.root, f"{one.inner}/config", plain)
    keys = ", ".join(reasons[:5])
    what = f"has {keys}, which your git might run" if reasons else "cannot be read"
    done = "plait set it aside" if isinstance(aside, bytes) else "do not use git there"
    return [*notes, f"`{one.inner}/config` {what}; {done}."]


def _is_harmless(one: _Repository, key: str) -> bool:
    return bool(_HARMLESS.fullmatch(key)) or (one.is_submodule and key == "core.worktree")


def _set_aside_hooks(one: _Repository, users: Path) -> list[str]:
    """Rename hooks that are not the user's own, and what leads to other settings."""
    names = [name for name in _LEADING if os.path.lexists(one.path / name)]
    if _has_strange_hooks(one, users):
        names.append("hooks")
    done = {name: move_aside(one.root, f"{one.inner}/{name}") for name in names}
    return [
        f"`{one.inner}/{name}` was set aside: your git might run its content."
        for name, aside in done.items()
        if isinstance(aside, bytes)
    ]


def _has_strange_hooks(one: _Repository, users: Path) -> bool:
    place = one.path / "hooks"
    if not os.path.lexists(place):
        return False
    if not place.is_dir() or place.is_symlink():
        return True
    for name in os.listdir(place):  # noqa: PTH208 - names are wanted
        if name.endswith(".sample"):
            continue
        said = read_file(one.root, f"{one.inner}/hooks/{name}", most=_MOST_BYTES)
        own = users / name
        if isinstance(said, PathRefused) or not own.is_file() or own.read_bytes() != said:
            return True
    return False


def _config(one: _Repository) -> bytes | None:
    """A repository's settings; None where it has none. What is no file counts as unreadable."""
    if not os.path.lexists(one.path / "config"):
        return None
    said = read_file(one.root, f"{one.inner}/config", most=_MOST_BYTES)
    return b"[" if isinstance(said, PathRefused) or len(said) == _MOST_BYTES else said


async def _settings(repo: Repo, content: bytes) -> list[tuple[str, str]] | None:
    """Return settings without following includes; None where git cannot read them."""
    call = Call(stdin=content)
    try:
        done = await repo.run("config", "--file", "-", "--no-includes", "--list", "-z", call=call)
    except GitFailed:
        return None
    return list(_pairs(done.stdout))


def _pairs(listing: bytes) -> Iterator[tuple[str, str]]:
    for entry in listing.split(b"\0"):
        key, _, value = os.fsdecode(entry).partition("\n")
        if key:
            yield key, value


def _plain(settings: Mapping[str, str]) -> bytes:
    """The least that lets git read a repository."""
    is_bare = "true" if settings.get("core.bare") == "true" else "false"
    is_wide = settings.get("extensions.objectformat") == "sha256"
    lines = f"[core]\n\trepositoryformatversion = {int(is_wide)}\n\tbare = {is_bare}\n"
    return (lines + "[extensions]\n\tobjectFormat = sha256\n" * is_wide).encode()
