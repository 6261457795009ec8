"""Merging at work: conflicts read from git, resolved by a human, and landed as they were resolved.

Knows how `engine.merge` (pure) and `engine.git` are used together, and where decisions are kept.
It decides nothing about a conflict by itself, and does not know which phase a worker is in.
"""
