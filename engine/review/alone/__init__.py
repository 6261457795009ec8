"""Decide merges without a run: your own, of two branches, of the files of `git mergetool`."""
