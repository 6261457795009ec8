"""Resolve merges without a run: your own, two branches, the files of `git mergetool`."""
