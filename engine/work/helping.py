"""Run the manifest's commands that help with conflicts: make a file anew, format texts.

They run where a check does: on exactly a tree, in the sandbox, in surroundings that no agent had a
hand in. The manifest's setup does not run before: it may read a file that is yet to be made.
"""

import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from engine.beneath import PathRefused, read_file
from engine.core import effects as e
from engine.core.state import Worker
from engine.errors import WorkspaceError
from engine.git.objects import Wording, write_commit
from engine.merge import Formatted
from engine.private import private_folder
from engine.review.review import Regeneration, Unformatted
from engine.work.checking import Checking
from engine.work.run_ports import RunPort
from engine.work.tools import Tools

_MOST = 16 << 20
"""A generated file that is longer is not taken."""
_MOST_FORMATTED, _MOST_FILES = 1 << 20, 50
_MAKING_S, _FORMATTING_S = 600.0, 20.0
"""Bounds of all commands for one file, and of all formatting for one merge: landings wait."""


async def make_file(tools: Tools, run: RunPort, w: Worker, wanted: Regeneration) -> bytes:
    """Return what a command makes of one file.

    Raises:
        WorkspaceError: It failed, or left no such file.
    """
    command, name = wanted.command, os.fsdecode(wanted.path)
    commit = await _carried(tools, run, wanted.tree, wanted.parent)
    checking = Checking(run, tools, e.RunCheck(**w.who))
    landings = tools.workshops.of(run.state.plan).landings
    made: bytes | PathRefused | None = None
    async with tools.landing, landings.laid_out(run.state, commit, checking) as there:
        clean, folder, places = there
        with anyio.move_on_after(_MAKING_S):
            problem = await clean.make(_beside(folder, name, command), folder, places)
            if problem is not None:
                raise WorkspaceError(f"`{command}` {problem}")
            made = await to_thread.run_sync(partial(read_file, folder, wanted.path, most=_MOST + 1))
    if made is None:
        raise WorkspaceError(f"`{command}` took longer than {_MAKING_S / 60:g} minutes")
    if isinstance(made, PathRefused):
        raise WorkspaceError(f"`{command}` made no {name} that plait can use: {made.reason}")
    if len(made) > _MOST:
        raise WorkspaceError(f"`{command}` made more than {_MOST >> 20} MB of {name}")
    return made


async def format_texts(
    tools: Tools, run: RunPort, w: Worker, files: Sequence[Unformatted], *, commit: str
) -> dict[bytes, Formatted | None]:
    """Return files as their formatters write them, on a commit's files; None where one could not.

    All of them together have a bounded time, because a landing may wait for its turn meanwhile.
    Their own turn, behind other landings, may take long: that time does not count.

    Raises:
        EngineError: The environment cannot be made, or the formatters take too long.
    """
    found: dict[bytes, Formatted | None] = {one.path: None for one in files}
    some = [one for one in files if max(map(len, one.texts)) <= _MOST_FORMATTED][:_MOST_FILES]
    checking = Checking(run, tools, e.RunCheck(**w.who))
    landings = tools.workshops.of(run.state.plan).landings
    async with tools.landing, landings.laid_out(run.state, commit, checking) as there:
        clean, folder, places = there
        beside = places.private / "plait-format"
        words = await to_thread.run_sync(partial(_put, folder, beside, some))
        with anyio.move_on_after(_FORMATTING_S) as late:
            await clean.make(words, folder, places)
        if late.cancelled_caught:  # the file that was being written may be there in part
            raise WorkspaceError(f"formatting the conflicts took over {_FORMATTING_S:g} seconds")
        for number, one in enumerate(some):
            take = partial(_formatted, Path(folder), beside, number, one)
            found[one.path] = await to_thread.run_sync(take)
    return found


def _put(root: str, folder: Path, files: Sequence[Unformatted]) -> str:
    """Write texts into a folder; return the shell command that formats each of them there.

    The commands are a file: one word of a command line holds no more than 128 KB.
    """
    private_folder(folder)
    words: list[str] = []
    for number, one in enumerate(files):
        path = os.fsdecode(one.path)
        for side, text in enumerate(one.texts):
            at = folder / f"{number}.{side}"
            at.write_bytes(text)
            name = shlex.quote(Path(path).name)
            format_ = f"PLAIT_FILE={name} sh -c {shlex.quote(one.command)}"
            does = _beside(root, path, f"{format_} < {shlex.quote(str(at))}")
            made = shlex.quote(f"{at}.made")
            words.append(f"( {does} ) > {made} || rm -f {made}")
    script = folder / "all"
    script.write_bytes(os.fsencode("\n".join([*words, "true"])))
    return f". {shlex.quote(str(script))}"


def _formatted(root: Path, folder: Path, number: int, one: Unformatted) -> Formatted | None:
    """Return a file as its formatter wrote it, if it wrote all three versions."""
    inside = folder.relative_to(root)
    made = [read_file(root, inside / f"{number}.{side}.made", most=_MOST) for side in range(3)]
    texts = [text for text in made if isinstance(text, bytes) and text]
    return Formatted(one.command, *texts) if len(texts) == len(made) else None


async def _carried(tools: Tools, run: RunPort, tree: str, parent: str) -> str:
    """Return a commit that carries a tree to a command; no ref ever names it."""
    if tools.repo is None:
        raise WorkspaceError("there is no repository here")
    author = tools.repo.settings.sign(int(run.state.started_at or 0))
    wording = Wording(message="A tree for a command\n", author=author)
    return await write_commit(tools.repo, tree, [parent], wording)


def _beside(root: str, path: str, command: str) -> str:
    """Return a shell command that runs in the folder of a file."""
    return f"cd -- {shlex.quote(str(Path(root, path).parent))} && {{\n{command}\n}}"
