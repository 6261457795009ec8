"""Programs that need the terminal for themselves: the user's editor, a shell in a sandbox.

The console gives the terminal away and paints nothing meanwhile, but its event loop goes on: an
engine in this process must not stand still because somebody edits a sentence.
"""

import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
from textual.app import App, SuspendNotSupported

_FALL_BACK = "vi"


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


async def edit_text(app: App[None], text: str) -> tuple[str, str]:
    """The text as the user's editor leaves it, and why that failed if it did."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _FALL_BACK
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        path = Path(folder) / "message.md"
        await anyio.Path(path).write_text(text, encoding="utf-8")
        problem = await run_in_terminal(app, [*shlex.split(editor), str(path)])
        if problem:
            return text, problem
        return await anyio.Path(path).read_text(encoding="utf-8", errors="replace"), ""
