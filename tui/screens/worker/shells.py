"""Open shells inside the sandboxes of workers, one for each, and show them in a pane."""

from functools import partial

from engine.messages.questions import EnterSandbox
from engine.messages.results import Entrance
from tui.bridge import GONE
from tui.ink import BOLD, KEY, TEXT, Row, Span, words
from tui.kit.screen import Board, Controller
from tui.terminals.shell import Shell, shell_words
from tui.terminals.view import TerminalView
from tui.words.clean import clean, clean_tree

SHELL = "shell"
_LEAST_ROWS, _LEAST_COLUMNS = 2, 20


class Shells(Controller):
    """The shells of this console. One goes on when its worker is not looked at."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._open: dict[tuple[str, str], Shell] = {}
        self._opening: set[tuple[str, str]] = set()
        self._came_from = "log"

    @property
    def view(self) -> TerminalView:
        """The pane."""
        return self.screen.query_one(f"#{SHELL}", TerminalView)

    @property
    def is_entered(self) -> bool:
        """Keys are for the shell."""
        return self.screen.focused is self.view

    @property
    def is_there(self) -> bool:
        """The worker under the cursor has a shell."""
        return self.shell_here() is not None

    def shell_here(self) -> Shell | None:
        """Return the shell of the worker under the cursor."""
        worker = self.session.worker_view
        return self._open.get((self.run_id, worker.worker)) if worker else None

    # What keys do.

    def do_terminal(self) -> None:
        """Open a shell, or go back to the one that is open."""
        if self.session.tab != SHELL:
            self._came_from, self.session.tab = self.session.tab, SHELL
        of = (self.run_id, self.here().worker)
        shell = self._open.get(of)
        if of in self._opening:
            return
        if shell is not None and not shell.ended:
            self.screen.draw()  # a pane that is not seen takes no keys
            self.enter()
        else:
            self._opening.add(of)
            self.screen.begin(partial(self._open_one, of), holds=True)

    def do_detach(self) -> None:
        self.leave()
        self.screen.say(
            Span("The shell keeps running. ", TEXT),
            Span(self.screen.key_of("terminal"), KEY),
            " goes back to it; exit in it or ",
            Span(self.screen.key_of("end_shell"), KEY),
            " ends it.",
        )

    def why_not(self, idea: str) -> str:
        shell = self.shell_here()
        if idea == "end_shell" and (shell is None or shell.ended):
            return f"no shell is open here; {self.screen.key_of('terminal')} opens one"
        return ""

    def do_end_shell(self) -> None:
        """Ask first, then end the shell that is open now."""
        shell, worker = self.shell_here(), self.here().worker
        if shell is not None:
            said = words(
                Span("End the shell of ", TEXT),
                Span(worker, BOLD),
                Span("? What runs in it is killed.", TEXT),
            )
            self.screen.ask_first("end_shell", said, shell.end)

    def enter(self) -> None:
        """Let keys be for the shell."""
        shell = self.shell_here()
        if shell is not None and not shell.ended:
            self.screen.set_focus(self.view)

    def leave(self) -> None:
        """Let keys be for the console."""
        if self.is_entered:
            self.screen.set_focus(None)

    # Living.

    async def _open_one(self, of: tuple[str, str]) -> None:
        """Open a shell and enter it; keys typed meanwhile are for the shell."""
        try:
            entrance = await self.session.bridge.port.ask(EnterSandbox(*of))
        except GONE as error:
            self.session.tab = self._came_from
            self.refuse("terminal", clean_tree(str(error)), clean_tree(getattr(error, "hint", "")))
            return
        finally:
            self._opening.discard(of)
        view = self.view
        rows, columns = max(view.size.height, _LEAST_ROWS), max(view.cells, _LEAST_COLUMNS)
        shell = Shell(view.changed, rows=rows, columns=columns, told=partial(self._told, of[1]))
        self._open[of] = shell
        if entrance.note:
            self.screen.say(Span(entrance.note, TEXT))
        if self._is_here(of):
            self.draw()
            self.enter()
        self.screen.draw()
        self.screen.begin(partial(self._run, of, shell, entrance), group=SHELL)

    async def _run(self, of: tuple[str, str], shell: Shell, entrance: Entrance) -> None:
        try:
            await shell.run(entrance, shell_words())
        finally:
            self._ended(of, shell)

    def _told(self, worker: str, text: str) -> None:
        """Say what a program in the shell wants its user to know."""
        self.screen.say(Span(f"In the shell of {worker}: ", TEXT), clean(text))
        self.screen.draw()

    def _is_here(self, of: tuple[str, str]) -> bool:
        return self.session.tab == SHELL and self.shell_here() is self._open.get(of)

    def _ended(self, of: tuple[str, str], shell: Shell) -> None:
        """Go back to where the shell was opened; one that failed stays to be read."""
        if self._is_here(of):
            self.leave()
            if shell.is_well:
                self.session.tab = self._came_from
        if shell.is_well and self._open.get(of) is shell:
            del self._open[of]
        self.screen.say(Span(f"The shell of {of[1]} {shell.ended}.", TEXT))

    # Drawing.

    def draw(self) -> None:
        """Show the shell of the worker under the cursor."""
        view, shell = self.view, self.shell_here()
        key = Span(self.screen.key_of("terminal"), KEY)
        view.instead = [(), words(" ", key, " opens a shell inside its sandbox here.")]
        view.show_program(shell)
        if shell is None or shell.ended:
            self.leave()

    def state(self) -> tuple[Row, ...]:
        """Return what the row of tabs says of the shell."""
        shell = self.shell_here()
        if shell is None:
            return ()
        if shell.ended:
            return (words(Span(shell.ended, TEXT), " "),)
        if not self.is_entered:
            return (words(Span(self.screen.key_of("terminal"), KEY), " types into it "),)
        key = Span(self.screen.key_of("detach"), KEY)
        return (words("keys go to the shell, ", key, " leaves it "), words(key, " leaves it "))
