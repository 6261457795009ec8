"""Act on the run as a whole."""

from functools import partial

import anyio

from engine.messages.asked import KeptAnswer
from engine.messages.commands import (
    Pause,
    Resume,
    RevokeAnswer,
    SetCap,
    StopRun,
)
from tui.ink import TEXT, Ink, Role, Span, words
from tui.kit.dialogs import Choice
from tui.kit.screen import Board, Controller
from tui.kit.session import Undoable
from tui.kit.textbox import Writing
from tui.words.clean import asked_line, clean, clean_block
from tui.words.figures import number_in, some


async def run_program(screen: Board, said: str, *words: str) -> None:
    """Run a sub-command beside the console; say what it writes, or why it failed."""
    program = screen.session.program
    if program is None:
        hint = f"`plait {' '.join(words)}` does it in a shell"
        screen.say_refused(words[0], "this console cannot start programs", hint)
        return
    done = await anyio.run_process(program(*words), check=False)
    heard = done.stderr if done.returncode else done.stdout
    lines = clean_block(heard.decode(errors="replace")).strip().split("\n")
    if done.returncode:
        screen.say_refused(words[0], lines[0].removesuffix("."))
    else:
        screen.say(Span("✓ ", Ink(Role.DONE)), Span(said, TEXT), lines[-1])


class Running(Controller):
    """Pause and stop the run, change its slots, export it."""

    def do_export(self) -> None:
        run = self.session.run
        if run is None:
            self.screen.say_refused("export", "there is no run")
        else:
            self.screen.begin(
                partial(run_program, self.screen, "the run is exported to ", "export", run.run)
            )

    def do_pause_run(self) -> None:
        run = self.session.run
        if run is None:
            self.refuse("pause_run", "there is no run")
            return
        pause, resume = Pause(run=run.run), Resume(run=run.run)
        first, then = (resume, pause) if run.is_paused else (pause, resume)
        said = "the run continues" if run.is_paused else "the run is paused: no new worker starts"

        def remember() -> None:
            self.session.remember(
                Undoable(
                    said,
                    lambda: self.screen.send(then, "undone"),
                    lambda: self.screen.send(first, said),
                    can_undo=partial(self._goes_on, run.run),
                )
            )

        self.screen.send(first, said, remember)

    def do_no_wide(self) -> None:
        run = self.session.run
        if run is None or run.ended_at is not None:
            self.refuse("no_wide", "no run is active")
            return
        live = sum(not worker.phase.is_settled for worker in run.workers)
        ending = "ends; its" if live == 1 else "end; their"
        said = words(Span(f"Stop the run? {some(live, 'worker')} {ending} work is kept.", TEXT))
        self.screen.ask_first(
            "no_wide", said, lambda: self.screen.send(StopRun(run=run.run), "stopping the run")
        )

    def do_rules(self) -> None:
        """List the answers that are kept for later questions; taking one revokes it."""
        run = self.session.run
        if run is None or not run.rules:
            self.screen.say_refused("rules", "this run has no saved answers")
            return
        choices = [
            Choice(str(rule.number), asked_of(rule), held_of(rule), key=str(rule.number))
            for rule in run.rules
        ]
        revoke = partial(self._revoke, run.run)
        self.screen.choose(
            "Saved answers", choices, revoke, hint="enter revokes the one under the cursor"
        )

    def _revoke(self, run: str, number: str) -> None:
        command = RevokeAnswer(number=int(number), run=run)
        self.screen.send(command, f"rule {number} is revoked: such requests come to you again")

    def do_cap(self) -> None:
        run = self.session.run
        if run is None:
            self.screen.say_refused("cap", "there is no run")
            return
        note = f"a number; currently {run.cap}"
        self.screen.write(Writing("slots at once", note, self._set_cap, key="cap"))

    def _set_cap(self, text: str) -> None:
        run = self.session.run
        cap = number_in(text)
        if run is None or not cap:
            self.screen.say_refused("cap", f"{text!r:.20} is not a number of slots")
            return
        before = run.cap
        said = f"up to {some(cap, 'worker')} at once"

        def remember() -> None:
            undo = SetCap(run=run.run, cap=before)
            self.session.remember(
                Undoable(
                    said,
                    lambda: self.screen.send(undo, f"up to {some(before, 'worker')} at once"),
                    lambda: self.screen.send(SetCap(run=run.run, cap=cap), said),
                    can_undo=partial(self._goes_on, run.run),
                )
            )

        self.screen.send(SetCap(run=run.run, cap=cap), said, remember)

    def _goes_on(self, name: str) -> bool:
        """Say if a run has not ended; nobody knows of one that is not shown."""
        return all(run.run != name or run.ended_at is None for run in self.session.view.runs)


def asked_of(rule: KeptAnswer) -> str:
    """Return what a kept answer answers: its pattern, else the whole question in one line."""
    return asked_line(rule.pattern or rule.asked)


def held_of(rule: KeptAnswer) -> str:
    """Return the answer, and for whom it is kept."""
    return clean(f"{rule.answer} for the {f'{rule.scope} {rule.where}'.strip()}")
