"""Out of the console and into a worker's tree: a shell, an editor, its check; and copying.

What belongs to a terminal runs inside the worker's sandbox: an agent's files may do to an editor
or a shell what they like. An editor with windows of its own cannot; it gets a copy.
"""

from collections.abc import Sequence
from functools import partial

from engine.messages.commands import (
    Seen,
)
from engine.messages.results import verdict_of
from tui.controllers.deciding import Deciding
from tui.controllers.running import run_program
from tui.ink import KEY, TEXT, Ink, Role, Span, words
from tui.kit.outside import editor_words, has_windows, open_copy, run_in_terminal
from tui.kit.screen import Controller
from tui.kit.session import identity_of
from tui.words.asking import ANSWERED_ON, asks_permission

_KEPT = "They are not part of its change: plait has already collected it."


class Outward(Controller):
    """Open shells, editors, checks and pull requests of the worker under the cursor."""

    def do_terminal(self) -> None:
        self._go_to("terminal")

    def do_take_over(self) -> None:
        self._go_to("take_over")

    def _go_to(self, idea: str) -> None:
        """Go to the worker's page, and do it there."""
        self.session.wanted_there = idea
        self.screen.go("worker")

    def do_edit(self) -> None:
        if self.screen.kind in ANSWERED_ON and asks_permission(self.here()):
            self.screen.does(Deciding).edit_command()
            return
        path, line = self.screen.place_here()
        if path:
            self._edit(path, line, "edit")
        else:
            self.refuse("edit", "there is no file under the cursor")

    def do_edit_all(self) -> None:
        self._edit(self.screen.place_here()[0] if self.screen.kind == "diff" else "", 0, "edit_all")

    def _edit(self, path: str, line: int, idea: str) -> None:
        shell, worker = self.session.shell, self.here()
        if shell is None:
            return
        inside = [*shell(self.run_id, worker.worker), "--"]
        if has_windows():
            self.screen.begin(partial(self._open_copy, inside, path, worker.worker))
        else:
            self.screen.begin_outside(
                partial(self._go_out, [*inside, *editor_words(path, line)], idea)
            )

    async def _go_out(self, argv: Sequence[str], idea: str) -> None:
        problem = await run_in_terminal(self.screen.app, argv)
        worker = self.session.worker_view
        if problem:
            self.refuse(idea, problem)
        elif worker and not worker.phase.holds_slot:
            self.screen.say(
                Span(f"Your edits are in the workspace of {worker.worker}. ", TEXT), _KEPT
            )

    async def _open_copy(self, inside: Sequence[str], path: str, worker: str) -> None:
        copy, problem = await open_copy(inside, path)
        if problem:
            self.refuse("edit_all", problem)
        else:
            self.screen.say(Span(f"a copy of {worker} is open, in ", TEXT), copy)

    def do_check(self) -> None:
        worker = self.here()
        self.screen.say(Span(f"checking {worker.worker} merged with its target", TEXT))
        seen = identity_of(worker)
        self.screen.begin(partial(self._check, self.run_id, worker.worker, seen))

    async def _check(self, run: str, worker: str, seen: Seen) -> None:
        found = await self.session.bridge.check(run, worker, seen)
        self.session.look()
        if isinstance(found, str):
            self.refuse("check", found)
            return
        role = Role.DONE if found.passed else Role.FAILED
        said = str(verdict_of(found, is_stale=False, has_claimed=False) or "check failed")
        summary = found.summary.strip().split("\n")[-1] if found.summary else ""
        mark = "✓ " if found.passed else "✗ "
        tree = (found.tree or "")[:7]
        self.screen.say(Span(mark, Ink(role)), Span(f"{worker}: {said} {tree}. ", TEXT), summary)

    def do_publish(self) -> None:
        run, worker = self.session.run, self.here()
        target = run.target if run and run.target else "its target"
        said = f"Push {worker.branch} in your name, and open a pull request into {target}?"
        tree = identity_of(worker).tree
        seen = ("--seen", tree) if tree else ()
        ask = partial(
            run_program,
            self.screen,
            "pull request ",
            "pr",
            "--run",
            self.run_id,
            *seen,
            worker.worker,
        )
        self.screen.ask_first("publish", words(Span(said, TEXT)), partial(self.screen.begin, ask))

    def do_diff(self) -> None:
        self.screen.go("diff")

    def do_copy(self) -> None:
        worker = self.here()
        self.screen.copy(worker.last_lines[-1] if worker.last_lines else "")
        if worker.questions:  # many a finger means yes with this key
            yes, no = (Span(self.screen.key_of(idea), KEY) for idea in ("yes", "no"))
            self.screen.say("copied its last line; ", yes, " allows what it asks, ", no, " denies")

    def do_copy_name(self) -> None:
        worker = self.here()
        self.screen.copy(worker.branch or worker.worker)
