"""Resolve conflicts in memory: alignments, proposals, choices and their undo.

This room knows bytes, lines, words and the three versions of a file. It does not know git, disks
or clocks: the caller brings the three versions and takes the result away.
"""

from engine.merge.adopting import adopted, has_markers
from engine.merge.anew import basis_of, beside, stale
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
from engine.merge.conflict import FileConflict, FileSide, OpenDecisions, SideNames
from engine.merge.documents import reads_still
from engine.merge.formatting import Formatted, formatted_ideas
from engine.merge.habits import (
    Habit,
    Lessons,
    Refusals,
    habit_after,
    last_picks,
    lessons,
    pick_of,
    with_lessons,
)
from engine.merge.ideas import Idea, Rule
from engine.merge.journal import HunkAt
from engine.merge.kinds import ConflictKind, kind_named
from engine.merge.linediff import LineChange, LineDiff
from engine.merge.memory import Memory, Remembered
from engine.merge.proposals import OutsideAnswer, Proposal, best, propose
from engine.merge.resolution import Resolution
from engine.merge.session import Carried, ResolutionSession
from engine.merge.shares import SHARES
from engine.merge.terms import Merge
from engine.merge.text import (
    ConflictHunk,
    HunkKey,
    Lines,
    Piece,
    TextMerge,
    merge_texts,
    split_lines,
)
from engine.merge.threeway import Origin
from engine.merge.weaving import (
    CandidateHunk,
    Composite,
    Spot,
    Version,
    Weaving,
    WeavingRefused,
    weave,
)
from engine.merge.whole import FilePlace, FileResult, Option, Whole, options, owned
from engine.merge.words import ChangedWords, MarkedLine, changed_words, combine, compare

__all__ = [
    "SHARES",
    "CandidateHunk",
    "Carried",
    "ChangedWords",
    "Choice",
    "Composite",
    "ConflictHunk",
    "ConflictKind",
    "FileConflict",
    "FilePlace",
    "FileResult",
    "FileSide",
    "Formatted",
    "Habit",
    "HunkAt",
    "HunkKey",
    "Idea",
    "Lessons",
    "LineChange",
    "LineDiff",
    "LineOf",
    "LinePick",
    "Lines",
    "MarkedLine",
    "Memory",
    "Merge",
    "OpenDecisions",
    "Option",
    "Origin",
    "OutsideAnswer",
    "OwnText",
    "Pick",
    "Piece",
    "Proposal",
    "Refusals",
    "Remembered",
    "Resolution",
    "ResolutionSession",
    "Rule",
    "SideNames",
    "SingleLines",
    "Spot",
    "TextMerge",
    "Version",
    "Weaving",
    "WeavingRefused",
    "Whole",
    "adopted",
    "basis_of",
    "beside",
    "best",
    "changed_words",
    "choice_of",
    "combine",
    "compare",
    "formatted_ideas",
    "habit_after",
    "has_markers",
    "kind_named",
    "last_picks",
    "lessons",
    "merge_texts",
    "options",
    "owned",
    "pick_of",
    "propose",
    "reads_still",
    "split_lines",
    "stale",
    "text_of",
    "union",
    "weave",
    "with_lessons",
]
