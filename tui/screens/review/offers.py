"""Conflicts under review: what is to be decided, and what can be chosen for it.

A view comes in as the engine sent it, and stays beside its cleaned twin: what is drawn is clean,
what is sent back names paths and texts with the bytes they really have.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.merge import combine, owned
from engine.messages.commands import (
    ChooseHunk,
    ChooseMode,
    ChoosePlace,
    ChooseWhole,
    Regenerate,
    ResolutionAction,
    WriteHunk,
)
from tui.words.clean import clean_code, clean_code_block, clean_name, clean_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.api import ConflictFileView, ConflictView, HunkView, LineView, ProposalView


class What(StrEnum):
    """Name the kind of thing that is to be decided."""

    HUNK = "hunk"
    WHOLE = "whole"
    MODE = "mode"
    PLACE = "place"
    EDITED = "edited"
    MERGED = "merged"


class Matter(NamedTuple):
    """One thing to decide: a hunk, a whole path, its mode, or its place.

    What git merged by itself is looked at like the rest, and is never open; its `file` counts on
    behind the conflicted ones.
    """

    what: What
    file: int
    hunk: int
    is_open: bool
    decided: str
    """The word of what was chosen; empty while it is open."""


class Offer(NamedTuple):
    """One thing that can be chosen. `idea` is the key's idea, empty for what has no key."""

    idea: str
    label: str
    note: str
    action: ResolutionAction
    text: str | None = None
    """The lines that it makes of a hunk; None where it is no text."""
    is_likely: bool = False
    remembered: str = ""
    reason: str = ""
    """The reason why it cannot be chosen here; empty where it can."""
    is_ahead: bool = False
    """Nobody asked for it: it never comes under the cursor by itself."""


SIDES = (
    ("take_target", "target"),
    ("take_incoming", "incoming"),
    ("take_both", "both"),
    ("take_both_reversed", "both_reversed"),
    ("merge", "combined"),
    ("take_base", "base"),
    ("no", "neither"),
)
"""The ideas of the sides, and the engine's words for them."""
PLACES = ("take_first", "take_second", "take_third")
"""The ideas of the first offers that have no key of their own: proposals, and odd whole choices."""
LETTERS = {
    "target": "t",
    "incoming": "i",
    "both": "b",
    "both_reversed": "B",
    "combined": "m",
    "base": "g",
    "neither": "x",
    "own": "e",
    "lines": "v",
    "delete": "x",
    "union": "b",
}
"""The letter for the map of each choice."""
_WHOLE_IDEAS = {
    "target": "take_target",
    "incoming": "take_incoming",
    "base": "take_base",
    "both": "take_both",
    "union": "take_both",
    "merged": "merge",
    "merged, in the target's style": "merge",
    "delete": "no",
}
_RULES = {
    "alike": "the same on both sides",
    "remembered": "as you chose before",
    "likewise": "as just before",
    "asked": "as the agent proposes",
    "assisted": "as the assistant proposes",
    "renamed": "one side's edit, the other's names",
    "whitespace": "without the change of whitespace",
    "contained": "the side that includes the other",
    "newer": "the newer version",
    "superseded": "the side that changes more",
    "list": "both sides' items",
    "words": "both, word by word",
    "adjacent": "both, side by side",
    "both": "both, one after the other",
    "union": "both, shared lines once",
    "favoured": "one side",
    "formatted": "both, as the formatter writes them",
}


def rule_words(rule: str) -> str:
    """Return the name of a proposal that came from a rule."""
    return _RULES.get(rule, rule)


def shown_view(view: ConflictView) -> ConflictView:
    """The view fit to be shown, but for the files: of them only paths and kinds are.

    A review may have thousands of hunks, and is made anew after every key: what is inside a file
    becomes fit to be shown when it is looked at (`shown_file`).
    """
    files = tuple(
        replace(file, path=clean_code_block(file.path), kind=clean_code_block(file.kind))
        for file in view.files
    )
    bare = replace(view, files=(), looked_at=None)
    return replace(clean_tree(bare, clean_code_block), files=files)


def shown_file(file: ConflictFileView) -> ConflictFileView:
    """One file with every text fit to be shown, its pieces as lines without their ends.

    Marks are moved along with what grew before them. Only then may it be drawn.
    """
    pieces = tuple(
        replace(
            clean_tree(replace(piece, lines=(), old=()), clean_code_block),
            lines=tuple(map(_shown_line, piece.lines)),
            old=tuple(map(_shown_line, piece.old)),
        )
        for piece in file.pieces
    )
    bare = clean_tree(replace(file, hunks=(), pieces=(), change=(), text=None), clean_code_block)
    change = tuple(map(_line, file.change))
    return replace(bare, hunks=tuple(map(_hunk, file.hunks)), pieces=pieces, change=change)


