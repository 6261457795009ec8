"""The private clone of one attempt: a git directory that an agent may ruin without harm.

It borrows the user's objects, carries a snapshot of the user's refs, and has a configuration
written here: nothing that the agent does in it reaches the shared `.git`. Only an import looks at
it afterwards.
"""

import os
import re
import shutil
from collections.abc import Hashable, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from anyio import to_thread

from engine.git.cone import FILE, SETTINGS, Cone
from engine.git.objects import refs_below
from engine.git.plumbing.cache import stamp
from engine.git.refs import has_ref_files
from engine.git.runner import Repo
from engine.git.settings import Entries, UserSettings
from engine.values import dataclass

_HIDDEN = ("refs/plait/", "refs/stash", "refs/worktree/", "refs/bisect/", "refs/rewritten/")
COPIED = ("info/attributes", FILE)
_PASSED_ON = re.compile(
    r"core\.(filemode|symlinks|ignorecase|precomposeunicode|sparsecheckout(cone)?|checkstat|"
    r"trustctime|bigfilethreshold|longpaths)|index\.sparse|extensions\.(objectformat|partialclone)|"
    r"remote\..*\.(url|fetch|promisor|partialclonefilter)|submodule\..*\.(url|active)|merge\..*|"
    r"branch\..*\.description|lfs\..*|i18n\..*|user\.(name|email)",
    re.IGNORECASE,
)
_LITTER = b".aider.tags.cache.v*/\n"
"""Patterns of files that agents leave and no rule of the repository keeps out of commits: with them
an agent whose model refused everything would seem to have changed something."""
_SPARSE = re.compile(r"core\.sparsecheckout(cone)?|index\.sparse", re.IGNORECASE)
_PROGRAMS = re.compile(r"merge\..*\.driver|merge\.tool|merge\.guitool", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class PrivateClone:
    """The content of a private clone.

    Attributes:
        path: Where it goes; the folder must not exist.
        branch: The branch its HEAD stands on, in full.
        base: The commit of that branch.
        hide: A prefix of refs that no agent may see beside our own.
        cone: The part of the repository to check out, instead of the user's own part of it.
    """

    path: Path
    branch: str
    base: str
    hide: str
    cone: Cone | None = None


async def make_private(repo: Repo, clone: PrivateClone) -> tuple[str, ...]:
    """Make a private clone; the object folders it borrows from, to be bound where they lie."""
    refs = await seen_refs(repo, clone.hide)
    config = await passed_on(repo)
    if clone.cone is not None:
        config = [row for row in config if not _SPARSE.fullmatch(row[0])] + list(SETTINGS)
    return await to_thread.run_sync(_lay_out, repo, clone, refs, config)


async def seen_refs(repo: Repo, hide: str) -> dict[str, str]:
    """Return the refs that an agent may see: the user's, without what begins with `hide`."""
    return {
        ref: oid
        for ref, oid in (await refs_below(repo)).items()
        if not ref.startswith((*_HIDDEN, f"refs/heads/{hide}/"))
    }


async def passed_on(repo: Repo) -> list[tuple[str, str]]:
    """The user's configuration that an agent's git needs, with nothing in it that could run."""
    entries = await repo.configuration()
    kept = [
        (key, _without_password(value) if key.endswith(".url") else value)
        for key, value in entries
        if _PASSED_ON.fullmatch(key) and not _PROGRAMS.fullmatch(key)
    ]
    own = repo.settings
    kept += [*own.conversion, *own.lfs]
    kept += [("user.name", own.name or "plait"), ("user.email", own.email or "plait@localhost")]
    hooks = [value for key, value in entries if key.lower() == "core.hookspath"]
    return kept + _hooks_path(hooks[-1] if hooks else "")


async def sight(repo: Repo, hide: str) -> tuple[Hashable, Hashable]:
    """Return what a private clone and its tree are made by, as versions of files: rules, and refs.

    Refs that are kept in no files are never the same.
    """
    entries = await repo.configuration()
    return await to_thread.run_sync(_sight, repo, entries, hide)


def _sight(repo: Repo, entries: Entries, hide: str) -> tuple[Hashable, Hashable]:
    rules = _rules(Path(repo.common_dir), repo.settings.excludes)
    refs = _refs_seen(repo.common_dir, hide) if has_ref_files(entries) else object()
    return (tuple(entries), rules), refs


def _rules(common: Path, excludes: str | None) -> Hashable:
    own = (*COPIED, "info/exclude", "info/grafts", "shallow", "objects/info/alternates")
    files = [common / name for name in own] + ([Path(excludes)] if excludes else [])
    hooks = common / "hooks"
    files += sorted(hooks.iterdir()) if hooks.is_dir() else []
    return tuple((file.name, stamp(file)) for file in files)


def _refs_seen(common: str, hide: str) -> Hashable:
    """Return the versions of all files of refs that an agent may see, and of their folders."""
    found: list[Hashable] = [stamp(Path(common, "packed-refs"))]
    hidden = {f"{common}/refs/plait", f"{common}/refs/heads/{hide}"}
    for folder, folders, names in os.walk(f"{common}/refs"):
        folders[:] = sorted(one for one in folders if f"{folder}/{one}" not in hidden)
        found += [(folder, stamp(Path(folder))), *(stamp(Path(folder, one)) for one in names)]
    return tuple(found)


async def renew_refs(repo: Repo, clone: PrivateClone) -> None:
    """Give a private clone that nobody has used yet the refs of the user's as they are now."""
    refs = await seen_refs(repo, clone.hide)
    await to_thread.run_sync((clone.path / "packed-refs").write_bytes, _packed(clone, refs))


def _packed(clone: PrivateClone, refs: Mapping[str, str]) -> bytes:
    packed = {**refs, clone.branch: clone.base}
    lines = [f"{oid} {ref}\n" for ref, oid in sorted(packed.items())]
    return "".join(lines).encode(errors="surrogateescape")


def _hooks_path(said: str) -> list[tuple[str, str]]:
    """Hooks kept in the tree (husky's way) run for the agent too; others are copied or left out."""
    is_in_tree = said and not Path(said).is_absolute() and not said.startswith("~")
    return [("core.hooksPath", said)] if is_in_tree else []


def _without_password(url: str) -> str:
    """An address without the secret that it may carry."""
    parts = urlsplit(url) if "://" in url else None
    if parts is None or parts.scheme == "ssh" or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _lay_out(
    repo: Repo,
    clone: PrivateClone,
    refs: Mapping[str, str],
    settings: list[tuple[str, str]],
) -> tuple[str, ...]:
    common, path = Path(repo.common_dir), clone.path
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (path / folder).mkdir(parents=True)
    (path / "packed-refs").write_bytes(_packed(clone, refs))
    (path / "HEAD").write_text(f"ref: {clone.branch}\n", encoding="utf-8")
    text = config_text(settings, repo.object_format)
    (path / "config").write_bytes(text.encode(errors="surrogateescape"))
    borrowed = object_folders(common / "objects")
    alternates = b"".join(os.fsencode(folder) + b"\n" for folder in borrowed[:1])
    (path / "objects/info/alternates").write_bytes(alternates)
    for name in COPIED:
        if (common / name).is_file():
            shutil.copyfile(common / name, path / name)
    if clone.cone is not None:
        clone.cone.write(path)
    if (common / "shallow").is_file():
        shutil.copyfile(common / "shallow", path / "shallow")
    _write_excludes(common, path, repo.settings)
    _copy_hooks(common / "hooks", path / "hooks")
    return tuple(borrowed)


def object_folders(first: Path) -> list[str]:
    """An object folder and all that it borrows from, however long the chain."""
    found: list[str] = []
    waiting = [first]
    while waiting:
        folder = waiting.pop(0)
        real = str(folder.resolve())
        if real in found:
            continue
        found.append(real)
        try:
            lines = (folder / "info/alternates").read_bytes().split(b"\n")
        except OSError:
            continue
        waiting += [folder / os.fsdecode(line) for line in lines if line and line[:1] != b"#"]
    return found


def _write_excludes(common: Path, path: Path, settings: UserSettings) -> None:
    """The repository's own excludes and the user's, whose file the sandbox hides."""
    files = [common / "info/exclude", *([Path(settings.excludes)] if settings.excludes else [])]
    known = (file.read_bytes() for file in files if file.is_file())
    (path / "info/exclude").write_bytes(b"\n".join((*known, _LITTER)))


def _copy_hooks(source: Path, target: Path) -> None:
    """The user's hooks run for the agent's commits, inside its sandbox only."""
    if not source.is_dir():
        return
    for hook in source.iterdir():
        if hook.suffix != ".sample" and hook.is_file() and os.access(hook, os.X_OK):
            shutil.copy2(hook, target / hook.name, follow_symlinks=True)


def config_text(
    settings: list[tuple[str, str]], object_format: str, *, is_bare: bool = False
) -> str:
    """A configuration file; a private clone is not bare: a `.git` file gives it a working tree."""
    has_extensions = any(key.lower().startswith("extensions.") for key, _ in settings)
    version = 1 if has_extensions or object_format != "sha1" else 0
    fixed = [
        ("core.repositoryformatversion", str(version)),
        ("core.bare", str(is_bare).lower()),
        ("core.logallrefupdates", "true"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("push.default", "nothing"),
    ]
    seen: dict[tuple[str, str], None] = dict.fromkeys([*fixed, *settings])
    return "".join(_config_lines(key, value) for key, value in seen)


def _config_lines(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    quoted = subsection.replace("\\", "\\\\").replace('"', '\\"')
    header = f'[{section} "{quoted}"]' if subsection else f"[{section}]"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{header}\n\t{name} = "{escaped}"\n'
