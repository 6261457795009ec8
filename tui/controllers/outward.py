"""Out of the console and into a worker's tree: a shell, an editor, its check; and copying.

What belongs to a terminal runs inside the worker's sandbox: an agent's files may do to an editor
or a shell what they like. An editor with windows of its own cannot; it gets a copy.
"""

from collections.abc import Sequence
from functools import partial

from engine.messages.commands import Seen
from engine.messages.results import StepView, WorkerView, verdict_of
from engine.phases import Phase
from tui.controllers.common import CommonScreen
from tui.ink import TEXT, Ink, Role, Span, words
from tui.kit.outside import editor_words, has_windows, open_copy, run_in_terminal
from tui.kit.session import identity_of

_GOES_OUT = frozenset({"terminal", "edit", "edit_all"})
_NO_TREE = frozenset({Phase.WAITING, Phase.QUEUED, Phase.SKIPPED})
_KEPT = "its change is what was collected before."
_CHECKED = frozenset({Phase.REVIEWING, Phase.CONFLICTED})


class OutwardScreen(CommonScreen):
    """A screen from which a worker's tree can be entered."""

    @property
    def run_id(self) -> str:
        """The run that commands are for."""
        run = self.session.run
        return run.run if run else ""

    def _here(self) -> WorkerView:
        worker = self.session.worker_view
        if worker is None:
            raise LookupError("no worker is under the cursor")  # `why_not` has refused before
        return worker

    def why_not_out(self, idea: str, worker: WorkerView, step: StepView) -> str:
        """Why a worker's tree cannot be entered or checked now."""
        phase = worker.phase.lower().replace("_", " ")
        if idea in _GOES_OUT and self.session.shell is None:
            return f"no shell from here; `plait shell {worker.worker}` opens one"
        if idea in _GOES_OUT and worker.phase in _NO_TREE:
            return f"there is no tree of it; it is {phase}"
        if idea == "publish" and not worker.branch:
            return "it has no branch"
        if idea == "check" and step.check is None:
            return f"{step.name} has no check"
        if idea == "check" and worker.phase not in _CHECKED:
            return f"only finished work is checked; it is {phase}"
        return ""

    # A shell, an editor.

    def do_terminal(self) -> None:
        shell, worker = self.session.shell, self._here()
        if shell is not None:
            self.begin_outside(partial(self._go_out, shell(self.run_id, worker.worker), "terminal"))

    def place_here(self) -> tuple[str, int]:
        """The file and line that `edit` means, relative to the tree; nothing for all of it."""
        return "", 0

    def do_edit(self) -> None:
        path, line = self.place_here()
        if path:
            self._edit(path, line, "edit")
        else:
            self.say_refused(self._key("edit"), "there is no file under the cursor")

    def do_edit_all(self) -> None:
        self._edit(self.place_here()[0] if self.kind == "diff" else "", 0, "edit_all")

    def _edit(self, path: str, line: int, idea: str) -> None:
        shell, worker = self.session.shell, self._here()
        if shell is None:
            return
        inside = [*shell(self.run_id, worker.worker), "--"]
        if has_windows():
            self.begin(partial(self._open_copy, inside, path, worker.worker))
        else:
            self.begin_outside(partial(self._go_out, [*inside, *editor_words(path, line)], idea))

    async def _go_out(self, argv: Sequence[str], idea: str) -> None:
        problem = await run_in_terminal(self.app, argv)
        worker = self.session.worker_view
        if problem:
            self.say_refused(self._key(idea), problem)
        elif worker and not worker.phase.holds_slot:
            self.say(Span(f"What you did lies in the workspace of {worker.worker}; ", TEXT), _KEPT)

    async def _open_copy(self, inside: Sequence[str], path: str, worker: str) -> None:
        copy, problem = await open_copy(inside, path)
        if problem:
            self.say_refused(self._key("edit_all"), problem)
        else:
            self.say(Span(f"a copy of {worker} is open, in ", TEXT), copy)

    # The check.

    def do_check(self) -> None:
        worker = self._here()
        self.say(Span(f"checking {worker.worker} merged with its target", TEXT))
        seen = identity_of(worker)
        self.begin(partial(self._check, self.run_id, worker.worker, seen))

    async def _check(self, run: str, worker: str, seen: Seen) -> None:
        found = await self.session.bridge.check(run, worker, seen)
        self.session.look()
        if isinstance(found, str):
            self.say_refused(self._key("check"), found)
            return
        role = Role.DONE if found.passed else Role.FAILED
        said = str(verdict_of(found, is_stale=False, has_claimed=False) or "check failed")
        summary = found.summary.strip().split("\n")[-1] if found.summary else ""
        mark = "✓ " if found.passed else "✗ "
        tree = (found.tree or "")[:7]
        self.say(Span(mark, Ink(role)), Span(f"{worker}: {said} {tree}  ", TEXT), summary)

    # A pull request.

    def do_publish(self) -> None:
        run, worker = self.session.run, self._here()
        target = run.target if run and run.target else "its target"
        said = f"Push {worker.branch} as you, and ask that it be merged into {target}?"
        tree = identity_of(worker).tree
        seen = ("--seen", tree) if tree else ()
        ask = partial(
            self._program, "pull request ", "pr", "--run", self.run_id, *seen, worker.worker
        )
        self.ask_first("publish", words(Span(said, TEXT)), partial(self.begin, ask))

    # Looking.

    def do_diff(self) -> None:
        self.go("diff")

    def do_copy(self) -> None:
        worker = self._here()
        self.copy(worker.last_lines[-1] if worker.last_lines else "")

    def do_copy_name(self) -> None:
        worker = self._here()
        self.copy(worker.branch or worker.worker)

    def copy(self, text: str) -> None:
        """Put a text into the terminal's clipboard."""
        self.app.copy_to_clipboard(text)
        self.say(Span("copied: ", TEXT), text)
