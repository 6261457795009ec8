"""A change as a console draws it: the engine's own plain data, under the names used here."""

from engine.diffs import ChangeDiff, DiffLine, FileDiff, FileKind, Hunk, Sign, hunk_key

__all__ = ["ChangeDiff", "DiffLine", "FileDiff", "FileKind", "Hunk", "Sign", "hunk_key"]
