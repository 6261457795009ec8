"""Programs that need the terminal for themselves: the user's editor, a shell in a sandbox.

The console gives the terminal away and paints nothing meanwhile, but its event loop goes on: an
engine in this process must not stand still because somebody edits a sentence.
"""

import io
import json
import os
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from textual.app import App, SuspendNotSupported

from engine.errors import EngineError

_FALL_BACK = "vi"
_LONGEST_NAME = 80
_TAKES_LINE = {"vi", "vim", "nvim", "nano", "emacs", "micro", "kak", "joe", "ne", "mg"}
_WINDOWED = {
    *("code", "code-insiders", "codium", "cursor", "windsurf", "zed", "subl", "atom", "mate"),
    *("gvim", "mvim", "kate", "gedit", "gnome-text-editor", "xed", "mousepad", "pluma", "lapce"),
    *("idea", "pycharm", "webstorm", "goland", "clion", "rubymine", "phpstorm", "rider", "fleet"),
    *("bbedit", "nova", "xcode", "notepad++", "geany", "sublime_text"),
}
_COPIES = ("tar", "-cf", "-", "--exclude=./.git", ".")
_LET_GO = ("/bin/sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh")
"""Starts a program that nobody here waits for: its parent is gone before it has begun."""


def _editor() -> list[str]:
    return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALL_BACK)


def has_windows() -> bool:
    """The user's editor opens windows of its own, so that no sandbox of ours would hold it."""
    return Path(_editor()[0]).name in _WINDOWED


def editor_words(path: str, line: int = 0) -> list[str]:
    """The user's editor on a file of the folder it is started in; on the folder without one."""
    words = _editor()
    at = [f"+{line}"] if line and Path(words[0]).name in _TAKES_LINE else []
    return [*words, *at, f"./{path}" if path else "."]


async def open_copy(inside: Sequence[str], path: str) -> tuple[str, str]:
    """Open the user's editor on a copy of a worker's tree: where that is, or why not.

    The copy is packed inside the sandbox, and unpacked so that no name or link in it leads out.
    """
    folder = await anyio.to_thread.run_sync(partial(tempfile.mkdtemp, prefix="plait-copy-"))
    packed = await anyio.run_process([*inside, *_COPIES], check=False)
    if packed.returncode:
        return folder, packed.stderr.decode(errors="replace").strip() or "it could not be copied"
    try:
        await anyio.to_thread.run_sync(_unpack, packed.stdout, folder)
    except (OSError, tarfile.TarError) as error:
        return folder, str(error)
    words = _editor()
    if shutil.which(words[0]) is None:
        return folder, f"{words[0]} does not exist"
    words.append(str(_below(folder, path)))
    await anyio.run_process([*_LET_GO, *words], start_new_session=True)
    return folder, ""


def _below(folder: str, path: str) -> Path:
    """A path that an agent wrote, where it leads to something in the folder; else the folder."""
    root = Path(folder).resolve()
    found = (root / path).resolve()
    return found if found.is_relative_to(root) and found.exists() else root


def _unpack(data: bytes, folder: str) -> None:
    """Write a packed tree out; what leads out of the folder is an error, a device is left out.

    Python before 3.11.4 has no filter for this. Files come before all links, so that none is
    written through a link; where the links lead is judged when all of them are there.
    """
    root = Path(folder).resolve()
    with tarfile.open(fileobj=io.BytesIO(data)) as packed:
        members = {root / member.name: member for member in packed}
        for path, member in members.items():
            if not Path(os.path.normpath(path)).is_relative_to(root):
                raise tarfile.TarError(f"{member.name} points outside its folder")
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif content := packed.extractfile(member) if not member.issym() else None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
    links = [path for path, member in members.items() if member.issym()]
    for path in links:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(members[path].linkname)
    for path in links:
        if path.readlink().is_absolute() or not path.resolve().is_relative_to(root):
            raise tarfile.TarError(f"{members[path].name} points outside its folder")


