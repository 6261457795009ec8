"""Show the terminal of an agent that has one, and let a human take it over."""

from functools import partial

from tui.ink import KEY, TEXT, Row, Span, words
from tui.kit.screen import Board, Controller
from tui.terminals.agent_screen import AgentScreen
from tui.terminals.view import TerminalView
from tui.words.clean import clean_tree

SCREEN = "screen"


class TakeOver(Controller):
    """The terminal of the agent under the cursor."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._of: tuple[str, str, int] | None = None
        self._seen: AgentScreen | None = None
        self._told: tuple[Row, ...] = ()

    @property
    def view(self) -> TerminalView:
        """The pane."""
        return self.screen.query_one(f"#{SCREEN}", TerminalView)

    @property
    def is_there(self) -> bool:
        """The agent under the cursor draws on a terminal of its own."""
        worker = self.session.worker_view
        return worker is not None and worker.has_screen

    @property
    def is_entered(self) -> bool:
        """Keys are for the agent."""
        return self.screen.focused is self.view

    def why_not(self, idea: str) -> str:
        worker = self.session.worker_view
        if idea == "take_over" and worker is not None and not worker.has_screen:
            key = self.screen.key_of("steer")
            return f"{worker.agent or 'its agent'} has no terminal; {key} sends it a message"
        return ""

    def do_take_over(self) -> None:
        """Let keys be for the agent; its terminal takes the size of the pane."""
        self.session.tab = SCREEN
        self.screen.draw()
        self.enter()

    def enter(self) -> None:
        """Let keys be for the agent, where it hears them."""
        if self._seen is None or not self.here().has_screen:
            return
        self.view.resizes = True
        self.view.fit()
        self.screen.set_focus(self.view)

    def leave(self) -> None:
        """Give the terminal back to the agent."""
        if self.is_entered:
            self.screen.set_focus(None)
            self.view.resizes = False

    def do_detach(self) -> None:
        self.leave()
        self.screen.say(
            Span("The terminal is the agent's again. ", TEXT),
            Span(self.screen.key_of("take_over"), KEY),
            " takes it over again.",
        )

    def draw(self) -> None:
        """Show the terminal of the worker under the cursor."""
        worker = self.session.worker_view
        of = (self.run_id, worker.worker, worker.attempt) if worker and worker.has_screen else None
        if of != self._of:
            self._drop()
            self._of = of
            if of is not None:
                self._seen = AgentScreen(self.session.bridge, *of[:2], self._changed)
                self.screen.begin(partial(self._seen.look, self._is_seen), group=SCREEN)
        shown = self._seen
        if shown is not None and shown.is_known and not shown.is_live:
            self.leave()
        self.view.resizes = self.is_entered
        problem = clean_tree(shown.problem) if shown else "its agent has no terminal of its own"
        self.view.instead = [(), words(Span(f" {problem}", TEXT))]
        self.view.show_program(shown if shown and not shown.problem else None)

    def _changed(self) -> None:
        """Draw what is new; where it began, ended or was lost, everything that says so."""
        state = self.state()
        if state != self._told:
            self._told = state
            self.screen.draw()
        self.view.changed()

    def _is_seen(self) -> bool:
        return self.session.tab == SCREEN and self.screen.is_current

    def _drop(self) -> None:
        self.leave()
        if self._seen is not None:
            self._seen.drop()
        self._of = self._seen = None

    def state(self) -> tuple[Row, ...]:
        """Return what the row of tabs says of the terminal."""
        if self._seen is None or self._seen.problem or not self._seen.is_known:
            return ()
        if not self._seen.is_live:
            return (words(Span("its last screen ", TEXT)),)
        if self.is_entered:
            key = Span(self.screen.key_of("detach"), KEY)
            return (words("you type, ", key, " gives it back "), words(key, " gives back "))
        key = Span(self.screen.key_of("take_over"), KEY)
        return (
            words("the agent's own terminal, ", key, " takes it over "),
            words(key, " take over "),
        )