def _hunk(hunk: HunkView) -> HunkView:
    bare = replace(hunk, target=(), incoming=(), base=(), before=(), after=())
    return replace(
        clean_tree(bare, clean_code_block),
        target=tuple(map(_line, hunk.target)),
        incoming=tuple(map(_line, hunk.incoming)),
        base=tuple(map(_shown_line, hunk.base)),
        before=tuple(map(_shown_line, hunk.before)),
        after=tuple(map(_shown_line, hunk.after)),
    )


def _shown_line(text: str) -> str:
    return clean_code(text.removesuffix("\n"))


def _line(line: LineView) -> LineView:
    bare = line.text.removesuffix("\n")
    shown = clean_code(bare)
    marks = tuple(
        (len(clean_code(bare[:start])), len(clean_code(bare[:end]))) for start, end in line.marks
    )
    return replace(line, text=shown, marks=tuple((a, b) for a, b in marks if a < b))


def key_ideas(offers: Sequence[Offer]) -> list[str]:
    """Return the idea of each offer's key: its own, or that of its place; else none.

    What nobody asked for is counted last: it arrives while somebody reads, and takes no key of what
    is read.
    """
    places = iter(PLACES)
    late = {at for at, offer in enumerate(offers) if offer.is_ahead}
    found = {at: one.idea or next(places, "") for at, one in enumerate(offers) if at not in late}
    found |= {at: offers[at].idea or next(places, "") for at in sorted(late)}
    return [found[at] for at in range(len(offers))]


def lines_of(text: str) -> tuple[str, ...]:
    """A text as lines without their ends; none for an empty text."""
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def side_text(lines: tuple[LineView, ...]) -> str:
    """The text of a side, from its lines against the base (with their ends)."""
    return "".join(line.text for line in lines if line.sign != "-")


def matters_of(view: ConflictView) -> list[Matter]:
    """Everything to decide, in the order of the files."""
    found: list[Matter] = []
    for index, file in enumerate(view.files):
        found += _matters(index, file)
    first = len(view.files)
    found += [
        Matter(What.MERGED, first + at, -1, is_open=False, decided="merged")
        for at in range(len(view.merged))
    ]
    return found


def _matters(index: int, file: ConflictFileView) -> list[Matter]:
    if file.is_stale:
        return [_matter(What.WHOLE, index, None)]
    if file.is_edited:
        decided = "made" if file.made_by else "own"
        return [Matter(What.EDITED, index, -1, is_open=False, decided=decided)]
    found: list[Matter] = []
    is_untouched = all(hunk.choice is None for hunk in file.hunks)
    if file.needs_whole or file.whole or (file.regenerate and is_untouched):
        found.append(_matter(What.WHOLE, index, file.whole))
    else:
        found += [
            Matter(What.HUNK, index, place, is_open=hunk.choice is None, decided=hunk.choice or "")
            for place, hunk in enumerate(file.hunks)
        ]
    if file.needs_mode:
        found.append(_matter(What.MODE, index, file.mode))
    if file.needs_place:
        found.append(_matter(What.PLACE, index, file.place))
    return found or [_matter(What.WHOLE, index, file.whole)]


def _matter(what: What, index: int, decided: str | None) -> Matter:
    return Matter(what, index, -1, is_open=decided is None, decided=decided or "")


def offers_of(raw: ConflictView, matter: Matter) -> list[Offer]:
    """Return what can be chosen: proposals first, then what has a key of its own."""
    if matter.what is What.MERGED:
        merged = raw.merged[matter.file - len(raw.files)]
        return _made(raw, merged.path, merged.regenerate)
    file = raw.files[matter.file]
    match matter.what:
        case What.HUNK:
            return _hunk_offers(raw, file, file.hunks[matter.hunk])
        case What.WHOLE:
            return [*_anew(raw, file), *_whole_offers(file)]
        case What.EDITED:
            return _anew(raw, file)
        case What.MODE:
            return _mode_offers(raw, file)
        case What.PLACE:
            return _place_offers(raw, file)
        case _:
            return []


