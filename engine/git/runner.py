"""The one hardened runner: every git that the engine starts outside a sandbox goes through `Repo`.

Knows how to call git so that neither the repository's configuration nor the environment can make it
do anything else. It does not know what the calls are for.
"""

import os
import re
import shutil
import stat
import time
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self

import anyio
from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.plumbing import hardening
from engine.git.plumbing.cache import AnswerCache
from engine.git.plumbing.lock import RepositoryLock
from engine.git.plumbing.process import Completed, execute
from engine.git.plumbing.records import Records
from engine.git.plumbing.standing import Command, StandingGits, StandingKind
from engine.git.settings import (
    Entries,
    UserSettings,
    conversion_in,
    includes,
    own_entries,
    parse_settings,
    users_conversion,
)
from engine.values import dataclass

OLDEST = (2, 38)
"""`merge-tree --write-tree` came with it."""

TIMEOUT_S = 120.0
_SECOND_NS = 1_000_000_000
_TICK_NS = 20_000_000
"""The longest between two ticks of a kernel's clock of files is half of it."""
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")
_FACTS = (
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--is-bare-repository",
    "--is-shallow-repository",
    "--show-object-format",
    "--show-toplevel",
)
_ANSWERS = 6
_SEEN_BY_PROGRAMS = {"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}
_SEEN_BY_PROGRAMS |= {"GIT_CONFIG_NOSYSTEM", "PATH"}


_PATIENCE_S = (0.02, 0.05, 0.1, 0.2, 0.4)
_PASSING = re.compile(
    r"Unable to create '.*\.lock': File exists|could not lock config file|"
    r"failed to read .*commondir|worktrees/.*: No such file or directory"
)


def is_passing(failed: GitFailed) -> bool:
    """It met another git that was busy in the same repository."""
    return bool(_PASSING.search(failed.stderr))


@dataclass(frozen=True, kw_only=True)
class Where:
    """The repository, working tree and index of a call; None keeps the repository's own.

    New objects go to `objects`; those in the folder `lent` are read besides.
    """

    git_dir: str | None = None
    worktree: str | None = None
    index: str | None = None
    objects: str | None = None
    lent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """Options of one call.

    Attributes:
        ok: The exit codes that are answers; any other raises `GitFailed`.
        writes: It may leave a lock behind when killed, so it is recorded while it runs.
        is_repeatable: A failure leaves nothing behind, so it can be tried again at once.
        flags: More words before the command, such as `-c key=value`.
        max_bytes: End it when it has written that much; the answer says that it was cut.
    """

    stdin: bytes = b""
    ok: tuple[int, ...] = (0,)
    writes: bool = False
    is_repeatable: bool = True
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    timeout_s: float = TIMEOUT_S
    max_bytes: int | None = None


READ = Call()
WRITE = Call(writes=True)
HERE = Where()


class Repo:
    """A repository of the user's, opened once; many calls may run at the same time.

    Attributes:
        git_dir: The git directory of the place that was opened: a linked worktree has its own.
        common_dir: The one shared by all worktrees; our own files lie in its folder `plait`.
        worktree: The working tree that was opened; None for a bare repository.
        object_format: `sha1` or `sha256`.
        settings: The user's git configuration, as data. What it says of the writing of files
            follows the repository's own configuration, for ours must write as the user's git does.
        cache: What git has said already and cannot say otherwise.
        standing: Gits that stay, where somebody serves them.
    """

    def __init__(
        self,
        *,
        git_dir: str,
        common_dir: str,
        worktree: str | None,
        facts: Mapping[str, str],
        settings: UserSettings,
        version: tuple[int, int],
    ) -> None:
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.worktree = worktree
        self.is_shallow = facts["shallow"] == "true"
        self.has_grafts = False
        self._unbuffered: str | None = None
        self.object_format = facts["format"]
        self.settings = settings
        self.version = version
        self.program_path = facts["PATH"]
        self.program = facts["git"]
        self.plait_dir = Path(common_dir) / "plait"
        self.lock = RepositoryLock(self.plait_dir / "git.lock")
        self.records = Records(self.plait_dir / "git")
        self.cache = AnswerCache()
        self.standing = _standing_gits(self)
        self._own: tuple[object, Entries] | None = None
        self._conversion = settings.conversion

    @classmethod
    async def open(cls, place: str | Path, environment: Mapping[str, str]) -> Self:
        """The repository that holds `place`; `environment` is the user's own (its HOME, its PATH).

        Raises:
            WorkspaceError: There is none, it cannot be trusted, or git is too old.
        """
        start = await to_thread.run_sync(lambda: str(Path(place).resolve()))
        path = environment.get("PATH", os.defpath)
        program = await to_thread.run_sync(lambda: shutil.which("git", path=path))
        if program is None:
            raise WorkspaceError("git is not installed", hint="Install git 2.38 or newer.")
        version = await _version(program, environment)
        answer = await execute(
            [program, "rev-parse", *_FACTS],
            env=_users(environment, extra={"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}),
            cwd=start,
            timeout_s=TIMEOUT_S,
        )
        found = os.fsdecode(answer.stdout).removesuffix("\n")
        if not found:
            said = answer.stderr.decode(errors="replace").strip()
            raise WorkspaceError(f"{start} is not a usable git repository: {said}")
        # Without a working tree git answers all but the last question, and then fails.
        lines = found.split("\n") + [""] * bool(answer.exit_code)
        if len(lines) != _ANSWERS:
            raise WorkspaceError(
                f"the path {start!r} contains a line break, and git keeps paths line by line",
                hint="Rename that folder, or move the repository.",
            )
        git_dir, common_dir, is_bare, shallow, object_format, top = lines
        if is_bare != "true" and not top:
            raise WorkspaceError(
                f"{start} is inside a git directory", hint="Go to the working tree."
            )
        # Before the listing: what changes meanwhile is then looked at again.
        signature = await to_thread.run_sync(_config_signature, common_dir, git_dir)
        listing = await execute(
            [program, "config", "--list", "--show-scope", "-z"],
            env=_users(environment, extra={}),
            cwd=start,
            timeout_s=TIMEOUT_S,
        )
        facts = {"shallow": shallow, "format": object_format, "git": program, "PATH": path}
        repo = cls(
            git_dir=git_dir,
            common_dir=common_dir,
            worktree=None if is_bare == "true" else top,
            facts=facts,
            settings=parse_settings(listing.stdout, environment),
            version=version,
        )
        repo._conversion = users_conversion(listing.stdout)
        entries = own_entries(listing.stdout)
        # Of a worktree's own configuration, this listing has that of the place alone.
        is_whole = not includes(entries) and "extensions.worktreeconfig" not in dict(entries)
        repo._own = (signature, entries) if is_whole else None
        await to_thread.run_sync(repo._prepare_folders)
        return repo

    def inner(self, git_dir: str) -> "Repo":
        """The repository of a submodule, by its git directory: same user, same lock and records."""
        other = copy(self)
        other.git_dir = other.common_dir = git_dir
        other.worktree = None
        other.cache = AnswerCache()
        other.standing = _standing_gits(other)
        other.forget_configuration()
        return other

    def forget_configuration(self) -> None:
        """Look at the repository's configuration again before the next call."""
        self._own = None

    def work_for(self, settings: UserSettings) -> None:
        """Work with the settings of a user elsewhere from now on."""
        self.settings, self._conversion = settings, settings.conversion
        self.forget_configuration()

    async def configuration(self) -> Entries:
        """Return the repository's own configuration, in order; the user's and ours are not in it.

        Listing it costs a process, so the list is kept while the files it came from do not change;
        a configuration that includes others, or has just changed, is listed every time.
        """
        signature = await to_thread.run_sync(_config_signature, self.common_dir, self.git_dir)
        if self._own is None or self._own[0] != signature:
            flags = (*hardening.FLAGS, "-c", f"safe.directory={self.common_dir}")
            listed = await execute(
                [self.program, *flags, "config", "--list", "--show-scope", "-z"],
                env=self._environment(HERE, {}),
                cwd=self.void,
                timeout_s=TIMEOUT_S,
            )
            entries = own_entries(listed.stdout)
            # A worktree's own is not in this listing, so what was read at its place has to do.
            if not (listed.exit_code or "extensions.worktreeconfig" in dict(entries)):
                now = conversion_in({**dict(self._conversion), **dict(entries)})
                self.settings = replace(self.settings, conversion=now)
            is_lasting = not (listed.exit_code or includes(entries))
            self._own = (signature if is_lasting else object(), entries)
        return self._own[1]

    def _prepare_folders(self) -> None:
        self.plait_dir.mkdir(mode=0o700, exist_ok=True)
        self.records.folder.mkdir(mode=0o700, exist_ok=True)
        Path(self.void).mkdir(mode=0o700, exist_ok=True)
        self._unbuffered = shutil.which("stdbuf", path=self.program_path)
        self.has_grafts = Path(self.common_dir, "info", "grafts").exists()

    @cached_property
    def void(self) -> str:
        """An empty folder: the working tree of calls that must see none."""
        return str(self.plait_dir / "git" / "void")

    @property
    def zero(self) -> str:
        """The id that stands for `no object`."""
        return "0" * (64 if self.object_format == "sha256" else 40)

    @property
    def empty_tree(self) -> str:
        """The id of the tree with nothing in it."""
        if self.object_format == "sha256":
            return "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
        return "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

    async def run(self, *words: str, call: Call = READ, where: Where = HERE) -> Completed:
        """Git's answer to a command, with nobody's programs running on the side.

        A command that meets a lock of the user's own git is tried again a few times: such a lock
        is held for a moment only, or it is stale and the failure tells of it.

        Raises:
            GitFailed: It ended with a code that is no answer.
            TimeoutError: It took too long; its whole process group is gone.
        """
        for wait_s in (*_PATIENCE_S, None):
            done = await self._run_once(words, call, where)
            if done.exit_code in call.ok or done.is_cut:
                return done
            failed = GitFailed(
                ["git", *words], done.exit_code, done.stderr.decode(errors="replace")
            )
            if wait_s is None or not (call.is_repeatable and is_passing(failed)):
                raise failed
            await anyio.sleep(wait_s)
        raise AssertionError("the last try has neither an answer nor an error")

    async def _run_once(self, words: tuple[str, ...], call: Call, where: Where) -> Completed:
        argv, env = await self._hardened(words, call, where)
        mark = await self.records.begin(words) if call.writes else None
        env[self.records.VARIABLE] = mark or self.records.READS
        was_killed = True
        try:
            done = await execute(
                argv,
                env=env,
                cwd=where.worktree or self.void,
                stdin=call.stdin,
                timeout_s=call.timeout_s,
                max_bytes=call.max_bytes,
            )
            was_killed = done.exit_code < 0
        finally:
            if mark is not None and was_killed:
                await self.records.end_killed(mark, self.common_dir)
            elif mark is not None:
                await self.records.end(mark)
        return done

    async def _hardened(
        self, words: tuple[str, ...], call: Call, where: Where
    ) -> tuple[list[str], dict[str, str]]:
        flags, variables = await self._overrides()
        env = self._environment(where, {**variables, **(call.env or {})})
        return [self.program, *hardening.FLAGS, *flags, *call.flags, *words], env

    async def to_stand(self, kind: StandingKind, where: Where, lent: Path | None) -> Command | None:
        """Return the command of a git that stays; None where it would keep its answers back."""
        place = replace(where, lent=str(lent)) if lent else where
        argv, env = await self._hardened(kind.words, READ, place)
        if self.version < kind.flushes_since:
            if self._unbuffered is None:
                return None
            argv[:0] = [self._unbuffered, "-o0"]
        return Command(argv=tuple(argv), env=env, cwd=where.worktree or self.void)

    async def read(self, *words: str, call: Call = READ, where: Where = HERE) -> bytes:
        """Run a command and return its output."""
        return (await self.run(*words, call=call, where=where)).stdout

    async def line(self, *words: str, call: Call = READ, where: Where = HERE) -> str:
        """The one line that a command writes."""
        return os.fsdecode(await self.read(*words, call=call, where=where)).rstrip("\n")

    def _environment(self, where: Where, extra: Mapping[str, str]) -> dict[str, str]:
        git_dir = where.git_dir or self.common_dir
        worktree = where.worktree or self.void
        env = hardening.base_environment(
            self.program_path,
            {
                "GIT_DIR": git_dir,
                "GIT_WORK_TREE": worktree,
                "GIT_CEILING_DIRECTORIES": str(Path(worktree).parent),
                **extra,
            },
        )
        if where.index is not None:
            env["GIT_INDEX_FILE"] = where.index
        if where.objects is not None:
            env["GIT_OBJECT_DIRECTORY"] = where.objects
        others = [
            one for one in (where.objects and f"{self.common_dir}/objects", where.lent) if one
        ]
        if others:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, others))
        return env

    async def _overrides(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return what the repository's configuration makes necessary beyond the fixed hardening."""
        drivers = hardening.disarm(key for key, _ in await self.configuration())
        safe = ("-c", f"safe.directory={self.common_dir}", "-c", f"safe.directory={self.worktree}")
        return (*safe, *self.settings.flags), hardening.driver_variables(drivers)


def _config_signature(common_dir: str, git_dir: str) -> object:
    """Return what changes when a repository's configuration does.

    It equals nothing where that cannot be said: for a link, whose target changes without it, and
    for a file that was changed so lately that it can change again at the same time of its disk.
    """
    found: list[object] = []
    for folder in {common_dir, git_dir}:
        for file in ("config", "config.worktree"):
            try:
                seen = Path(folder, file).lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(seen.st_mode) or not _is_settled(seen.st_ctime_ns):
                return object()
            found.append((folder, file, seen.st_ino, seen.st_size, seen.st_ctime_ns))
    return tuple(sorted(map(repr, found)))


def _is_settled(at_ns: int) -> bool:
    """Say if what changes now gets another time; some file systems count whole seconds."""
    tick = _TICK_NS if at_ns % _SECOND_NS else 2 * _SECOND_NS
    return abs(time.time_ns() - at_ns) > tick


def _standing_gits(repo: Repo) -> StandingGits[Where]:
    return StandingGits(
        repo.to_stand, records=repo.records, common_dir=repo.common_dir, version=repo.version
    )


def _quoted(path: str) -> str:
    """A path for git's list of folders, whatever is in its name."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _users(environment: Mapping[str, str], *, extra: Mapping[str, str]) -> dict[str, str]:
    kept = {key: environment[key] for key in _SEEN_BY_PROGRAMS if key in environment}
    return {**kept, **extra}


_VERSIONS: dict[object, tuple[int, int]] = {}
"""The versions of the gits that this process has asked; a file that was replaced is another one."""


async def _version(program: str, environment: Mapping[str, str]) -> tuple[int, int]:
    env = _users(environment, extra={})
    seen = await to_thread.run_sync(os.stat, program)
    key = (program, seen.st_ino, seen.st_size, seen.st_ctime_ns, *sorted(env.items()))
    version = _VERSIONS.get(key)
    if version is None:
        said = await execute([program, "version"], env=env, cwd="/", timeout_s=TIMEOUT_S)
        match = _VERSION.match(said.stdout)
        version = _VERSIONS[key] = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST:
        found = ".".join(map(str, version))
        raise WorkspaceError(f"git {found} is too old", hint="Install git 2.38 or newer.")
    return version
