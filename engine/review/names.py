"""How branches are called by people."""


def short(branch: str) -> str | None:
    """A branch without `refs/heads/`; None where there is none."""
    return branch.removeprefix("refs/heads/") or None
