"""Show what reaches a worker: its home, its folder for temporary files, names of variables."""

from collections.abc import Sequence

from engine.limits import Dimension, Level
from engine.messages.questions import EnterSandbox
from engine.messages.results import Entrance, WorkerView
from tui.bridge import GONE
from tui.ink import TEXT, Row, Span, words
from tui.kit.meters import heading
from tui.kit.screen import Board
from tui.screens.worker.tab import Shown, Tab
from tui.words.clean import clean, clean_tree
from tui.words.cutting import wrap
from tui.words.looks import LEVELS

_SHOWN = ("HOME", "TMPDIR", "PWD")
"""The variables whose values are folders: no other value is ever kept, for it may be a secret."""


class Environment(Tab):
    """The variables in its sandbox, by their names alone, and what holds it in."""

    name, title = "environment", "Env"

    def __init__(self, screen: Board) -> None:
        super().__init__(screen)
        self._of: tuple[str, str, int] | None = None
        self._names: Sequence[str] = ()
        self._folders: dict[str, str] = {}
        self._problem = ""

    def do_go_environment(self) -> None:
        self.session.tab = self.name

    def draw(self, of: Shown) -> list[Row]:
        """Return the rows; ask for what another worker gets when it is first seen."""
        wanted = (self.run_id, of.worker.worker, of.worker.attempt)
        if wanted != self._of:
            self._of, self._names, self._folders, self._problem = wanted, (), {}, "asking …"
            self.screen.begin(self._ask, group="environment", exclusive=True)
        rows: list[Row] = [(), _heading("SANDBOX", of.cells), *_walls(of.worker)]
        rows += _held(of.worker, of.cells)
        rows += [(), _heading("FOLDERS", of.cells)]
        rows += [
            words(f" {'' if at else name:<9}", Span(part, TEXT))
            for name, folder in self._folders.items()
            for at, part in enumerate(wrap(folder, of.cells - 11))
        ]
        rows += [(), _heading("VARIABLES", of.cells, str(len(self._names) or ""))]
        if self._problem:
            return [*rows, words(f" {self._problem}")]
        said = "Only names, because values may be secrets. The agent's login is added to these."
        names = wrap(" ".join(self._names), of.cells - 2)
        return [*rows, words(f" {said}"), (), *((Span(f" {line}", TEXT),) for line in names)]

    async def _ask(self) -> None:
        wanted = self._of
        if wanted is None:
            return
        try:
            found = await self.session.bridge.port.ask(EnterSandbox(*wanted[:2]))
        except GONE as error:
            self._problem = f"not known: {clean_tree(str(error))}"
        else:
            self._keep(found)
        self.screen.draw()

    def _keep(self, found: Entrance) -> None:
        self._problem = ""
        self._names = sorted(clean(name) for name in found.env)
        known = {"PWD": found.folder} | found.env
        self._folders = {name: clean(known[name]) for name in _SHOWN if name in known}


def _heading(title: str, cells: int, figure: str = "") -> Row:
    return (Span(" "), *heading(title, cells - 2, figure=figure))


def _held(worker: WorkerView, cells: int) -> list[Row]:
    """Return which folders of the repository its worktree holds, if not all."""
    if worker.holds is None:
        return []
    folders = ", ".join(map(clean, worker.holds.folders)) or "only files at the top"
    lines = wrap(f"{worker.holds.held} of {worker.holds.of} folders: {folders}", cells - 11)
    return [
        words(f" {'' if at else 'holds':<9}", Span(line, TEXT)) for at, line in enumerate(lines)
    ]


def _walls(worker: WorkerView) -> list[Row]:
    """Return where it lives, if not here, and what holds files, git and the network, and how."""
    fences = {Dimension.FILES: "files", Dimension.GIT: "git", Dimension.NETWORK: "network"}
    rows = [
        words(f" {fences[held.dimension]:<9}", Span(f"{LEVELS[held.level][0]:<14}", TEXT), said)
        for held in worker.enforcement
        if held.dimension in fences
        for by in (f" by {held.mechanism}" if held.level is not Level.NONE else "",)
        for said in (f"{held.value}{by}".removeprefix(" by "),)
    ]
    site = [words(f" {'site':<9}", Span(clean(worker.site), TEXT))] if worker.site else []
    return [*site, *rows] or [words(" not known yet: it has not started")]
