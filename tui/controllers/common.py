"""What works alike on every screen: going elsewhere, palette, help, themes, undo, leaving."""

from functools import partial
from typing import ClassVar

import anyio

from engine.messages.commands import Pause, Resume, SetCap, StopRun
from engine.messages.results import WorkerView
from tui.ink import TEXT, Ink, Role, Span, words
from tui.keys import PLAYING, actions_on, shown
from tui.keys.groups import GROUPS
from tui.kit.dialogs import Choice, HelpEntry, HelpPage
from tui.kit.outside import edit_text
from tui.kit.screen import Board, Writing
from tui.kit.session import Undoable
from tui.words.clean import clean_block
from tui.words.figures import some
from tui.words.looks import look_of
from tui.words.standing import in_order, step_of, title_of

_FOLLOWS = frozenset({"fleet", "plan", "runs"})
"""The screens of a run as a whole: a later run may take the place of one that has ended there."""
_HIDDEN = frozenset({"leave", "down", "up", "left", "right"})


class CommonScreen(Board):
    """A screen with everything that no screen does differently."""

    home: ClassVar[str] = "fleet"

    # Going.

    def go(self, screen: str) -> None:
        """Go to another screen; keys typed meanwhile are for that one."""
        self.begin(partial(self._switch, screen), holds=True)

    async def _switch(self, screen: str) -> None:
        self.session.hold_run(is_held=screen not in _FOLLOWS)
        await self.app.switch_mode(screen)

    def do_go_fleet(self) -> None:
        self.go("fleet")

    def do_go_worker(self) -> None:
        self.go("worker")

    def do_go_diff(self) -> None:
        self.go("diff")

    def do_go_compare(self) -> None:
        self.go("compare")

    def do_go_review(self) -> None:
        self.go("review")

    def do_merge(self) -> None:
        self.go("review")

    def do_go_inbox(self) -> None:
        self.go("inbox")

    def do_go_plan(self) -> None:
        self.go("plan")

    def do_go_runs(self) -> None:
        self.go("runs")

    def do_back(self) -> None:
        if self.session.is_alone:
            self.app.exit()
        else:
            self.go(self.home)

    def do_leave(self) -> None:
        """Escape: one thing after another, and never out of the console."""
        self.session.marks.clear()

    def do_next_worker(self) -> None:
        self._worker_by(1)

    def do_previous_worker(self) -> None:
        self._worker_by(-1)

    def _worker_by(self, by: int) -> None:
        run, here = self.session.run, self.session.worker_view
        if run is None or not run.workers:
            return
        names = [worker.worker for worker in run.workers]
        self.point_at(names[(names.index(here.worker) + by) % len(names)] if here else names[0])

    def point_at(self, worker: str) -> None:
        """Put the cursor on a worker."""
        self.session.worker = worker

    # Leaving.

    def do_quit(self) -> None:
        self.leave_dialog()

    def do_quit_now(self) -> None:
        self.app.exit()

    def do_to_shell(self) -> None:
        self.app.action_suspend_process()

    def do_redraw(self) -> None:
        self.app.refresh(layout=True)

    def box_editor_wanted(self) -> None:
        self.begin_outside(self._edit_text)

    async def _edit_text(self) -> None:
        text, problem = await edit_text(self.app, self.textbox.text)
        if problem:
            self.say_refused("ctrl+g", problem)
        self.textbox.text = (
            text.removesuffix("\n") if self.textbox.is_code else clean_block(text).rstrip()
        )
        self.set_focus(self.textbox)

    # Finding.

    def do_palette(self) -> None:
        """Every action of this screen with its key; those that cannot be done now come last."""
        choices = []
        for action in actions_on(self.kind):
            if action.idea in _HIDDEN or not action.told:
                continue
            key = self.session.keymap.shown(action.id)
            reason = self.refusal(action.idea)
            choices.append(Choice(action.idea, action.told, key=key, reason=reason))
        choices.sort(key=lambda choice: bool(choice.reason))
        self.choose("All commands", choices, self.perform)

    def do_help(self) -> None:
        """The keys of this screen; a grey one says why."""
        entries = []
        for action in actions_on(self.kind):
            keys = " ".join(shown(key) for key in self.session.keymap.of(action.id))
            if not keys or not action.told:
                continue
            reason = self.refusal(action.idea)
            group = "NOT NOW" if reason else GROUPS.get(action.idea, "THIS SCREEN")
            said = (action.label or action.told) if reason else action.told
            entries.append(HelpEntry(group, keys, said, reason, f"{action.label} {action.told}"))
        if self.session.player:
            entries += [
                HelpEntry("THE REPLAY", " ".join(map(shown, idea.keys)), idea.meaning)
                for idea in PLAYING
            ]
        order = [
            "THE REPLAY",
            "MOVE",
            "THIS WORKER",
            "THE RUN",
            "THIS SCREEN",
            "SCREENS",
            "CONSOLE",
            "NOT NOW",
        ]
        entries.sort(key=lambda entry: order.index(entry.group))
        page = HelpPage(self.kind.capitalize(), entries, self.session.ahead)
        self.open(page, lambda _: None)

    def do_search(self) -> None:
        """Where nothing else can be searched: the workers, by name."""
        self.do_pick()

    def do_pick(self) -> None:
        """A worker by name."""
        run = self.session.run
        workers = in_order(run) if run else []
        choices = [self._worker_choice(worker) for worker in workers]
        self.choose("Workers", choices, self._picked_worker, hint="type a name")

    def _worker_choice(self, worker: WorkerView) -> Choice:
        run = self.session.run
        look = look_of(worker)
        name = title_of(worker, step_of(run, worker)) if run else worker.worker
        return Choice(worker.worker, name, look.word.lower(), key=look.glyph)

    def _picked_worker(self, worker: str) -> None:
        self.point_at(worker)

    def do_show_theme(self) -> None:
        choices = [
            Choice(name, name, theme.description) for name, theme in self.session.themes.items()
        ]
        self.choose("Themes", choices, self._wear)

    def _wear(self, theme: str) -> None:
        self.app.theme = theme

    def do_show_keys(self) -> None:
        self.say(Span(f"Your key file is {self.session.key_file or 'not set'}.", TEXT))

    # Other commands of ours.

    def do_export(self) -> None:
        run = self.session.run
        if run is None:
            self.say_refused("export", "there is no run")
        else:
            self.begin(partial(self._program, "the run is written into ", "export", run.run))

    async def _program(self, said: str, *words: str) -> None:
        """Run a sub-command beside the console; what it writes is told, or why it failed."""
        program = self.session.program
        if program is None:
            self.say_refused(words[0], f"`plait {' '.join(words)}` does it in a shell")
            return
        done = await anyio.run_process(program(*words), check=False)
        heard = done.stderr if done.returncode else done.stdout
        lines = clean_block(heard.decode(errors="replace")).strip().split("\n")
        if done.returncode:
            self.say_refused(words[0], lines[0].removesuffix("."))
        else:
            self.say(Span("✓ ", Ink(Role.DONE)), Span(said, TEXT), lines[-1])

    # Undoing.

    def do_undo(self) -> None:
        landing = next(iter(self.session.landing), "")
        if landing:
            hint = "it can be taken back once it has landed"
            self.say_refused(self._key("undo"), f"{landing} is landing", hint)
        elif not self.session.done:
            self.say_refused(self._key("undo"), "there is nothing to undo")
        elif self.session.done[-1].asks:
            last = self.session.done[-1]
            self.ask_first("undo", words(Span(last.asks, TEXT)), partial(self._undo, last))
        else:
            self._undo(self.session.done[-1])

    def _undo(self, last: Undoable) -> None:
        """Take the newest thing back; it says itself what came of that where it asked first."""
        if last in self.session.done:
            self.session.done.remove(last)
        if not last.asks:
            self.say(Span(f"undone: {last.said}", TEXT))
        last.undo()
        if last.redo is not None:
            self.session.undone.append(last)

    def do_redo(self) -> None:
        if not self.session.undone:
            self.say_refused(self._key("redo"), "nothing was undone")
            return
        last = self.session.undone.pop()
        if last.redo is not None:
            last.redo()
        self.session.done.append(last)
        self.say(Span(f"done again: {last.said}", TEXT))

    # The run.

    def do_pause_run(self) -> None:
        run = self.session.run
        if run is None:
            self.say_refused(self._key("pause_run"), "there is no run")
            return
        pause, resume = Pause(run=run.run), Resume(run=run.run)
        first, then = (resume, pause) if run.is_paused else (pause, resume)
        said = "the run goes on" if run.is_paused else "the run is paused: nothing new begins"

        def remember() -> None:
            self.session.remember(
                Undoable(said, lambda: self.send(then, "undone"), lambda: self.send(first, said))
            )

        self.send(first, said, remember)

    def do_no_wide(self) -> None:
        run = self.session.run
        if run is None or run.ended_at is not None:
            self.say_refused(self._key("no_wide"), "no run is going on")
            return
        live = sum(not worker.phase.is_settled for worker in run.workers)
        ending = "ends; its" if live == 1 else "end; their"
        said = words(Span(f"Stop the run? {some(live, 'worker')} {ending} work is kept.", TEXT))
        self.ask_first("no_wide", said, lambda: self.send(StopRun(run=run.run), "stopping the run"))

    def do_cap(self) -> None:
        run = self.session.run
        if run is None:
            self.say_refused("cap", "there is no run")
            return
        note = f"a number; now {run.cap}"
        self.write(Writing("slots at once", note, self._set_cap, key="cap"))

    def _set_cap(self, text: str) -> None:
        run = self.session.run
        if run is None or not text.isascii() or not text.isdigit() or int(text) < 1:
            self.say_refused("cap", f"{text!r} is no number of slots")
            return
        before, cap = run.cap, int(text)
        said = f"{some(cap, 'worker')} may hold a slot"

        def remember() -> None:
            undo = SetCap(run=run.run, cap=before)
            self.session.remember(
                Undoable(
                    said,
                    lambda: self.send(undo, f"{some(before, 'worker')} may hold a slot"),
                    lambda: self.send(SetCap(run=run.run, cap=cap), said),
                )
            )

        self.send(SetCap(run=run.run, cap=cap), said, remember)
