"""Let an agent explain what candidates do differently: asked first, marked as its words."""

from functools import partial
from typing import NamedTuple

from engine.messages.commands import Seen
from engine.messages.explaining import Explained, Explainer, letter_of
from tui.ink import BOLD, MUTED, TEXT, Ink, Role, Row, Span, words
from tui.kit.meters import heading
from tui.kit.screen import Board, Controller
from tui.screens.compare.candidates import Candidates
from tui.words.cutting import wrap
from tui.words.figures import cost, lasting, some

_WIDEST = 100
_NOBODY = (
    "this run's manifest names no agent to ask; name one for later runs: "
    "`review: {assist: {agent: NAME}}`"
)


class _About(NamedTuple):
    """The candidates of an explanation, and the change of each."""

    run: str
    step: str
    seen: dict[str, Seen]


class Explaining(Controller):
    """Ask the agent of `review.assist` about the candidates, stop it, and show what it said."""

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self.is_shown = False
        self._said: Explained | None = None
        self._of: _About | None = None
        self._asked: set[tuple[str, str]] = set()

    @property
    def _about(self) -> _About | None:
        """Return what an explanation would be about now."""
        table = self._candidates.pane.table
        return _About(table.run, table.step, self._candidates.of_table) if table else None

    @property
    def _is_asking(self) -> bool:
        """Say if these candidates are being asked about, by this console or another one."""
        about, one = self._about, self._explainer
        return bool((about and about[:2] in self._asked) or (one and one.is_asking))

    @property
    def _candidates(self) -> Candidates:
        return self.screen.does(Candidates)

    @property
    def _explainer(self) -> Explainer | None:
        table = self._candidates.pane.table
        return table.explainer if table else None

    def why_not(self, idea: str) -> str:
        if idea != "explain":
            return ""
        table, one = self._candidates.pane.table, self._explainer
        if table is None:
            return "there are no candidates"
        if self._has_words and not self.is_shown:
            return ""
        if one is None:
            return _NOBODY
        if len(self._candidates.pane.rows) < 2:  # noqa: PLR2004 - one alone does nothing differently
            return "there is no other candidate"
        return "" if self._is_asking else one.spent

    @property
    def _has_words(self) -> bool:
        """An agent has explained these candidates, in this state or an earlier one."""
        about = self._about
        return bool(self._said and self._of and about and self._of[:2] == about[:2])

    def label_of(self, idea: str, label: str) -> str:
        return "stop asking" if idea == "explain" and self._is_asking else label

    def do_explain(self) -> None:
        """Stop the question that is under way, show what was said, or ask first and then ask."""
        one = self._explainer
        if self._is_asking:
            self.screen.begin(self._stop, group="stop explaining")
        elif self._has_words and not self.is_shown:
            self._show()
        elif one is not None:
            self.screen.ask_first("explain", self._question(one), self._begin)

    def _show(self) -> None:
        self.is_shown, self._candidates.pair = True, None

    def _question(self, one: Explainer) -> Row:
        usd = "" if one.usd is None else f"${one.usd:.2f}, "
        left = f"{some(one.requests, 'question')} left"
        return words(
            Span(f"Ask {one.by} how they differ? ", TEXT),
            f"At most {usd}{lasting(one.seconds)}; {left}.",
        )

    def _begin(self) -> None:
        about, one = self._about, self._explainer
        if about is None or one is None:
            return
        key = self.screen.key_of("explain")
        self._asked.add(about[:2])
        self.screen.say(
            Span("… ", Ink(Role.RUNNING)), Span(f"asking {one.by}; ", TEXT), f"{key} stops it"
        )
        self.screen.begin(partial(self._ask, about), group="outcome")

    async def _ask(self, about: _About) -> None:
        try:
            found = await self.session.bridge.explain(about.run, about.step)
        finally:
            self._asked.discard(about[:2])
        self._candidates.load_anew()
        front = self.screen.app.screen
        here = front if isinstance(front, Board) else self.screen
        key = self.screen.key_of("explain")
        if isinstance(found, str):
            here.say_refused(key, found)
        elif found.is_stopped:
            here.say("the question was stopped; nothing was answered")
        else:
            self._said, self._of = found, about
            if here is self.screen:
                self._show()
            told = "" if here is self.screen else f"; {key} in Compare shows it"
            here.say(
                Span("✓ ", Ink(Role.DONE)), Span(f"{found.by} explained the candidates", TEXT), told
            )

    async def _stop(self) -> None:
        table = self._candidates.pane.table
        if table is not None:
            found = await self.session.bridge.explain(table.run, table.step, stops=True)
            if isinstance(found, str):
                self.refuse("explain", found)

    def rows(self, cells: int) -> list[Row]:
        """Return the words of the agent, marked as such."""
        said = self._said
        if said is None:
            return []
        cells = min(cells, _WIDEST)
        price = "cost not reported" if said.usd is None else cost(said.usd)
        note = f"{said.by}, {lasting(said.seconds)}, {price}"
        rows: list[Row] = [heading("AN AGENT'S WORDS", cells, Role.WAITING, note=note)]
        rows.append((Span("They decide nothing, and nobody has checked them.", BOLD),))
        if self._of != self._about:
            stale = "A candidate has changed since."
            rows.append((Span(stale, Ink(Role.LIMIT, bold=True)),))
        if said.read < said.places:
            part = f"It could read {said.read} of {some(said.places, 'place')} that changed."
            rows.append((Span(part, Ink(Role.LIMIT, bold=True)),))
        rows.append((Span(self._letters(), MUTED),))
        rows.append(())
        rows += [(Span(line, TEXT),) for line in wrap(said.text, cells)]
        leave, key = self.screen.key_of("leave"), self.screen.key_of("explain")
        further = words(f"{leave} closes, {key} asks again")
        return [(Span(" "), *row) for row in (*rows, (), further)]

    def _letters(self) -> str:
        """Return who the letters are that the agent was given."""
        names = [row.worker.rpartition("/")[2] for row in self._candidates.pane.rows]
        return ", ".join(f"{letter_of(at)} is {name}" for at, name in enumerate(names))
