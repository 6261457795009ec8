"""`plait resolve`: decide the conflicts of a worker without the console."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from engine.api import ConflictFileView, ConflictView, EnginePort, landing_end, reach, side_actions
from engine.messages import commands as c
from engine.messages.merging import DecideConflict, ReadConflicts
from engine.messages.questions import ReadRun, WaitIdle
from engine.phases import Phase
from tui.commands.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_USAGE,
    EXIT_WAITS,
    add_repo,
    add_seen,
    in_loop,
    put,
    put_json,
    require_seen,
    say,
)
from tui.words.asked_ahead import answers, stopped
from tui.words.clean import clean, clean_name
from tui.words.figures import some

_SIDES = ("target", "incoming", "both")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whose conflicts, and what to take where."""
    add_repo(parser)
    parser.add_argument("worker", metavar="WORKER")
    add_seen(parser)
    parser.add_argument("--run", default="", help="which run (default: the latest)")
    add_decisions(parser)
    add_regenerate(parser)
    parser.add_argument(
        "--despite-check",
        action="store_true",
        help="land although the check failed; the commit says so",
    )


def add_regenerate(parser: argparse.ArgumentParser) -> None:
    """Take which generated files are to be made anew."""
    parser.add_argument(
        "--regenerate",
        nargs="*",
        metavar="PATH",
        help="regenerate files with the manifest's commands (default: every open one)",
    )


def add_decisions(parser: argparse.ArgumentParser) -> None:
    """Take what may be decided about conflicts from a shell."""
    for side in _SIDES:
        what = "both sides" if side == "both" else f"the {side} side"
        parser.add_argument(
            f"--{side}",
            nargs="*",
            metavar="PATH",
            help=f"take {what} for everything still open in these files (default: in all files)",
        )
    parser.add_argument(
        "--write",
        nargs=2,
        action="append",
        default=[],
        metavar=("PATH", "FILE"),
        help="use the text of FILE (- for stdin) for PATH",
    )
    parser.add_argument("--delete", nargs="+", default=[], metavar="PATH")
    parser.add_argument("--undo", action="store_true", help="first undo the last choice")
    parser.add_argument("--show", action="store_true", help="only show; do not continue")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def decides(args: argparse.Namespace) -> bool:
    """Something is decided, or asked for, that needs no console."""
    sides = [getattr(args, name, None) is not None for name in (*_SIDES, "regenerate")]
    return any((*sides, args.write, args.delete, args.undo, args.show, args.json))


def contradiction(args: argparse.Namespace) -> str:
    """Return why the decisions contradict each other; empty where they do not."""
    named = [side for side in _SIDES if getattr(args, side) == []]
    if len(named) > 1:
        return f"--{named[0]} and --{named[1]} cannot both apply to every file: name paths"
    return ""


def run(args: argparse.Namespace) -> int:
    """Decide, and go on once nothing is open: 0 landed, 3 something is still open."""
    if why := contradiction(args):
        say(why)
        return EXIT_USAGE
    return in_loop(partial(_resolve, args))


async def _resolve(args: argparse.Namespace) -> int:
    async with reach(args.repo) as (port, has_lived):
        seen = await port.ask(ReadConflicts(args.run, args.worker))
        require_seen(args, (await port.ask(ReadRun(seen.run))).worker(seen.worker), seen.tree)

        async def decide(action: c.ResolutionAction) -> ConflictView:
            return await port.ask(DecideConflict(seen.run, seen.worker, action))

        view = await decided(args, seen, decide)
        if args.show or not view.is_resolved:
            put_json(view_json(view)) if args.json else put(view_text(view))
            return EXIT_OK if view.is_resolved else EXIT_WAITS
        finish = c.FinishResolving(is_despite_check=args.despite_check, seen=view.tree)
        code = await _go_on(port, view, finish, is_json=args.json)
        if not has_lived:
            await port.ask(WaitIdle())
    return code


async def decided(
    args: argparse.Namespace,
    view: ConflictView,
    decide: Callable[[c.ResolutionAction], Awaitable[ConflictView]],
) -> ConflictView:
    """The conflicts after everything that the words of a command decide."""
    if args.undo:
        view = await decide(c.UndoChoice())
    for action in _actions(args, view):
        view = await decide(action)
    return view


def _actions(args: argparse.Namespace, view: ConflictView) -> Iterator[c.ResolutionAction]:
    """Yield what was asked for, in an order in which the most exact wins."""
    for path, file in args.write:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        yield c.SetFile(path=path, text=data.decode(errors="surrogateescape"))
    for path in args.delete:
        yield c.SetFile(path=path, text=None)
    given = {path for path, _ in args.write} | set(args.delete)
    anew = _anew(getattr(args, "regenerate", None), view)
    named = {path for side in _SIDES for path in getattr(args, side) or ()} | given | {*anew}
    for side in _SIDES:
        paths = getattr(args, side)
        if paths is None:
            continue
        for file in _files(view, paths or [f.path for f in view.files if f.path not in named]):
            yield from side_actions(file, side)
    for path in anew:  # they are made from the rest, so they come last
        yield c.Regenerate(path=path)


