"""Go from screen to screen and from worker to worker, and leave the console."""

from engine.messages.commands import StopRun
from tui.ink import KEY, Span
from tui.kit.dialogs import LeaveDialog
from tui.kit.screen import Controller
from tui.words.ends import idea_of, no_further


class Going(Controller):
    """Lead to the other screens, the other workers, the shell."""

    def do_go_fleet(self) -> None:
        self.screen.go("fleet")

    def do_go_worker(self) -> None:
        self.screen.go("worker")

    def do_go_diff(self) -> None:
        self.screen.go("diff")

    def do_go_compare(self) -> None:
        self.screen.go("compare")

    def do_go_review(self) -> None:
        self.screen.go("review")

    def do_merge(self) -> None:
        self.screen.go("review")

    def do_go_inbox(self) -> None:
        self.screen.go("inbox")

    def do_go_plan(self) -> None:
        self.screen.go("plan")

    def do_go_runs(self) -> None:
        self.screen.go("runs")

    def do_go_stats(self) -> None:
        self.screen.go("stats")

    def do_back(self) -> None:
        if self.session.is_alone:
            self.screen.app.exit()
        else:
            self.screen.go(self.screen.home)

    def do_leave(self) -> None:
        """Escape: one thing after another, and never out of the console."""
        if not self.session.marks and self.screen.kind != "fleet":
            back = self.screen.key_of("back")
            self.screen.say("nothing is open here; ", Span(back, KEY), " goes back one screen")
        self.session.marks.clear()

    def by_worker(self, by: int) -> None:
        run, here = self.session.run, self.session.worker_view
        if run is None or not run.workers:
            return
        names = [worker.worker for worker in run.workers]
        if here and names == [here.worker]:
            reason = no_further("worker", by, names, here.worker)
            self.refuse(idea_of("worker", by), reason)
            return
        self.screen.point_at(
            names[(names.index(here.worker) + by) % len(names)] if here else names[0]
        )

    def do_quit(self) -> None:
        self.leave_dialog()

    def do_quit_now(self) -> None:
        self.screen.app.exit()

    def do_to_shell(self) -> None:
        self.screen.app.action_suspend_process()

    def do_redraw(self) -> None:
        self.screen.app.refresh(layout=True)

    def leave_dialog(self) -> None:
        """Leave at once where nothing lives, else ask what becomes of the workers."""
        live = self.session.live()
        if not live or not self.session.can_stay_alive:
            self.screen.app.exit()
            return
        can_stop = not self.session.is_read_only
        self.screen.open(LeaveDialog(live, self.session.ahead, can_stop=can_stop), self._left)

    def _left(self, answer: str) -> None:
        if answer == "l":
            self.screen.app.exit()
        else:
            self.screen.begin(self._stop_and_leave)

    async def _stop_and_leave(self) -> None:
        for run in self.session.view.runs:
            if run.ended_at is None:
                await self.session.bridge.command(StopRun(run=run.run))
        self.screen.app.exit()
