"""The manifest: what `plait.yaml` may say, read strictly, every problem told at once.

Knows keys, types and references between them; it reads no files (a reader is passed in), makes no
plan, and starts nothing.
"""