def _anew(asked: list[str] | None, view: ConflictView) -> list[str]:
    """Return the files that are to be made anew: those named, or every open one with a command."""
    if asked is None:
        return []
    files = [file for file in view.files if file.regenerate and not file.is_resolved]
    return asked or [file.path for file in files]


def _files(view: ConflictView, paths: list[str]) -> Iterator[ConflictFileView]:
    for path in paths:
        try:
            yield view.file(path)
        except KeyError:
            known = ", ".join(clean_name(file.path) for file in view.files)
            raise SystemExit(
                f"{clean_name(path)} has no conflict; these files do: {known}"
            ) from None


async def _go_on(
    port: EnginePort, view: ConflictView, finish: c.FinishResolving, *, is_json: bool
) -> int:
    seen = await port.ask(ReadRun(view.run))
    done = await port.ask(DecideConflict(view.run, view.worker, finish))
    if not done.is_finished:
        is_same = done.tree == view.tree or not done.moved
        why = "another conflict follows" if is_same else "the target moved in the meantime"
        say(f"{view.worker} does not continue yet: {why}")
        put_json(view_json(done)) if is_json else put(view_text(done))
        return EXIT_WAITS
    if done.is_of_base:
        put_json(view_json(done)) if is_json else put(done.tree or "")
        say(f"{view.worker} continues from your choices")
        return EXIT_OK
    end = await landing_end(port, view.run, view.worker, after_seq=seen.seq)
    if is_json:
        put_json({**view_json(done), "landed": end.is_landed, "commit": end.commit})
    elif end.commit:
        put(end.commit)
    if end.note:
        say(clean(end.note))
    if not end.is_landed:
        say(f"{view.worker} was not landed: {clean(end.reason)}")
    if end.conflicts:
        return EXIT_WAITS
    return EXIT_OK if end.is_landed else EXIT_FAILED


def view_json(view: ConflictView) -> dict[str, Any]:
    """Conflicts and decisions as plain data."""
    return {
        "run": view.run,
        "worker": view.worker,
        "target": view.target,
        "incoming": view.incoming,
        "phase": str(Phase.CONFLICTED),
        "is_of_base": view.is_of_base,
        "is_resolved": view.is_resolved,
        "is_finished": view.is_finished,
        "tree": view.tree,
        "opened": list(map(_plain, view.opened)),
        "caveat": view.caveat,
        "assist": asdict(view.assist) if view.assist else None,
        "files": [
            {
                "path": _plain(file.path),
                "kind": file.kind,
                "is_resolved": file.is_resolved,
                "open_hunks": file.open_hunks,
                "whole": file.whole,
                "regenerate": file.regenerate,
                "made_by": file.made_by,
                "is_stale": file.is_stale,
                "options": [option.choice for option in file.options],
                "hunks": [
                    {"key": hunk.key, "line": hunk.line, "choice": hunk.choice}
                    for hunk in file.hunks
                ],
            }
            for file in view.files
        ],
    }


def _plain(text: str) -> str:
    """Without the stand-ins for bytes that are no UTF-8, which JSON may not carry."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def view_text(view: ConflictView) -> str:
    """The same in lines for people."""
    what = "its base" if view.is_of_base else f"{clean(view.target)}"
    who = view.worker or clean(view.incoming)
    rows = [f"{who} and {what}: {some(view.open_count, 'file')} to resolve"]
    for file in view.files:
        state = "decided" if file.is_resolved else _wanted(file)
        rows.append(f"  {clean_name(file.path)}  {file.kind}: {state}")
        for hunk in file.hunks:
            choice = hunk.choice or "open"
            rows.append(f"    line {hunk.line}: {choice}")
    if view.opened:
        rows.append(f"  resolved before, now open again: {', '.join(map(clean, view.opened))}")
    if view.to_look_at:
        named = ", ".join(map(clean, view.to_look_at))
        rows.append(f"  edited by hand; compare with this: {named}")
    rows += [f"  {clean(said)}" for said in (view.problem, view.caveat) if said]
    if view.assist:
        counts = ", ".join(filter(None, (answers(view.assist), stopped(view.assist))))
        rows.append(f"  proposals requested from {clean(view.assist.by)}, {counts}")
    return "\n".join(rows)


def _wanted(file: ConflictFileView) -> str:
    if file.regenerate:
        again = (
            ": the rest of the result has changed" if file.is_stale else ", or resolve it yourself"
        )
        return f"regenerate it with `{clean(file.regenerate)}` (--regenerate){again}"
    if file.needs_whole:
        return f"choose {', '.join(option.choice for option in file.options)}"
    parts = [some(file.open_hunks, "hunk")] if file.open_hunks else []
    parts += ["its mode"] if file.needs_mode and not file.mode else []
    parts += ["its place"] if file.needs_place and not file.place else []
    return f"{', '.join(parts)} open"