async def run_in_terminal(app: App[None], argv: Sequence[str]) -> str:
    """Run a program in the terminal; says why it could not, or nothing."""
    try:
        with app.batch_update(), app.suspend():
            await anyio.run_process(argv, check=False, stdin=None, stdout=None, stderr=None)
    except SuspendNotSupported:
        return "this terminal cannot be suspended"
    except OSError as error:
        return f"{argv[0]} could not be started: {error.strerror}"
    app.refresh(layout=True)
    return ""


async def in_terminal(app: App[None], work: Callable[[], str]) -> str:
    """Let a function have the terminal, in a thread; says why it could not, or what it says."""
    try:
        with app.batch_update(), app.suspend():
            said = await anyio.to_thread.run_sync(work)
    except SuspendNotSupported:
        return "this terminal cannot be suspended"
    app.refresh(layout=True)
    return said


async def edit_text(
    app: App[None], text: str, *, name: str = "message.md", line: int = 0
) -> tuple[str, str]:
    """The text as the user's editor leaves it, and why that failed if it did.

    The editor sees a file of that name, so that it knows the language. Line ends stay what they
    are, and so do bytes that are no UTF-8.
    """
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        path = Path(folder) / (_file_name(name) or "file")
        await anyio.Path(path).write_bytes(text.encode(errors="surrogateescape"))
        words = _editor()
        at = [f"+{line}"] if line and Path(words[0]).name in _TAKES_LINE else []
        problem = await run_in_terminal(app, [*words, *at, str(path)])
        if problem:
            return text, problem
        try:
            edited = await anyio.Path(path).read_bytes()
        except OSError as error:
            return text, f"the editor removed the file: {error.strerror}"
        return edited.decode(errors="surrogateescape"), ""


def _file_name(path: str) -> str:
    """Return the last part of a path as a name that is nothing but a name: an agent wrote it."""
    kept = "".join(
        char if char.isalnum() or char in "._-+" else "_" for char in path.rpartition("/")[2]
    )
    return kept.lstrip("-.")[-_LONGEST_NAME:] if kept.strip("_.-") else ""


# The issues of the repository, by GitHub's own program, with the user's own login.

_MOST_ISSUES = 100
_ISSUE = ("number", "title", "body", "url")


async def open_issues(folder: Path) -> list[tuple[int, str]]:
    """Return the open issues of a repository, newest first.

    Raises:
        EngineError: They cannot be had, and why.
    """
    many = ("--limit", str(_MOST_ISSUES), "--json", "number,title")
    found = await _gh(folder, "issue", "list", *many)
    known = found if isinstance(found, list) else []
    return [(int(one["number"]), str(one["title"])) for one in known if "number" in one]


async def issue_text(folder: Path, number: int) -> str:
    """Return an issue as a prompt: its title, its text, where it stands.

    Raises:
        EngineError: It cannot be had, and why.
    """
    found = await _gh(folder, "issue", "view", str(number), "--json", ",".join(_ISSUE))
    known = found if isinstance(found, dict) else {}
    title, body, url = (str(known.get(key) or "") for key in ("title", "body", "url"))
    parts = (f"{title} (#{number})", body.replace("\r", "").strip(), url)
    return "\n\n".join(filter(None, parts))


async def _gh(folder: Path, *words: str) -> object:
    if shutil.which("gh") is None:
        raise EngineError("gh is not installed", hint="https://cli.github.com says how to get it.")
    try:
        done = await anyio.run_process(["gh", *words], cwd=folder, check=False)
    except OSError as error:
        raise EngineError(f"gh could not be started: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise EngineError(f"gh: {said or 'it failed'}", hint="`gh auth login` logs you in.")
    try:
        found: object = json.loads(done.stdout)
    except ValueError as error:
        raise EngineError("plait cannot read the answer of gh") from error
    return found
