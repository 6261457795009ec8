"""A conflict as one card: both sides against the base, what can be chosen, what comes of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from tui.ink import (
    BOLD,
    KEY,
    MUTED,
    TEXT,
    Ink,
    Role,
    Row,
    Span,
    blank,
    clickable,
    cut_row,
    fit,
    row_width,
    spread,
    words,
)
from tui.kit.frames import framed
from tui.kit.meters import heading
from tui.screens.review.around import in_result
from tui.screens.review.model import BLANK, ReviewPane
from tui.screens.review.offers import What, rule_words
from tui.screens.review.rows import (
    beside_rows,
    first_lines,
    offer_rows,
    own_lines,
    result_rows,
    side_head,
    side_rows,
    since,
)
from tui.words.cutting import cut_end, cut_path, wrap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.api import ConflictFileView, HunkView

_ROOMY = 28
_LEAST_OFFERS = 3
_MOST_OFFERS = 9
_LEAST_RESULT = 4
_MOST_LINES = 60
_LEAST_HEADING = 8
CHOSEN = {
    "target": "the target's side",
    "incoming": "the incoming side",
    "both": "both, target first",
    "both_reversed": "both, incoming first",
    "combined": "both, word by word",
    "base": "as it was before both",
    "neither": "neither side",
    "own": "own text",
    "lines": "single lines",
}


class Look(NamedTuple):
    """Say how the card is to be drawn, and how wide columns were dragged, by their names."""

    keys: Mapping[str, str]
    context: int = 3
    scroll: int = 0
    is_side_to_side: bool = False
    widths: Mapping[str, int] = MappingProxyType({})


def card(pane: ReviewPane, look: Look, cells: int, height: int) -> list[Row]:
    """Return what is looked at, within so many rows."""
    matter, file, view = pane.matter, pane.file, pane.shown
    if matter is None or file is None or view is None:
        return []
    is_roomy = height >= _ROOMY
    gap: list[Row] = [()] if is_roomy else []
    rows = [_title(pane, file, cells), *gap]
    hunk = pane.hunk
    if hunk is None:
        rows += _whole(pane, look, cells, height - len(rows))
        return [cut_row(row, cells) for row in rows[:height]]
    offers = min(len(pane.offers), _MOST_OFFERS if is_roomy else _LEAST_OFFERS + 1)
    fixed = len(rows) + 2 + offers + 1 + _LEAST_RESULT + 3 * len(gap) + pane.picking
    sides = _sides(pane, hunk, look, cells=cells, room=(height - fixed) // 2)
    for part in sides:
        rows += [*part, *gap]
    left = height - len(rows) - 2 - len(gap) - _LEAST_RESULT
    offers = max(min(offers, left), 1)
    rows += [_offers_head(pane, cells), *offer_rows(pane, cells, offers, look.keys), *gap]
    rows += _result(pane, hunk, look, cells=cells, height=height - len(rows))
    return [cut_row(row, cells) for row in rows[:height]]


def _title(pane: ReviewPane, file: ConflictFileView, cells: int) -> Row:
    matter = pane.matter
    same = [m for m in pane.matters if matter and m.file == matter.file]
    place = same.index(matter) + 1 if matter else 0
    is_open = bool(matter and matter.is_open)
    mark = Span("≠ ", Ink(Role.CLASH, bold=True)) if is_open else Span("✓ ", Ink(Role.ACCENT))
    what = "conflict" if matter and matter.what is What.HUNK else file.kind
    name = f"{what} {place} of {len(same)}"
    heading_ = f"  {pane.hunk.where}" if pane.hunk and pane.hunk.where else ""
    where = f"{cut_path(file.path, cells // 2)}{f':{pane.hunk.line}' if pane.hunk else ''}"
    said = "" if is_open or not matter else f"   {_chosen(pane)}"
    room = cells - row_width(words(name, said, where)) - 4
    heading_ = cut_end(heading_, room) if room > _LEAST_HEADING else ""
    left = (mark, Span(name, BOLD), Span(heading_, MUTED), Span(said, Ink(Role.ACCENT)))
    return spread(left, words(where), cells)


def _chosen(pane: ReviewPane) -> str:
    matter, hunk = pane.matter, pane.hunk
    if matter is None:
        return ""
    if matter.decided == "made" and pane.file:
        return f"made by: {pane.file.made_by}"
    if hunk and hunk.source:
        return f"chosen: {rule_words(hunk.source)}"
    return f"chosen: {CHOSEN.get(matter.decided, matter.decided)}"


def _sides(
    pane: ReviewPane, hunk: HunkView, look: Look, *, cells: int, room: int
) -> list[list[Row]]:
    """Both sides with their heads, each cut to its share of the room."""
    view, file = pane.shown, pane.file
    if view is None or file is None:
        return []
    parts: list[list[Row]] = []
    lengths = [len(hunk.target), len(hunk.incoming)]
    room = max(room, 2)
    picks = picked_marks(pane)
    for at, (name, idea, lines) in enumerate(
        ((view.target, "take_target", hunk.target), (view.incoming, "take_incoming", hunk.incoming))
    ):
        said = since(pane, is_target=not at, cells=cells - row_width(words(name)) - 6)
        said = "against the other side" if look.is_side_to_side else said
        if not any(line.sign != "-" for line in lines):
            said = "removed these lines"
        head = side_head(look.keys.get(idea, ""), name, said, cells, is_target=not at)
        spare = max(room - lengths[1 - at], 0)
        start = pane.line - at * len(hunk.target) if pane.picking else 0
        length = len(own_lines(lines)) if look.is_side_to_side else len(lines)
        top, count = _window(length, room + spare, start)
        if look.is_side_to_side:
            sides = (own_lines(hunk.target), own_lines(hunk.incoming))
            body = beside_rows(file.path, sides[at][:count], sides[1 - at], cells, is_target=not at)
        else:
            marks = {place - top: mark for place, mark in picks[at].items()}
            some = lines[top : top + count]
            body = side_rows(file.path, some, cells, scroll=look.scroll, picked=marks)
            body = pickable_rows(pane, body, at * len(hunk.target) + top)
        parts.append([head, *body, *_more(length - count, look)])
    parts[-1] += blank_row(pane, cells)
    return parts


def _window(count: int, room: int, line: int) -> tuple[int, int]:
    """Return the lines to draw where there is no room for all: those round a line."""
    if count <= room:
        return 0, count
    return max(min(line - room // 2, count - room + 1), 0), room - 1


def _more(left_out: int, look: Look) -> list[Row]:
    """A word on lines that are left out."""
    if left_out <= 0:
        return []
    row = words(f"     {left_out} more lines  ", Span(look.keys.get("open", ""), KEY), " shows all")
    return [clickable(row, "do:open")]


def pickable_rows(pane: ReviewPane, rows: list[Row], first: int) -> list[Row]:
    """Return a side's rows, each of which can be clicked while lines are picked."""
    if not pane.picking:
        return rows
    return [clickable(row, f"line:{place}") for place, row in enumerate(rows, first)]


