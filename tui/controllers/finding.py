"""Find things by name: commands, keys, workers, themes."""

from engine.messages.results import RunView, WorkerView
from tui.ink import TEXT, Span
from tui.keys import IDEAS, PLAYING, actions_on, shown
from tui.keys.groups import GROUPS
from tui.kit.dialogs import Choice, HelpEntry, HelpPage
from tui.kit.screen import Controller
from tui.words.attention import moved_since
from tui.words.clean import clean
from tui.words.figures import age
from tui.words.looks import look_of
from tui.words.said import now_text
from tui.words.standing import in_order, step_of, title_of, waits_since

_MOST_SAID = 60
_HIDDEN = frozenset({"leave", "down", "up", "left", "right"})


class Finding(Controller):
    """Open the lists that are narrowed by typing."""

    def do_palette(self) -> None:
        """Every action of this screen with its key; those that cannot be done now come last."""
        choices = []
        for action in actions_on(self.screen.kind):
            if action.idea in _HIDDEN or not action.told:
                continue
            key = self.session.keymap.shown(action.id)
            reason = self.screen.refusal(action.idea)
            also = f"{self.screen.label_of(action.idea)} {IDEAS[action.idea].meaning}"
            choices.append(Choice(action.idea, action.told, key=key, reason=reason, also=also))
        choices.sort(key=lambda choice: bool(choice.reason))
        self.screen.choose("All commands", choices, self.screen.perform)

    def do_help(self) -> None:
        """The keys of this screen; a gray one says why."""
        entries = []
        for action in actions_on(self.screen.kind):
            keys = " ".join(shown(key) for key in self.session.keymap.of(action.id))
            if not keys or not action.told:
                continue
            reason = self.screen.refusal(action.idea)
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
        page = HelpPage(self.screen.kind.capitalize(), entries, self.session.ahead)
        self.screen.open(page, lambda _: None)

    def why_not(self, idea: str) -> str:
        if idea != "since_left":
            return ""
        if self.session.left_at is None:
            return "this is your first console here: there is nothing to compare with"
        moved = moved_since(self.session.view, self.session.left_at)
        return "" if moved else "nothing has happened since you left"

    def do_since_left(self) -> None:
        """List whom something has come of since the console before this one was left."""
        view, left_at = self.session.view, self.session.left_at or 0.0
        moved = moved_since(view, left_at)
        choices = [self._moved_choice(run, worker, view.at) for run, worker in moved]
        title = f"Since you left, {age(view.at - left_at)}"
        self.screen.choose(title, choices, self._go_to, hint="enter goes there")

    def _moved_choice(self, run: RunView, worker: WorkerView, now: float) -> Choice:
        look, step = look_of(worker), step_of(run, worker)
        said = now_text(worker, step, now, _MOST_SAID)
        parts = (look.word.lower(), said, age(now - waits_since(worker)))
        note = "  ".join(filter(None, map(clean, parts)))
        target = f"{run.run}/{worker.worker}"
        return Choice(target, title_of(worker, step), note, key=look.glyph)

    def _go_to(self, target: str) -> None:
        run, _, worker = target.partition("/")
        if run != self.run_id:
            self.session.open_run(run)
        self.screen.point_at(worker)
        self.screen.go("worker")

    def do_search(self) -> None:
        """Search the workers by name, where nothing else can be searched."""
        self.do_pick()

    def do_pick(self) -> None:
        """A worker by name."""
        run = self.session.run
        workers = in_order(run) if run else []
        choices = [self._worker_choice(worker) for worker in workers]
        self.screen.choose("Workers", choices, self.screen.point_at, hint="type a name")

    def _worker_choice(self, worker: WorkerView) -> Choice:
        run = self.session.run
        look = look_of(worker)
        name = title_of(worker, step_of(run, worker)) if run else worker.worker
        return Choice(worker.worker, name, look.word.lower(), key=look.glyph)

    def do_show_theme(self) -> None:
        choices = [
            Choice(name, name, theme.description) for name, theme in self.session.themes.items()
        ]
        self.screen.choose("Themes", choices, self._wear)

    def _wear(self, theme: str) -> None:
        self.screen.app.theme = theme

    def do_show_keys(self) -> None:
        self.screen.say(Span(f"Your key file is {self.session.key_file or 'not set'}.", TEXT))
