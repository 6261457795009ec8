"""A landing that met uncommitted edits of the user's: where they are, and the ways on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.messages.commands import Edits
from engine.phases import Phase
from tui.ink import BOLD, KEY, MUTED, TEXT, Ink, Role, Row, Span, blank, clickable, fit, words
from tui.kit.meters import heading
from tui.words.clean import clean_name
from tui.words.cutting import cut_path, wrap
from tui.words.figures import some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.messages.results import WorkerView

_MOST_FILES = 8
_NO_CARRY = "They cannot be kept on top: they conflict with the change in these files."


class Way(NamedTuple):
    """One way on. `idea` is its key's idea; no `edits` means onto another branch."""

    idea: str
    edits: Edits | None
    label: str
    effect: str


_WAYS = (
    Way(
        "take_both",
        Edits.CARRY,
        "carry them",
        "the change lands; your edits stay on top, uncommitted as before",
    ),
    Way(
        "take_target",
        Edits.COMMIT,
        "commit them",
        "your edits become your commit first, and the change lands on top of it",
    ),
    Way(
        "pause",
        Edits.WAIT,
        "wait for me",
        "the change lands once you have committed, stashed or undone your edits",
    ),
    Way(
        "take_incoming",
        None,
        "other branch",
        "the change lands on a branch you name; your files and edits stay as they are",
    ),
)
_NO_MORE = Way("pause", None, "stop waiting", "the change waits for review again")


def is_blocked(worker: WorkerView | None) -> bool:
    """Say whether edits of the user's keep its change from landing."""
    phases = {Phase.REVIEWING, Phase.LANDING}
    return worker is not None and bool(worker.in_the_way) and worker.phase in phases


def ways_of(worker: WorkerView | None) -> Sequence[Way]:
    """List what can be done now; nothing where no edits are in the way."""
    if worker is None or not is_blocked(worker):
        return ()
    if worker.phase is Phase.LANDING:
        return (_NO_MORE,)
    return tuple(way for way in _WAYS if not (worker.is_carry_refused and way.edits is Edits.CARRY))


def blocked_page(worker: WorkerView, keys: Mapping[str, str], cells: int) -> list[Row]:
    """The files, and each way on with its key and what it does."""
    paths = worker.in_the_way
    cells -= 2
    title = heading("YOUR EDITS ARE IN THE WAY", cells, Role.LIMIT, figure=str(len(paths)))
    rows: list[Row] = [(), title]
    rows += [
        words("  ", Span(cut_path(clean_name(path), cells - 4), TEXT))
        for path in paths[:_MOST_FILES]
    ]
    if len(paths) > _MOST_FILES:
        rows.append(words(f"  and {some(len(paths) - _MOST_FILES, 'file')} more"))
    if worker.is_carry_refused:
        rows.append(())
        rows += [(Span("  "), Span(text, Ink(Role.FAILED))) for text in wrap(_NO_CARRY, cells - 4)]
    rows += [(), heading("HOW TO GO ON", cells)]
    for way in ways_of(worker):
        said = [words("  ", Span(f"{keys.get(way.idea, ''):<4}", KEY), Span(way.label, BOLD))]
        said += [(Span("      "), Span(text, MUTED)) for text in wrap(way.effect, cells - 8)]
        rows += [clickable(row, f"key:{way.idea}") for row in said]
    return [(blank(1), *row) for row in rows]


def blocked_subject(worker: WorkerView, target: str, cells: int) -> Row:
    """Whose change cannot land where, and why."""
    mark = Span(" ▲ ", Ink(Role.LIMIT, bold=True))
    why = f"   {some(len(worker.in_the_way), 'file')} of yours in the way"
    return fit(words(mark, Span(worker.worker, BOLD), f" → {target}", why), cells)


def blocked_sentence(worker: WorkerView) -> Row:
    """Return what is true of it."""
    mark = Span("▲ ", Ink(Role.LIMIT, bold=True))
    if worker.phase is Phase.LANDING:
        return words(mark, Span("It waits until your edits are out of the way. ", TEXT))
    return words(mark, Span("Nothing was written, and your edits are as you left them.", TEXT))