def blank_row(pane: ReviewPane, cells: int) -> list[Row]:
    """Return the row of the empty line, while lines are picked."""
    if not pane.picking:
        return []
    place, count = len(pane.pickable()) - 1, pane.picked.count(BLANK)
    lead = ("▌" if pane.line == place else " ") + ("■" if count else " ")
    said = f"   an empty line{f', taken {count} times' if count > 1 else ''}"
    return [clickable(fit((Span(lead, KEY), Span(said, MUTED)), cells), f"line:{place}")]


def picked_marks(pane: ReviewPane) -> tuple[dict[int, str], dict[int, str]]:
    """The marks of picked lines, and of the line under the cursor, for each side."""
    hunk = pane.hunk
    if hunk is None or not pane.picking:
        return {}, {}
    marks: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for at, (line, _) in enumerate(pane.pickable()):
        side, place = (0, at) if at < len(hunk.target) else (1, at - len(hunk.target))
        mark = "■" if line in pane.picked else " "
        marks[side][place] = ("▌" if at == pane.line else " ") + mark
    return marks


def _offers_head(pane: ReviewPane, cells: int) -> Row:
    if pane.picking:
        return heading("LINES", cells, Role.ACCENT, figure=str(len(pane.picked)), note="picked")
    offered = sum(not offer.idea for offer in pane.offers)
    note = (
        "most likely first; none is taken automatically"
        if offered
        else "no proposal is likely right"
    )
    return heading("PROPOSALS", cells, figure=str(offered), note=note)


