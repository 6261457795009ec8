"""Tell if an attempt could have written somewhere, from its rung and its openings.

Knows nothing of what happened; only what the mechanisms make impossible.
"""

from pathlib import Path

from engine.sandbox.holes import hole_paths
from engine.sandbox.ladder import keeps_content
from engine.sandbox.machine import MachineSupport
from engine.sandbox.request import ConfineRequest


def may_write(machine: MachineSupport, request: ConfineRequest, path: Path) -> bool:
    """Return whether an attempt could have written below a folder that is hidden from it.

    An opening that is no deeper than what is hidden does not uncover it.
    """
    if not keeps_content(machine, request):
        return True
    opened = (hole for hole, is_writable in hole_paths(request) if is_writable)
    real = path.resolve()
    return any(real in hole.parents for hole in opened)
