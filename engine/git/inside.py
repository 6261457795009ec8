"""Git on a worker's files: run inside the worker's sandbox, in a git directory that is ours.

The agent's own git directory is never git's here. Its refs are read as plain small files and its
objects are borrowed, so no configuration, attribute file or hook of the agent's is in force.
"""

import os
import re
import shlex
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anyio import to_thread

from engine.errors import GitFailed
from engine.git import hardening
from engine.git.runner import Repo
from engine.git.shell import Shell
from engine.git.staging import copy_index

Wrap = Callable[[Sequence[str]], Sequence[str]]
"""Turns an argv into the one that runs it inside the worker's sandbox (`bwrap … argv`)."""

_SANE_REF = re.compile(r"refs(/[A-Za-z0-9_+=%#][A-Za-z0-9._+=%#@-]*)+")
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PSEUDO = ("ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
_REBASING = ("rebase-merge/orig-head", "rebase-apply/orig-head")
_SMALL = 4096
_MOST_REFS = 5000
_MOST_LOGGED = 500
_TIMEOUT_S = 900.0


def outside(argv: Sequence[str]) -> Sequence[str]:
    """No sandbox: the argv as it is, for the rungs that have none."""
    return argv


@dataclass(frozen=True, kw_only=True)
class AgentRefs:
    """What an agent's git directory says, as far as it can be read.

    Attributes:
        head: The commit that HEAD names; None when it names none.
        found_on: The branch of HEAD in full, `detached`, or `lost` when there is no HEAD.
        refs: Every ref by its full name; a merge or rebase under way counts as `refs/pseudo/…`.
        logged: Commits that HEAD or a branch once stood on, newest first.
    """

    head: str | None
    found_on: str
    refs: Mapping[str, str] = field(default_factory=dict)
    logged: tuple[str, ...] = ()


def read_refs(git_dir: Path) -> AgentRefs:
    """Read a git directory that nobody vouches for, without git and without following links."""
    if not git_dir.is_dir() or git_dir.is_symlink():
        return AgentRefs(head=None, found_on="lost")
    refs = {**_packed(_read_small(git_dir / "packed-refs", 64 << 20)), **_loose(git_dir)}
    for name in (*_PSEUDO, *_REBASING):
        content = _read_small(git_dir / name, _SMALL).strip()
        if _OID.fullmatch(content):
            refs["refs/pseudo/" + name] = content.decode()
    said = _read_small(git_dir / "HEAD", _SMALL).strip()
    logged = _logged(git_dir / "logs")
    if _OID.fullmatch(said):
        return AgentRefs(head=said.decode(), found_on="detached", refs=refs, logged=logged)
    if not said.startswith(b"ref: "):
        return AgentRefs(head=None, found_on="lost", refs=refs, logged=logged)
    branch = said[5:].strip().decode(errors="surrogateescape")
    return AgentRefs(head=refs.get(branch), found_on=branch, refs=refs, logged=logged)


def _read_small(path: Path, most: int) -> bytes:
    """A regular file's first bytes; nothing when it is anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""


def _loose(git_dir: Path) -> dict[str, str]:
    refs: dict[str, str] = {}
    for folder, names, files in os.walk(git_dir / "refs"):
        names[:] = [name for name in names if not Path(folder, name).is_symlink()]
        for name in files:
            path = Path(folder, name)
            content = _read_small(path, _SMALL).strip()
            if _OID.fullmatch(content) and len(refs) < _MOST_REFS:
                refs[str(path.relative_to(git_dir))] = content.decode()
    return refs


def _packed(content: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in content.split(b"\n"):
        oid, _, name = line.partition(b" ")
        if _OID.fullmatch(oid) and name:
            found[name.decode(errors="surrogateescape")] = oid.decode()
    return found


def _logged(logs: Path) -> tuple[str, ...]:
    seen: dict[str, None] = {}
    files = [logs / "HEAD", *sorted(p for p in logs.glob("refs/**/*") if p.is_file())]
    for file in files:
        for line in reversed(_read_small(file, 8 << 20).split(b"\n")):
            words = line.split(b" ", 2)
            if len(words) == 3 and _OID.fullmatch(words[1]):  # noqa: PLR2004 (old, new, the rest)
                seen.setdefault(words[1].decode())
    return tuple(seen)[:_MOST_LOGGED]


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a collection takes place.

    Attributes:
        worktree: The worker's files.
        agent_git: The agent's own git directory; only its objects and refs are used.
        folder: Ours, out of the agent's reach, to be bound writable in the sandbox.
        index: What is known of unchanged files, from before the agent began.
        start: The excludes and attributes of that time, in its folder `info`.
    """

    worktree: str
    agent_git: str
    folder: Path
    index: Path | None = None
    start: Path | None = None


class InsideGit:
    """Git for one site: `await git("ls-files", …)` runs inside the sandbox."""

    def __init__(self, repo: Repo, site: Site, wrap: Wrap) -> None:
        self._repo, self.site, self._wrap = repo, site, wrap
        self._shell: Shell

    @classmethod
    @asynccontextmanager
    async def opened(cls, repo: Repo, site: Site, wrap: Wrap) -> AsyncIterator["InsideGit"]:
        """A fresh git directory for a site; one from an earlier try is thrown away.

        The sandbox is entered once, and left at the end of the block.
        """
        await to_thread.run_sync(_lay_out, repo, site)
        git = cls(repo, site, wrap)
        env = {"PATH": repo.program_path}
        async with Shell.opened(git._inside("sh"), env=env, folder=site.folder) as git._shell:
            yield git

    @property
    def git_dir(self) -> str:
        """Our git directory."""
        return str(self.site.folder)

    def _inside(self, *words: str) -> list[str]:
        """What runs these words in the sandbox, with git's variables and no others."""
        variables = hardening.base_environment(
            self._repo.program_path,
            {
                "GIT_DIR": self.git_dir,
                "GIT_WORK_TREE": self.site.worktree,
                "GIT_CEILING_DIRECTORIES": str(Path(self.site.worktree).parent),
            },
        )
        given = [f"{key}={value}" for key, value in variables.items()]
        return list(self._wrap(["env", "-i", *given, *words]))

    def _argv(self, *words: str) -> list[str]:
        settings = (*self._repo.settings.flags, *self._repo.settings.lfs_flags)
        own = ["-c", f"safe.directory={self.git_dir}", "-c", f"safe.directory={self.site.worktree}"]
        return [self._repo.program, *hardening.FLAGS, *settings, *own, *words]

    @property
    def upload_pack(self) -> str:
        """The sending side of a fetch, as the one string that git's option takes."""
        argv = self._inside(*self._argv("upload-pack"))
        return shlex.join(word for word in argv if not word.startswith("GIT_DIR="))

    async def __call__(self, *words: str, stdin: bytes = b"") -> bytes:
        """What a git command writes.

        Raises:
            GitFailed: It ended with anything but 0.
        """
        done = await self._shell.run(self._argv(*words), stdin=stdin, timeout_s=_TIMEOUT_S)
        if done.exit_code:
            said = done.stderr.decode(errors="replace")
            raise GitFailed(["git", *words], done.exit_code, said)
        return done.stdout

    async def kinds(self, oids: Sequence[str]) -> dict[str, str]:
        """Which of the objects are there, with their kinds."""
        if not oids:
            return {}
        stdin = "".join(f"{oid}\n" for oid in oids).encode()
        listing = await self("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=stdin)
        pairs = [line.split(" ") for line in listing.decode().split("\n") if line]
        return {oid: kind for oid, kind in pairs if kind != "missing"}


def _lay_out(repo: Repo, site: Site) -> None:
    folder, common = site.folder, Path(repo.common_dir)
    if folder.exists():
        shutil.rmtree(folder)
    for name in ("objects/info", "objects/pack", "refs", "info"):
        (folder / name).mkdir(mode=0o700, parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
    lines = ["[core]\n\trepositoryformatversion = 1\n\tbare = false\n"]
    lines += ["[extensions]\n\tobjectFormat = sha256\n"] * (repo.object_format == "sha256")
    if repo.settings.promisor is not None:
        lines += ['[extensions]\n\tpartialClone = elsewhere\n[remote "elsewhere"]\n\turl = .\n']
    (folder / "config").write_text("".join(lines), encoding="utf-8")
    borrowed = [f"{common}/objects", f"{site.agent_git}/objects"]
    (folder / "objects/info/alternates").write_bytes(
        b"".join(os.fsencode(path) + b"\n" for path in borrowed)
    )
    if (common / "shallow").is_file():
        shutil.copyfile(common / "shallow", folder / "shallow")
    if site.index is not None and site.index.is_file():
        copy_index(site.index, folder / "index")
    for file in sorted((site.start / "info").glob("*")) if site.start else ():
        shutil.copyfile(file, folder / "info" / file.name)


def sane_name(ref: str) -> bool:
    """The name can be kept as it is; any other is replaced by one that cannot surprise."""
    parts = ref.split("/")
    is_whole = bool(_SANE_REF.fullmatch(ref)) and ".." not in ref and "@{" not in ref
    return is_whole and not any(part.endswith((".lock", ".")) for part in parts)
