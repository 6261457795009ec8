"""Merging as thought: conflicts as values, what may be chosen, and what has been chosen.

Knows bytes, lines, words and the three versions of a file. Does not know git, disks or clocks:
whoever has them brings the three versions here and carries the result away.
"""

from engine.merge.adopting import adopted, has_markers
from engine.merge.both_sides import union
from engine.merge.choices import (
    Choice,
    LineOf,
    LinePick,
    OwnText,
    Pick,
    SingleLines,
    choice_of,
    text_of,
)
from engine.merge.conflict import FileConflict, Names, Open, Side
from engine.merge.documents import reads_still
from engine.merge.ideas import Rule
from engine.merge.journal import HunkAt
from engine.merge.kinds import ConflictKind, kind_named
from engine.merge.linediff import Change, LineDiff
from engine.merge.memory import Memory, Remembered
from engine.merge.proposals import Asked, Proposal, best, propose
from engine.merge.resolution import Resolution
from engine.merge.session import Carried, ResolutionSession
from engine.merge.terms import Merge
from engine.merge.text import Hunk, HunkKey, Lines, Piece, TextMerge, merge_texts, split_lines
from engine.merge.threeway import Origin
from engine.merge.weaving import CandidateHunk, Composite, Refused, Spot, Version, Weaving, weave
from engine.merge.whole import FileResult, Option, Place, Whole, options
from engine.merge.words import ChangedWords, DiffLine, changed_words, combine, compare

__all__ = [
    "Asked",
    "CandidateHunk",
    "Carried",
    "Change",
    "ChangedWords",
    "Choice",
    "Composite",
    "ConflictKind",
    "DiffLine",
    "FileConflict",
    "FileResult",
    "Hunk",
    "HunkAt",
    "HunkKey",
    "LineDiff",
    "LineOf",
    "LinePick",
    "Lines",
    "Memory",
    "Merge",
    "Names",
    "Open",
    "Option",
    "Origin",
    "OwnText",
    "Pick",
    "Piece",
    "Place",
    "Proposal",
    "Refused",
    "Remembered",
    "Resolution",
    "ResolutionSession",
    "Rule",
    "Side",
    "SingleLines",
    "Spot",
    "TextMerge",
    "Version",
    "Weaving",
    "Whole",
    "adopted",
    "best",
    "changed_words",
    "choice_of",
    "combine",
    "compare",
    "has_markers",
    "kind_named",
    "merge_texts",
    "options",
    "propose",
    "reads_still",
    "split_lines",
    "text_of",
    "union",
    "weave",
]
