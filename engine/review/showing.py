"""Show conflicts and decisions as plain data for consoles, anew after every decision.

Texts are decoded as UTF-8, each other byte kept by `surrogateescape`, so that marks count in
characters and what an editor sends back is the same bytes.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.merge import (
    Choice,
    ConflictHunk,
    FileConflict,
    HunkKey,
    Lines,
    MarkedLine,
    OwnText,
    Proposal,
    Resolution,
    ResolutionSession,
    SingleLines,
    compare,
    options,
    split_lines,
    text_of,
)
from engine.merge.memory import memory_key
from engine.merge.text import is_binary
from engine.messages.merging import ConflictFileView, HunkView, LineView, OptionView, ProposalView
from engine.plan.model import ReviewRules
from engine.review.evidence import Evidence, piece_views

_BEGINS_WITH_NAME = re.compile(rb"[A-Za-z_$]")
_HEADING_WITHIN = 500
_LONGEST_HEADING = 80
_TWO = 2
_ROUND, _MOST_SHOWN = 3, 400

Proposer = Callable[[bytes, ConflictHunk], tuple[Proposal, ...]]


@dataclass(frozen=True, kw_only=True)
class Lens:
    """The context in which a session is shown, beyond its decisions.

    `stale` are files that were made for another result. `with_text` is the path of the file whose
    whole text is wanted. `kept` has each file as it was shown last, with all that it was shown
    from: a decision is about one file, and comparing words in a thousand hunks of others would take
    longer than the hand that decides.
    """

    propose: Proposer
    asking: Mapping[HunkKey, str] = field(default_factory=dict)
    problems: Mapping[HunkKey, str] = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    with_text: bytes | None = None
    rules: ReviewRules = field(default_factory=ReviewRules)
    stale: frozenset[bytes] = frozenset()
    kept: dict[bytes, tuple[object, ConflictFileView]] = field(default_factory=dict)


def file_views(session: ResolutionSession, lens: Lens) -> tuple[ConflictFileView, ...]:
    """Return every conflicted file, then those that were set by hand."""
    known = {conflict.path for conflict in session.conflicts}
    found = [_file_once(session, conflict, lens) for conflict in session.conflicts]
    found += [
        ConflictFileView(
            path=os.fsdecode(path),
            kind="edited",
            is_resolved=path not in lens.stale,
            is_edited=True,
            mode=own.mode,
            made_by=own.by,
            is_stale=path in lens.stale,
            regenerate=lens.rules.command_for(os.fsdecode(path)),
        )
        for path, decided in sorted(session.resolutions.items())
        if (own := decided.own) is not None and path not in known
    ]
    return tuple(found)


def _file_once(session: ResolutionSession, conflict: FileConflict, lens: Lens) -> ConflictFileView:
    """Return one file's view; reuse the last one unless something it shows changed."""
    path = conflict.path
    if path == lens.with_text:
        return _file(session, conflict, lens)
    said = tuple(
        (lens.propose(path, hunk), lens.asking.get(hunk.key), lens.problems.get(hunk.key))
        for hunk in conflict.open.hunks
    )
    state = (session.resolutions.get(path), said, path in lens.stale)
    before = lens.kept.get(path)
    if before is None or before[0] != state:
        before = lens.kept[path] = (state, _file(session, conflict, lens))
    return before[1]


def _file(session: ResolutionSession, conflict: FileConflict, lens: Lens) -> ConflictFileView:
    decided = session.resolutions.get(conflict.path)
    needs, is_whole = conflict.open, conflict.path == lens.with_text
    text = session.edit_text(conflict.path) if is_whole else None
    sides = (conflict.base, conflict.target, conflict.incoming)
    paths = [side.path if side else None for side in sides]
    pieces = session.preview(conflict.path) if is_whole else ()
    return ConflictFileView(
        path=os.fsdecode(conflict.path),
        kind=str(conflict.kind),
        is_resolved=session.is_file_resolved(conflict.path) and conflict.path not in lens.stale,
        open_hunks=len(session.open_hunks(conflict.path)),
        hunks=tuple(
            _hunk(conflict, hunk, decided.hunks.get(hunk.key) if decided else None, lens)
            for hunk in needs.hunks
        ),
        options=tuple(
            OptionView(choice=str(option.choice), label=option.label, effect=option.effect)
            for option in options(conflict)
        ),
        needs_whole=needs.whole,
        needs_mode=needs.mode,
        needs_place=needs.place,
        whole=str(decided.whole) if decided and decided.whole else None,
        mode=decided.mode if decided else None,
        place=str(decided.place) if decided and decided.place else None,
        is_edited=bool(decided and decided.own),
        regenerate=lens.rules.command_for(os.fsdecode(conflict.path)),
        made_by=decided.own.by if decided and decided.own else "",
        is_stale=conflict.path in lens.stale,
        text=shown(text) if text is not None else None,
        base_path=_path_of(paths[0]),
        target_path=_path_of(paths[1]),
        incoming_path=_path_of(paths[2]),
        target_mode=conflict.target.mode if conflict.target else None,
        incoming_mode=conflict.incoming.mode if conflict.incoming else None,
        pieces=tuple(piece_views(conflict.text, pieces)),
        change=_change(conflict, decided) if needs.whole or decided else (),
        target_commits=lens.evidence.target.of(paths[1] or paths[0]),
        incoming_commits=lens.evidence.incoming.of(paths[2] or paths[0]),
    )


