"""Programs that need the terminal for themselves: the user's editor, a shell in a sandbox.

The console gives the terminal away and paints nothing meanwhile, but its event loop goes on: an
engine in this process must not stand still because somebody edits a sentence.
"""

import io
import os
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from textual.app import App, SuspendNotSupported

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
        return folder, f"there is no {words[0]}"
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
                raise tarfile.TarError(f"{member.name} leads out of its folder")
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
            raise tarfile.TarError(f"{members[path].name} leads out of its folder")


async def run_in_terminal(app: App[None], argv: Sequence[str]) -> str:
    """Run a program in the terminal; says why it could not, or nothing."""
    try:
        with app.batch_update(), app.suspend():
            await anyio.run_process(argv, check=False, stdin=None, stdout=None, stderr=None)
    except SuspendNotSupported:
        return "this terminal cannot be given away"
    except OSError as error:
        return f"{argv[0]} cannot be started: {error.strerror}"
    app.refresh(layout=True)
    return ""


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
            return text, f"the editor left no file: {error.strerror}"
        return edited.decode(errors="surrogateescape"), ""


def _file_name(path: str) -> str:
    """Return the last part of a path as a name that is nothing but a name: an agent wrote it."""
    kept = "".join(
        char if char.isalnum() or char in "._-+" else "_" for char in path.rpartition("/")[2]
    )
    return kept.lstrip("-.")[-_LONGEST_NAME:] if kept.strip("_.-") else ""
