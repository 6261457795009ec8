"""Shorten branch names for people."""


def short(branch: str) -> str | None:
    """Return a branch without `refs/heads/`; None if there is none."""
    return branch.removeprefix("refs/heads/") or None