def _hunk_offers(raw: ConflictView, file: ConflictFileView, hunk: HunkView) -> list[Offer]:
    target, incoming = side_text(hunk.target), side_text(hunk.incoming)
    versions = ("".join(hunk.base), target, incoming)
    words = combine(*(text.encode(errors="surrogateescape") for text in versions))
    combined = None if words is None else words.decode(errors="surrogateescape")
    texts: dict[str, str | None] = {
        "target": target,
        "incoming": incoming,
        "both": target + incoming,
        "both_reversed": incoming + target,
        "combined": combined,
        "base": "".join(hunk.base),
        "neither": "",
    }
    labels = {
        "target": owned(raw.target),
        "incoming": owned(raw.incoming),
        "both": f"both, {raw.target} first",
        "both_reversed": f"both, {raw.incoming} first",
        "combined": "both, word by word",
        "base": "as it was before both",
        "neither": "neither of them",
    }
    sides = [
        Offer(
            idea,
            labels[choice],
            "",
            ChooseHunk(path=file.path, hunk=hunk.key, choice=choice),
            texts[choice],
            reason="" if texts[choice] is not None else "both sides changed the same words",
        )
        for idea, choice in SIDES
    ]
    offered = (_proposal(file, hunk, proposal) for proposal in hunk.proposals)
    return [*offered, *sides, *_anew(raw, file)]


def _anew(raw: ConflictView, file: ConflictFileView) -> list[Offer]:
    """Return the offer to make a conflicted file anew, if the manifest names its command."""
    is_wanted = file.is_stale or not file.is_edited
    return _made(raw, file.path, file.regenerate, is_stale=file.is_stale, is_wanted=is_wanted)


def _made(
    raw: ConflictView, path: str, command: str, *, is_stale: bool = False, is_wanted: bool = False
) -> list[Offer]:
    """Return the offer to make a file by a command; it waits until everything else is decided."""
    if not command:
        return []
    open_ = [one.path for one in raw.files if not (one.is_resolved or one.regenerate)]
    why = f"it needs the other files, and {clean_name(open_[0])} is still open" if open_ else ""
    where = "runs in the sandbox, on the rest of the result; only this file is taken"
    said = f"other files have changed since it was made; {where}" if is_stale else where
    return [
        Offer(
            "regenerate",
            f"regenerate it: {clean_code(command)}",
            why or said,
            Regenerate(path=path),
            is_likely=is_wanted and not why,
            reason=why,
        )
    ]


def _proposal(file: ConflictFileView, hunk: HunkView, proposal: ProposalView) -> Offer:
    action: ResolutionAction
    if proposal.same_as:
        action = ChooseHunk(path=file.path, hunk=hunk.key, choice=proposal.same_as)
    else:
        action = WriteHunk(path=file.path, hunk=hunk.key, text=proposal.text, source=proposal.rule)
    return Offer(
        "",
        rule_words(proposal.rule),
        proposal.reason,
        action,
        proposal.text,
        is_likely=proposal.likely,
        remembered=proposal.remembered or "",
        is_ahead=proposal.rule == "assisted",
    )


def _whole_offers(file: ConflictFileView) -> list[Offer]:
    found: list[Offer] = []
    taken: set[str] = set()
    for option in file.options:
        idea = _WHOLE_IDEAS.get(option.choice, "")
        idea = "" if idea in taken else idea
        taken.add(idea)
        action = ChooseWhole(path=file.path, choice=option.choice)
        found.append(Offer(idea, option.label, option.effect, action))
    return found


def _mode_offers(raw: ConflictView, file: ConflictFileView) -> list[Offer]:
    sides = (
        ("take_target", raw.target, file.target_mode),
        ("take_incoming", raw.incoming, file.incoming_mode),
    )
    return [
        Offer(
            idea,
            "executable" if mode == "100755" else "not executable",
            f"{mode}, as {name} has it",
            ChooseMode(path=file.path, mode=mode),
        )
        for idea, name, mode in sides
        if mode is not None
    ]


def _place_offers(raw: ConflictView, file: ConflictFileView) -> list[Offer]:
    sides = (
        ("take_target", "target", f"{file.target_path}", f"as {raw.target} named it"),
        ("take_incoming", "incoming", f"{file.incoming_path}", f"as {raw.incoming} named it"),
        ("take_both", "both", "both names", "the same text is in two places"),
    )
    return [
        Offer(idea, label, note, ChoosePlace(path=file.path, place=place))
        for idea, place, label, note in sides
    ]
