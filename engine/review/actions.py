"""Apply a human's decisions about conflicts: from the command to the session after it."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from engine.errors import WorkspaceError
from engine.merge import (
    HunkKey,
    LineOf,
    LinePick,
    OwnText,
    ResolutionSession,
    SingleLines,
)
from engine.messages import commands as c
from engine.messages.merging import ConflictFileView

Act = Callable[[ResolutionSession, Any], ResolutionSession]


def decided(session: ResolutionSession, action: c.ResolutionAction) -> ResolutionSession:
    """Return the session after an action on it.

    Raises:
        WorkspaceError: It cannot be done, and why; nothing was changed.
    """
    try:
        return _ACTS[type(action)](session, action)
    except KeyError as error:
        raise WorkspaceError(
            f"no such conflict: {_named(error.args[0] if error.args else '')}",
            hint="Look at the conflicts again: the sides may have changed.",
        ) from error
    except ValueError as error:
        raise WorkspaceError(f"this choice is not possible here: {error}") from error


def _named(what: object) -> str:
    return os.fsdecode(what) if isinstance(what, bytes) else str(what)


def _key(hunk: str | int) -> HunkKey | int:
    return hunk if isinstance(hunk, int) else HunkKey(hunk)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _choose(session: ResolutionSession, act: c.ChooseHunk) -> ResolutionSession:
    return session.choose(os.fsencode(act.path), _key(act.hunk), act.choice)


def _write(session: ResolutionSession, act: c.WriteHunk) -> ResolutionSession:
    own = OwnText(_bytes(act.text), act.source)
    return session.choose(os.fsencode(act.path), _key(act.hunk), own)


def _pick(session: ResolutionSession, act: c.PickLines) -> ResolutionSession:
    picks = tuple(LinePick(LineOf(line.side), line.at) for line in act.lines)
    return session.choose(os.fsencode(act.path), _key(act.hunk), SingleLines(picks))


def _rest(session: ResolutionSession, act: c.ChooseRest) -> ResolutionSession:
    paths = [os.fsencode(path) for path in act.paths]
    return session.choose_rest(act.choice, paths or None)


def _whole(session: ResolutionSession, act: c.ChooseWhole) -> ResolutionSession:
    return session.choose_whole(os.fsencode(act.path), act.choice)


def _mode(session: ResolutionSession, act: c.ChooseMode) -> ResolutionSession:
    return session.choose_mode(os.fsencode(act.path), act.mode)


def _place(session: ResolutionSession, act: c.ChoosePlace) -> ResolutionSession:
    return session.choose_place(os.fsencode(act.path), act.place)


def _set(session: ResolutionSession, act: c.SetFile) -> ResolutionSession:
    content = None if act.text is None else _bytes(act.text)
    return session.set_file(os.fsencode(act.path), content, mode=act.mode)


def _edit(session: ResolutionSession, act: c.EditFile) -> ResolutionSession:
    return session.edited(os.fsencode(act.path), _bytes(act.text))


def _reopen(session: ResolutionSession, act: c.Reopen) -> ResolutionSession:
    key = None if act.hunk is None else _key(act.hunk)
    return session.reopen(os.fsencode(act.path), key)


def side_actions(file: ConflictFileView, choice: str) -> tuple[c.ResolutionAction, ...]:
    """Return the actions that take one side (or both) wherever a file is still open.

    Raises:
        WorkspaceError: The file's conflict offers no such choice.
    """
    found: list[c.ResolutionAction] = []
    if file.needs_whole and file.whole is None and not file.is_edited:
        offered = {option.choice for option in file.options}
        words = ("both", "union", "merged") if choice == "both" else (choice,)
        word = next((word for word in words if word in offered), None)
        if word is None:
            raise WorkspaceError(
                f"{file.path} ({file.kind}) offers no {choice!r}",
                hint=f"It offers: {', '.join(sorted(offered))}.",
            )
        found.append(c.ChooseWhole(path=file.path, choice=word))
    if file.needs_place and file.place is None:
        found.append(c.ChoosePlace(path=file.path, place=choice))
    mode = file.incoming_mode if choice == "incoming" else file.target_mode
    if file.needs_mode and file.mode is None and mode is not None:
        found.append(c.ChooseMode(path=file.path, mode=mode))
    if file.open_hunks and not file.needs_whole:
        found.append(c.ChooseRest(choice=choice, paths=(file.path,)))
    return tuple(found)


_ACTS: Mapping[type[Any], Act] = {
    c.ChooseHunk: _choose,
    c.WriteHunk: _write,
    c.PickLines: _pick,
    c.ChooseRest: _rest,
    c.ChooseWhole: _whole,
    c.ChooseMode: _mode,
    c.ChoosePlace: _place,
    c.SetFile: _set,
    c.EditFile: _edit,
    c.Reopen: _reopen,
    c.UndoChoice: lambda session, _: session.undo(),
    c.RedoChoice: lambda session, _: session.redo(),
}
"""The rest of the union is no matter of a session: answers remembered, and going on."""
