"""Git on a worker's files: run inside the worker's sandbox, in a git directory that is ours.

The agent's own git directory is never git's here. Its refs are read as plain small files and its
objects are borrowed, so no configuration, attribute file or hook of the agent's is in force.
"""

import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from anyio import to_thread

from engine.beneath import (
    Bounds,
    EntryKind,
    Name,
    PathRefused,
    WalkEntry,
    Why,
    list_tree,
    read_file,
)
from engine.errors import GitFailed, OutOfRoom
from engine.git.cone import Cone
from engine.git.conversion import RAW, RESET
from engine.git.plumbing import hardening
from engine.git.plumbing.shell import Shell
from engine.git.runner import Repo
from engine.git.staging import copy_index, present_of
from engine.private import private_folder
from engine.storage import is_out_of_room
from engine.values import dataclass

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Turns an argv into the one that runs it inside the worker's sandbox (`bwrap … argv`)."""

_SANE_REF = re.compile(r"refs(/[A-Za-z0-9_+=%#][A-Za-z0-9._+=%#@-]*)+")
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PSEUDO = ("ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
_REBASING = ("rebase-merge/orig-head", "rebase-apply/orig-head")
_SMALL = 4096
_MOST_PACKED = 64 << 20
_BOUNDS = Bounds(entries=100_000, depth=64)
_MOST_LOGGED = 500
_MOST_INDEX = 256 << 20
_EXCLUDES = "excludes"
_TIMEOUT_S = 900.0
_KILLED = 128


def outside(argv: Sequence[str]) -> Sequence[str]:
    """No sandbox: the argv as it is, for the rungs that have none."""
    return argv


@dataclass(frozen=True, kw_only=True)
class AgentRefs:
    """The refs of an agent's git directory, as far as it can be read.

    Attributes:
        head: The commit that HEAD names; None when it names none.
        found_on: The branch of HEAD in full, `detached`, or `lost` when there is no HEAD.
        refs: Every ref by its full name; a merge or rebase under way counts as `refs/pseudo/…`.
        logged: Commits that HEAD or a branch once stood on, newest first.
        notes: What could not be read, as whole sentences.
    """

    head: str | None
    found_on: str
    refs: Mapping[str, str] = field(default_factory=dict)
    logged: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_refs(git_dir: Path) -> AgentRefs:
    """Read a git directory that nobody vouches for, without git and without following links."""
    if not git_dir.is_dir() or git_dir.is_symlink():
        return AgentRefs(head=None, found_on="lost")
    loose, notes = _loose(git_dir)
    refs = {**_packed(_read_small(git_dir, "packed-refs", _MOST_PACKED)), **loose}
    for name in (*_PSEUDO, *_REBASING):
        content = _read_small(git_dir, name, _SMALL).strip()
        if _OID.fullmatch(content):
            refs["refs/pseudo/" + name] = content.decode()
    said = _read_small(git_dir, "HEAD", _SMALL).strip()
    logged = _logged(git_dir)
    if _OID.fullmatch(said):
        found, head = "detached", said.decode()
    elif said.startswith(b"ref: "):
        found = said[5:].strip().decode(errors="surrogateescape")
        head = refs.get(found, "")
    else:
        found, head = "lost", ""
    return AgentRefs(head=head or None, found_on=found, refs=refs, logged=logged, notes=notes)


def _read_small(git_dir: Path, name: Name, most: int) -> bytes:
    """Return a regular file's first bytes; nothing when it is anything else."""
    data = read_file(git_dir, name, most=most)
    return data if isinstance(data, bytes) else b""


def _loose(git_dir: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    refs: dict[str, str] = {}
    for one in list_tree(git_dir, bounds=_BOUNDS, is_entered=_is_below_refs):
        if isinstance(one, PathRefused):
            if one.why is Why.TOO_MANY:
                return refs, (
                    f"plait keeps only {_BOUNDS.entries} refs of the agent, not the rest.",
                )
        elif one.kind is EntryKind.FILE and one.path.startswith(b"refs/"):
            content = _read_small(git_dir, one.path, _SMALL).strip()
            if _OID.fullmatch(content):
                refs[os.fsdecode(one.path)] = content.decode()
    return refs, ()


def _is_below_refs(path: bytes) -> bool:
    return path == b"refs" or path.startswith(b"refs/")


def _packed(content: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in content.split(b"\n"):
        oid, _, name = line.partition(b" ")
        if _OID.fullmatch(oid) and name:
            found[name.decode(errors="surrogateescape")] = oid.decode()
    return found


def _logged(git_dir: Path) -> tuple[str, ...]:
    def is_log(path: bytes) -> bool:
        return path in {b"logs", b"logs/refs"} or path.startswith(b"logs/refs/")

    seen: dict[str, None] = {}
    entries = list_tree(git_dir, bounds=_BOUNDS, is_entered=is_log)
    files = [
        one.path for one in entries if isinstance(one, WalkEntry) and one.kind is EntryKind.FILE
    ]
    for file in [b"logs/HEAD", *sorted(name for name in files if name.startswith(b"logs/refs/"))]:
        for line in reversed(_read_small(git_dir, file, 8 << 20).split(b"\n")):
            words = line.split(b" ", 2)
            if len(words) == 3 and _OID.fullmatch(words[1]):  # noqa: PLR2004 (old, new, the rest)
                seen.setdefault(words[1].decode())
        if len(seen) > _MOST_LOGGED:
            break
    return tuple(seen)[:_MOST_LOGGED]


def _copy_index(git_dir: Path, target: Path) -> bool:
    data = read_file(git_dir, "index", most=_MOST_INDEX)
    if not isinstance(data, bytes) or not data:
        return False
    target.write_bytes(data)
    return True


@dataclass(frozen=True, kw_only=True)
class Source:
    """The places that one reading of a worker's files uses.

    Attributes:
        worktree: The worker's files.
        agent_git: The agent's own git directory; only its objects and refs are used.
        folder: Ours, out of the agent's reach, to be bound writable in the sandbox.
        index: What is known of unchanged files, from before the agent began.
        start: The excludes and attributes of that time, in its folder `info`.
        attributes: What the attributes of the base say; None where they are not asked for.
        cone: The part of the repository that the tree holds; None for all of it.
    """

    worktree: str
    agent_git: str
    folder: Path
    index: Path | None = None
    start: Path | None = None
    attributes: bytes | None = None
    cone: Cone | None = None


async def require_room(words: Sequence[str], said: str, folder: Path) -> None:
    """Raise where a git that failed could not write.

    Raises:
        OutOfRoom: It could not.
    """
    if await to_thread.run_sync(is_out_of_room, said, (folder,)):
        why = said.strip() or "git gave no reason, but the disk is nearly full"
        raise OutOfRoom(f"`git {' '.join(words)}` could not write: {why}")


class TreeOf(NamedTuple):
    """A commit and its tree."""

    commit: str
    tree: str


class InsideGit:
    """Git for one reading: `await git("ls-files", …)` runs inside the sandbox."""

    def __init__(self, repo: Repo, source: Source, wrap: Wrap) -> None:
        self._repo, self.source, self._wrap = repo, source, wrap
        self._shell: Shell
        self._is_overruled = False

    @classmethod
    @asynccontextmanager
    async def opened(cls, repo: Repo, source: Source, wrap: Wrap) -> AsyncIterator["InsideGit"]:
        """A fresh git directory for a reading; one from an earlier try is thrown away.

        The sandbox is entered once, and left at the end of the block.
        """
        await to_thread.run_sync(_lay_out, repo, source)
        git = cls(repo, source, wrap)
        env = {"PATH": repo.program_path}
        async with Shell.opened(git._inside("sh"), env=env, folder=source.folder) as git._shell:
            yield git

    @property
    def git_dir(self) -> str:
        """Our git directory."""
        return str(self.source.folder)

    def _inside(self, *words: str) -> list[str]:
        """Return the words that run these in the sandbox, with git's variables and no others."""
        variables = hardening.base_environment(
            self._repo.program_path,
            {
                "GIT_DIR": self.git_dir,
                "GIT_WORK_TREE": self.source.worktree,
                "GIT_CEILING_DIRECTORIES": str(Path(self.source.worktree).parent),
            },
        )
        given = [f"{key}={value}" for key, value in variables.items()]
        return list(self._wrap(["env", "-i", *given, *words]))

    def _argv(self, *words: str) -> list[str]:
        settings = (*self._repo.settings.flags, *self._repo.settings.lfs_flags)
        own = [
            "-c",
            f"safe.directory={self.git_dir}",
            "-c",
            f"safe.directory={self.source.worktree}",
        ]
        if self._repo.settings.excludes is not None:  # the user's own lies outside of the sandbox
            own += ["-c", f"core.excludesFile={self.source.folder / _EXCLUDES}"]
        return [self._repo.program, *hardening.FLAGS, *settings, *own, *words]

    @property
    def upload_pack(self) -> str:
        """The sending side of a fetch, as the one string that git's option takes."""
        argv = self._inside(*self._argv("upload-pack"))
        return shlex.join(word for word in argv if not word.startswith("GIT_DIR="))

    async def __call__(self, *words: str, stdin: bytes = b"") -> bytes:
        """Return what a git command writes.

        Raises:
            GitFailed: It ended with anything but 0.
            OutOfRoom: It did so because it could not write; no other way of asking helps.
        """
        done = await self._shell.run(self._argv(*words), stdin=stdin, timeout_s=_TIMEOUT_S)
        if done.exit_code > _KILLED:  # by a signal: of its lock nobody else takes care
            lock = Path(self.git_dir, "index.lock")
            await to_thread.run_sync(partial(lock.unlink, missing_ok=True))
        if done.exit_code:
            said = done.stderr.decode(errors="replace")
            await require_room(words, said, self.source.folder)
            raise GitFailed(["git", *words], done.exit_code, said)
        return done.stdout

    async def in_agents_index(self) -> bytes:
        """List the names in the agent's own index; none where it cannot be read."""
        return await self._names_in(Path(self.source.agent_git))

    async def not_deleted(self) -> list[bytes]:
        """List what the agent's index takes for deleted, outside of what its tree ever held."""
        cone = self.source.cone
        listing = await self._names_in(Path(self.source.agent_git), "-t") if cone else b""
        if cone is None or not listing:
            return []
        own = (await self("ls-files", "-z")).split(b"\0")
        marks = {record[2:]: record[:1] for record in listing.split(b"\0") if record}
        odd = (name for name in own if name and marks.get(name) != b"S" and not cone.holds(name))
        there = partial(present_of, self.source.worktree, names := list(odd))
        present = frozenset(await to_thread.run_sync(there))
        return [name for name in names if name not in present]

    async def _names_in(self, folder: Path, *options: str) -> bytes:
        """List the names in the index of a folder; none where it cannot be read."""
        index = self.source.folder / "agent-index"
        if not await to_thread.run_sync(_copy_index, folder, index):
            return b""
        words = ["env", f"GIT_INDEX_FILE={index}", *self._argv("ls-files", "-z", *options)]
        done = await self._shell.run(words, timeout_s=_TIMEOUT_S)
        return b"" if done.exit_code else done.stdout

    async def left_out(self, gone: Sequence[bytes]) -> frozenset[bytes]:
        """Return those of the names that are not there which a sparse checkout leaves out.

        That is what lies outside of our own, and what an index marks so: the one from before the
        agent began, where the user has a sparse checkout, or the agent's, which may have made one.
        """
        cone, start = self.source.cone, self.source.start
        found = {name for name in gone if cone is not None and not cone.holds(name)}
        folders = [Path(self.source.agent_git), *([start.parent] if start else [])]
        if len(found) < len(gone):
            for folder in folders:
                names = (await self._names_in(folder, "-t")).split(b"\0")
                found.update(name[2:] for name in names if name[:1] == b"S")
        return frozenset(found)

    async def follow_tree(self) -> None:
        """Let the attributes that lie in the tree be in force."""
        if self._is_overruled:
            await to_thread.run_sync(self._follow, b"")

    async def follow_base(self) -> bool:
        """Let the attributes of the base alone be in force; tell if there is such a base."""
        if self.source.attributes is None:
            return False
        await to_thread.run_sync(self._follow, RESET + self.source.attributes)
        return True

    async def follow_none(self) -> None:
        """Let files be kept byte for byte."""
        await to_thread.run_sync(self._follow, RAW)

    def _follow(self, rules: bytes) -> None:
        self._is_overruled = bool(rules)
        info = self.source.folder / "info"
        own = self.source.start / "info/attributes" if self.source.start else None
        if own is not None and own.is_file() and rules is not RAW:
            rules += own.read_bytes()
        (info / "attributes").write_bytes(rules)

    async def kinds(self, oids: Sequence[str]) -> dict[str, str]:
        """Return the objects that are there, with their kinds."""
        if not oids:
            return {}
        return {oid: kind for oid, kind in await self._checked(oids) if kind != "missing"}

    async def head_and_kinds(
        self, head: str | None, oids: Sequence[str]
    ) -> tuple["TreeOf | None", dict[str, str]]:
        """Return a commit with its tree, None where it is no commit, and what `kinds` returns."""
        if head is None:
            return None, await self.kinds(oids)
        (_, kind), (tree, of), *rest = await self._checked([head, f"{head}^{{tree}}", *oids])
        is_commit = (kind, of) == ("commit", "tree")
        kinds = {oid: kind for oid, kind in rest if kind != "missing"}
        return (TreeOf(head, tree) if is_commit else None), kinds

    async def _checked(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return the object of each name with its kind; `missing` where there is none."""
        stdin = "".join(f"{name}\n" for name in names).encode()
        listing = await self("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=stdin)
        pairs = [line.split(" ") for line in listing.decode().split("\n") if line]
        return [(oid, kind) for oid, kind in pairs]


def _lay_out(repo: Repo, source: Source) -> None:
    folder, common = source.folder, Path(repo.common_dir)
    if folder.exists():
        shutil.rmtree(folder)
    for name in ("objects/info", "objects/pack", "refs", "info"):
        private_folder(folder / name)
    (folder / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
    lines = ["[core]\n\trepositoryformatversion = 1\n\tbare = false\n"]
    lines += ["[extensions]\n\tobjectFormat = sha256\n"] * (repo.object_format == "sha256")
    if repo.settings.promisor is not None:
        lines += ['[extensions]\n\tpartialClone = elsewhere\n[remote "elsewhere"]\n\turl = .\n']
    (folder / "config").write_text("".join(lines), encoding="utf-8")
    borrowed = [f"{common}/objects", f"{source.agent_git}/objects"]
    (folder / "objects/info/alternates").write_bytes(
        b"".join(os.fsencode(path) + b"\n" for path in borrowed)
    )
    if (common / "shallow").is_file():
        shutil.copyfile(common / "shallow", folder / "shallow")
    if repo.settings.excludes is not None:
        with suppress(OSError):  # git passes over one that is not there or cannot be read
            shutil.copyfile(repo.settings.excludes, folder / _EXCLUDES)
    if source.index is not None and source.index.is_file():
        copy_index(source.index, folder / "index")
    for file in sorted((source.start / "info").glob("*")) if source.start else ():
        shutil.copyfile(file, folder / "info" / file.name)


def sane_name(ref: str) -> bool:
    """The name can be kept as it is; any other is replaced by one that cannot surprise."""
    parts = ref.split("/")
    is_whole = bool(_SANE_REF.fullmatch(ref)) and ".." not in ref and "@{" not in ref
    return is_whole and not any(part.endswith((".lock", ".")) for part in parts)
