"""Files that a command makes anew from the rest of a merge: lock files, mostly.

Such a file is right only for the result that it was made from, so its decision says which that was.
"""

import hashlib
from collections.abc import Callable

from engine.merge.session import ResolutionSession
from engine.merge.whole import Whole

Generated = Callable[[bytes], bool]
"""Tells of a path if a command makes it."""


def beside(session: ResolutionSession, is_generated: Generated) -> ResolutionSession:
    """Return the session with every generated file of it as the target has it, decided or not."""
    conflicts = [conflict.path for conflict in session.conflicts]
    for path in filter(is_generated, list(session.resolutions)):
        session = session.reopen(path)
    for path in filter(is_generated, conflicts):
        session = session.choose_whole(path, Whole.TARGET)
    return session


def basis_of(tree: str, rest: ResolutionSession) -> str:
    """Return a name for what generated files are made from: a merge's tree, and its decisions."""
    digest = hashlib.blake2b(tree.encode(), digest_size=16)
    for path, mode, content, blob in rest.results() or ():
        said = blob.encode() if content is None and blob else content or b""
        for part in (path, (mode or "").encode(), said):
            digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()


def stale(session: ResolutionSession, is_generated: Generated, tree: str) -> frozenset[bytes]:
    """Return the files that were made from another result than the decisions make now."""
    made = {path: one.own.basis for path, one in session.resolutions.items() if one.own}
    if not any(made.values()):
        return frozenset()
    rest = beside(session, is_generated)
    now = basis_of(tree, rest) if rest.is_resolved else None
    return frozenset(path for path, basis in made.items() if basis and now and basis != now)