def result_title(pane: ReviewPane, look: Look) -> tuple[Row, Row]:
    """Title the result's frame: what it is the result of, and whether it counts yet."""
    matter, offer = pane.matter, pane.offer
    if pane.picking:
        key = Span(look.keys.get("select", ""), KEY._replace(does="key:select"))
        return words(Span("RESULT", BOLD), " of these lines, taken with ", key), words("picking")
    if offer is not None and offer.text is not None:
        idea = offer.idea or "mark"
        key = Span(look.keys.get(idea, ""), KEY._replace(does=f"key:{idea}"))
        name = words(Span("RESULT", BOLD), " if you press ", key)
    else:
        name = words(Span("RESULT", BOLD))
    if matter is not None and matter.is_open:
        return name, (Span("still open", Ink(Role.CLASH)),)
    return name, (Span(_chosen(pane), Ink(Role.ACCENT)),)


def _result(pane: ReviewPane, hunk: HunkView, look: Look, *, cells: int, height: int) -> list[Row]:
    file = pane.file
    if file is None or height < 2:  # noqa: PLR2004 - a heading and one line
        return []
    inner, text = cells - 4, pane.preview()
    hunk = in_result(file.hunks, pane.matter.hunk) if pane.matter else hunk
    some = first_lines(text, height)
    rows = result_rows(file.path, hunk, some, inner, context=look.context, scroll=look.scroll)
    title, ending = result_title(pane, look)
    if height >= len(rows) + 2 or height > _LEAST_RESULT:
        size = (cells, min(height, len(rows) + 2))
        seen = _in_sight(rows, hunk, look, text=text, room=height - 2)
        return framed(seen, size, title=title, ending=ending)
    return [
        spread(title, ending, cells),
        *_in_sight(rows, hunk, look, text=text, room=height - 1),
    ]


def _in_sight(
    rows: list[Row], hunk: HunkView, look: Look, *, text: str | None, room: int
) -> list[Row]:
    """The rows of a result for which there is room: what it is comes before what is round it."""
    before, after = min(look.context, len(hunk.before)), min(look.context, len(hunk.after))
    middle = len(rows) - before - after
    top = max(min(before, before + middle - room), 0)
    left_out = (text or "").count("\n") + 1 - room if middle > room else 0
    seen = rows[top : top + room]
    return [*seen[:-1], *_more(left_out, look)] if left_out > 0 else seen


def _whole(pane: ReviewPane, look: Look, cells: int, height: int) -> list[Row]:
    """A path that is decided as a whole: who did what, what each choice would do."""
    view, file = pane.shown, pane.file
    if view is None or file is None:
        return []
    gap: list[Row] = [()] if height >= _ROOMY - 4 else []
    rows: list[Row] = []
    for at, (name, idea) in enumerate(
        ((view.target, "take_target"), (view.incoming, "take_incoming"))
    ):
        verb, role, rest = did(file, is_target=not at)
        head = side_head(look.keys.get(idea, ""), name, "", cells, is_target=not at)
        head = head[:3] if head else head
        rows += [
            fit((*head, Span(f" {verb}", Ink(role, bold=True)), Span(f" {rest}", TEXT)), cells)
        ]
        rows += gap
    rows.append(heading("CHOOSE", cells, figure=str(len(pane.offers))))
    evidence = _evidence(pane, cells, gap)
    full = _choices(pane, look, cells, is_full=True)
    has_room = len(rows) + len(full) + len(evidence) <= height
    rows += full if has_room else _choices(pane, look, cells, is_full=False)
    rows += evidence
    return rows[:height]


