"""Describe one hunk to the agent that is asked about it."""

import os
from dataclasses import dataclass

from engine.merge import ConflictHunk, FileConflict, HunkKey
from engine.review.showing import shown


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """One hunk, as text; `subjects` are what the target's commits to the file say."""

    key: HunkKey
    path: str
    target: str
    incoming: str
    base: str
    ours: str
    theirs: str
    subjects: tuple[str, ...] = ()
    around: str = ""
    words: str = ""


def inquiry(
    conflict: FileConflict, hunk: ConflictHunk, *, subjects: tuple[str, ...], words: str
) -> Inquiry:
    """Return a hunk and its surroundings as texts for an agent."""
    before, after = shown(b"".join(hunk.before)), shown(b"".join(hunk.after))
    texts = [shown(b"".join(lines)) for lines in (hunk.base, hunk.target, hunk.incoming)]
    beside = ((before, "The text above them is"), (after, "The text below them is"))
    around = "\n".join(f"{where}:\n{text}" for text, where in beside if text)
    return Inquiry(
        key=hunk.key,
        path=os.fsdecode(conflict.path),
        target=conflict.names.target,
        incoming=conflict.names.incoming,
        base=texts[0],
        ours=texts[1],
        theirs=texts[2],
        subjects=subjects,
        around=around,
        words=words.strip(),
    )
