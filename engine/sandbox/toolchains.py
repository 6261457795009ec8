"""The user's programs that an attempt would not see, and what makes them work there.

A worker's HOME is its own, and the real one is hidden; compilers and interpreters installed below
it must still run. Knows well-known installers by their variable and folder, and everything else by
what PATH leads to. It shows programs, never configuration or credentials.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from engine.values import dataclass

_INSTALLERS: tuple[tuple[str, str], ...] = (
    ("PYENV_ROOT", ".pyenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("NVM_DIR", ".nvm"),
    ("VOLTA_HOME", ".volta"),
    ("FNM_DIR", ".local/share/fnm"),
    ("ASDF_DIR", ".asdf"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("RBENV_ROOT", ".rbenv"),
    ("NODENV_ROOT", ".nodenv"),
    ("GOENV_ROOT", ".goenv"),
    ("JENV_ROOT", ".jenv"),
    ("SDKMAN_DIR", ".sdkman"),
    ("DOTNET_ROOT", ".dotnet"),
    ("BUN_INSTALL", ".bun"),
    ("DENO_INSTALL", ".deno"),
    ("PNPM_HOME", ".local/share/pnpm"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ("UV_TOOL_DIR", ".local/share/uv/tools"),
    ("PIPX_HOME", ".local/share/pipx"),
    ("ELAN_HOME", ".elan"),
    ("JULIA_DEPOT_PATH", ""),
    ("GOROOT", ""),
    ("JAVA_HOME", ""),
    ("CONDA_PREFIX", ""),
    ("VIRTUAL_ENV", ""),
    ("ANDROID_HOME", ""),
    ("FLUTTER_ROOT", ""),
    ("LLVM_HOME", ""),
)
"""Variable, and the folder below HOME that it means when it is not set ("": none)."""

_TOO_BROAD = frozenset({"", ".local", ".local/share", ".config", ".cache", ".ssh", ".gnupg"})
"""Folders below HOME that hold more than programs: never shown whole."""

_MOST_PARTS = 200
"""Of one path with all its links: more is a link to itself."""

_SIGNS = ("lib", "lib64", "libexec", "share", "pyvenv.cfg")
"""Folders beside `bin` where something was installed. `.cargo`, with its token, has none."""


@dataclass(frozen=True, kw_only=True)
class Toolchains:
    """Folders to show read-only, the variables that point into them, and the PATH that remains.

    Attributes:
        folders: Real folders: none goes through a link.
        links: What PATH and the programs on it go through, wherever it lies.
        variables: Names and values.
        path: The user's own, of what is there.
    """

    folders: tuple[Path, ...]
    links: tuple[Path, ...]
    variables: tuple[tuple[str, str], ...]
    path: str


def find_toolchains(env: Mapping[str, str], shown: Iterable[Path]) -> Toolchains:
    """The user's toolchains that lie outside the folders that are shown anyway."""
    named = tuple(env.get(variable, "") for variable, _ in _INSTALLERS)
    path, home = env.get("PATH", ""), env.get("HOME") or "/nonexistent"
    places = (*path.split(":"), *named, *(f"{home}/{name}" for _, name in _INSTALLERS if name))
    return _found(path, home, named, frozenset(shown), tuple(map(_changed, places)))


def _changed(place: str) -> int:
    """Return when a folder last changed: a later installation or removal shows in this."""
    try:
        return os.stat(place).st_mtime_ns if place else 0  # noqa: PTH116 - sixty for each attempt
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _found(
    path: str, user: str, named: tuple[str, ...], visible: frozenset[Path], _: tuple[int, ...]
) -> Toolchains:
    """Looking costs milliseconds and hundreds of files, and every attempt asks the same."""
    home = Path(user).resolve()
    folders: list[Path] = []
    variables: list[tuple[str, str]] = []
    for (variable, default), own in zip(_INSTALLERS, named, strict=True):
        value = own or (str(home / default) if default else "")
        if value and is_open(value) and not _is_broad(Path(value).resolve(), home):
            folders.append(Path(value).resolve())
            variables.append((variable, value))
    entries = [entry for entry in path.split(":") if entry.startswith("/")]
    entries = [entry for entry in dict.fromkeys(entries) if is_open(entry)]
    for entry in entries:
        if not is_below(Path(entry).resolve(), visible):
            folders.extend(_programs(Path(entry), home))
    found = (folder for folder in folders if not is_below(folder, visible))
    shown = _outermost(folder for folder in found if is_open(folder))
    links = dict.fromkeys(link for entry in entries for link in _ways(Path(entry), visible))
    return Toolchains(
        folders=tuple(shown),
        links=tuple(link for link in links if not is_below(link, (*visible, *shown))),
        variables=tuple(variables),
        path=":".join(entries),
    )