def _choices(pane: ReviewPane, look: Look, cells: int, *, is_full: bool) -> list[Row]:
    """Every choice, with all of what it would do: of each one, or of the one at the cursor."""
    rows: list[Row] = []
    drawn = offer_rows(pane, cells, len(pane.offers), look.keys, has_notes=not is_full)
    for index, (row, offer) in enumerate(zip(drawn, pane.offers, strict=True)):
        rows.append(row)
        if offer.note and (is_full or offer is pane.offer):
            noted = [(blank(6), Span(text, MUTED)) for text in wrap(offer.note, cells - 8, 3)]
            rows += [clickable(row, f"offer:{index}") for row in noted]
    if not rows:
        rows.append(
            words("  you wrote its text; ", Span(look.keys.get("undo", ""), KEY), " undoes that")
        )
    return rows


_PLAIN = "100644"
_TYPES = {
    "120000": "a link",
    "160000": "a submodule",
    "100755": "an executable file",
    "100644": "a file",
}


def did(file: ConflictFileView, *, is_target: bool) -> tuple[str, Role, str]:
    """Return what a side did to the path: the verb, its color, and the rest."""
    path = file.target_path if is_target else file.incoming_path
    mode = file.target_mode if is_target else file.incoming_mode
    if path is None:
        if file.kind == "directory/file":
            return "has", Role.ADDED, "a folder there"
        return ("deleted", Role.REMOVED, "it") if file.base_path else ("has", Role.MUTED, "none")
    kind = _TYPES.get(mode or "", "a file")
    if file.base_path is None:
        return "added", Role.ADDED, f"it as {path}, {kind} ({mode})"
    if path != file.base_path:
        return "moved", Role.ADDED, f"it to {path}"
    if file.kind == "mode":
        return "made", Role.ADDED, f"it {mode}"
    if mode == _PLAIN:
        return "changed", Role.ADDED, "it"
    return "changed", Role.ADDED, f"it, {kind} ({mode})"


def _evidence(pane: ReviewPane, cells: int, gap: list[Row]) -> list[Row]:
    """Say what was chosen, and what is known about the path on all three sides."""
    view, file = pane.shown, pane.file
    if view is None or file is None:
        return []
    rows: list[Row] = [*gap]
    if pane.matter and not pane.matter.is_open:
        chosen = Ink(Role.ACCENT)
        rows += [(Span("✓ ", chosen), Span(_chosen(pane), chosen)), *gap]
    changed = _changed(pane, cells)
    rows += [*changed, *gap] if changed else []
    rows.append(heading("EVIDENCE", cells))
    sides = (
        ("base", file.base_path, ""),
        (view.target, file.target_path, file.target_mode or ""),
        (view.incoming, file.incoming_path, file.incoming_mode or ""),
    )
    width = min(max(len(name) for name, _, _ in sides), cells // 3)
    for name, path, mode in sides:
        said = Span(path, TEXT) if path else Span("no such file", MUTED)
        named = fit((Span(cut_end(name, width), MUTED),), width)
        rows.append((blank(2), *named, blank(2), said, Span(f"  {mode}", MUTED)))
    return rows


def _changed(pane: ReviewPane, cells: int) -> list[Row]:
    """Show what the side that kept the file did to it, line by line."""
    view, file = pane.shown, pane.file
    if view is None or file is None or not file.change:
        return []
    name = view.incoming if file.target_path is None else view.target
    note = f"{file.made_by}, against {view.target}" if file.made_by else f"on {name}"
    shown = file.change[:_MOST_LINES]
    rows: list[Row] = [heading("CHANGE", cells, note=note)]
    for row, line, last in zip(
        side_rows(file.path, shown, cells, picked={}), shown, (None, *shown), strict=False
    ):
        if last is not None and line.sign != "-" != last.sign and line.at > last.at + 1:
            rows.append(words("     ⋮"))
        rows.append(row)
    return rows
