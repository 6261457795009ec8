"""Refuse keys that the grammar knows and this version cannot honor; never ignore them.

One row for each; a row is removed when its room is built.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from engine.spec.tree import Node, Path, Scalar, entries
from engine.values import dataclass


@dataclass(frozen=True, kw_only=True)
class Unready:
    """A key, or certain values of it, that cannot be honored.

    Attributes:
        path: Keys joined by dots, `*` for any name or index; mappings below it count too.
        only: The values refused; none means every value.
        unless: The values that are fine.
    """

    path: str
    reason: str
    only: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


UNREADY = (
    Unready(
        path="pipelines.*.steps.*.choose",
        only=("agent",),
        reason="an agent cannot judge candidates yet; write `human`, or `check` with a check",
    ),
)


def unready(root: Node, rows: tuple[Unready, ...] = UNREADY) -> Iterator[tuple[Path, str]]:
    """Yield where the manifest asks for what cannot be done, and why not."""
    todo: list[tuple[Path, Node]] = [((), root)]
    while todo:
        path, node = todo.pop()
        dotted = ".".join(map(str, path))
        for row in rows:
            if _is_refused(row, dotted, node):
                yield path, row.reason
        todo.extend(((*path, step), below) for step, below in entries(node))


def _is_refused(row: Unready, dotted: str, node: Node) -> bool:
    if dotted.count(".") != row.path.count(".") or not fnmatchcase(dotted, row.path):
        return False
    value = str(node.value) if isinstance(node, Scalar) else ""
    return value not in row.unless and (not row.only or value in row.only)