def _ways(entry: Path, visible: Iterable[Path]) -> Iterator[Path]:
    """The links that lead to a folder on PATH, and from it to what is installed elsewhere."""
    yield from _links_on_way(entry)
    if not is_below(entry.resolve(), visible):
        for link in _links_in(entry):
            yield from _links_on_way(link)


def _links_on_way(path: Path) -> Iterator[Path]:
    """Every link that is followed to reach a path, each where it really lies."""
    left, reached = list(reversed(path.parts[1:])), Path("/")
    for _ in range(_MOST_PARTS):
        if not left:
            return
        part = left.pop()
        if part == "..":
            reached = reached.parent
            continue
        reached /= part
        if os.path.islink(reached):  # noqa: PTH114 - pathlib raises where a folder is closed
            yield reached
            target = reached.readlink()
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            reached = Path("/") if target.is_absolute() else reached.parent


def is_open(folder: str | Path) -> bool:
    """Return whether a folder is there and its programs can be run.

    What the user may not enter, no worker can be shown: mounting it would fail the start.
    """
    return os.path.isdir(folder) and os.access(folder, os.R_OK | os.X_OK)  # noqa: PTH112


def _links_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as programs:
            return [Path(program.path) for program in programs if program.is_symlink()]
    except OSError:
        return []


def is_below(path: Path, folders: Iterable[Path]) -> bool:
    """Say if a path is one of these folders or lies in one."""
    return not {path, *path.parents}.isdisjoint(folders)


def _programs(entry: Path, home: Path) -> Iterator[Path]:
    """A folder on PATH, and where the programs in it are really installed."""
    real = entry.resolve()
    if _is_broad(real, home):
        return
    yield from _installation(real, home)
    for folder in {Path(os.path.realpath(link)).parent for link in _links_in(real)}:
        yield from _installation(folder, home)


def _installation(folder: Path, home: Path) -> Iterator[Path]:
    """The whole installation that a folder of programs belongs to."""
    parts = folder.parts
    if "node_modules" in parts:
        folder = Path(*parts[: parts.index("node_modules") + 1])
    elif folder.name == "bin" and _is_installation(folder.parent, home):
        folder = folder.parent
        yield from _interpreter(folder / "pyvenv.cfg", home)
    if not _is_broad(folder, home):
        yield folder


def _is_installation(prefix: Path, home: Path) -> bool:
    """Say if the folder above a `bin` is an installation, not a project or a mixed store."""
    if _is_broad(prefix, home) or os.path.lexists(prefix / ".git"):
        return False
    return any(os.path.lexists(prefix / sign) for sign in _SIGNS)


def _interpreter(config: Path, home: Path) -> Iterator[Path]:
    """The interpreter that a virtual environment stands on."""
    try:
        lines = config.read_text(errors="replace").splitlines()
    except OSError:  # it is none, or closed to us
        return
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home" and is_open(value.strip()):
            yield from _installation(Path(value.strip()).resolve(), home)


def _is_broad(folder: Path, home: Path) -> bool:
    """Say if a folder shows more than programs: the root, HOME, what contains it, or a store."""
    if folder == home or folder in home.parents:
        return True
    return home in folder.parents and str(folder.relative_to(home)) in _TOO_BROAD


def _outermost(folders: Iterable[Path]) -> list[Path]:
    kept: dict[Path, None] = {}
    for folder in sorted(set(folders), key=lambda path: (len(path.parts), path)):
        if not is_below(folder, kept):
            kept[folder] = None
    return list(kept)