def _change(conflict: FileConflict, decided: Resolution | None) -> tuple[LineView, ...]:
    """Return what a command made of the target's text, or what the one side that kept it did."""
    kept = [side for side in (conflict.target, conflict.incoming) if side is not None]
    texts = [side.content for side in (conflict.base, *kept) if side is not None]
    if decided and decided.own and decided.own.by:
        before = conflict.target.content if conflict.target else None
        texts, kept = [before or b"", decided.own.content], kept[:1]
    if len(texts) != _TWO or len(kept) != 1 or None in texts:
        return ()
    base, side = (text or b"" for text in texts)
    if is_binary(base) or is_binary(side):
        return ()
    lines = _compared(split_lines(base), split_lines(side))
    changed = [at for at, line in enumerate(lines) if line.sign != " "]
    near = {at + by for at in changed for by in range(-_ROUND, _ROUND + 1)}
    return tuple(line for at, line in enumerate(lines) if at in near)[:_MOST_SHOWN]


def _path_of(path: bytes | None) -> str | None:
    return os.fsdecode(path) if path is not None else None


def _hunk(
    conflict: FileConflict, hunk: ConflictHunk, choice: Choice | None, lens: Lens
) -> HunkView:
    result = text_of(hunk, choice) if choice is not None else None
    offers = lens.propose(conflict.path, hunk)
    return HunkView(
        key=hunk.key,
        line=hunk.target_line + 1,
        base=_lines(hunk.base),
        target=_compared(hunk.base, hunk.target),
        incoming=_compared(hunk.base, hunk.incoming),
        before=_lines(hunk.before),
        after=_lines(hunk.after),
        choice=_word(choice),
        result=shown(result) if result is not None else None,
        source=choice.source if isinstance(choice, OwnText) else "",
        proposals=tuple(_proposal(hunk, proposal) for proposal in offers),
        where=_heading(conflict.text.target if conflict.text else (), hunk.target_line),
        asked=lens.asking.get(hunk.key, ""),
        ask_problem=lens.problems.get(hunk.key, ""),
    )


def _heading(lines: Lines, at: int) -> str:
    """Return the last line above that begins with a name: git's rule for hunk headings."""
    above = range(at - 1, max(at - _HEADING_WITHIN, -1), -1)
    found = next((lines[n] for n in above if _BEGINS_WITH_NAME.match(lines[n])), b"")
    return shown(found[:_LONGEST_HEADING]).strip()


def _word(choice: Choice | None) -> str | None:
    match choice:
        case None:
            return None
        case OwnText():
            return "own"
        case SingleLines():
            return "lines"
        case _:
            return str(choice)


def _proposal(hunk: ConflictHunk, proposal: Proposal) -> ProposalView:
    is_remembered = "remembered" in {proposal.rule, *proposal.also}
    return ProposalView(
        rule=str(proposal.rule),
        text=shown(proposal.text),
        reason=proposal.reason + _odds(proposal.share),
        likely=proposal.likely,
        same_as=str(proposal.same_as) if proposal.same_as else None,
        remembered=memory_key(hunk) if is_remembered else None,
    )


def _odds(share: float) -> str:
    """Return in words how often such a text was right, for one that was counted."""
    return f"; right in {round(10 * share)} of 10 real conflicts" if share else ""


def _compared(base: Lines, side: Lines) -> tuple[LineView, ...]:
    found: list[LineView] = []
    at_base = at_side = 0
    for line in compare(base, side):
        is_gone = line.sign == "-"
        found.append(_line(line, at_base if is_gone else at_side))
        at_base += line.sign != "+"
        at_side += not is_gone
    return tuple(found)


def _line(line: MarkedLine, at: int) -> LineView:
    return LineView(sign=line.sign, text=shown(line.text), marks=tuple(line.marks), at=at)


def _lines(lines: Lines) -> tuple[str, ...]:
    return tuple(map(shown, lines))


def shown(text: bytes) -> str:
    """Return bytes as text, losing none."""
    return text.decode(errors="surrogateescape")
