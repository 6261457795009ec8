"""A problem before it has a place: the path it is at, and what is wrong there."""

from collections.abc import Iterable
from dataclasses import dataclass

from engine.errors import SpecProblem
from engine.spec.nearest import nearest
from engine.spec.tree import Node, Path, place_of, written


@dataclass(frozen=True)
class Finding:
    """Something wrong at a path; `guess` is what was probably meant."""

    path: Path
    message: str
    guess: str | None = None

    def placed(self, root: Node, *, file: str) -> SpecProblem:
        """The problem, with the line and column of its path."""
        line, column = place_of(root, self.path)
        return SpecProblem(
            file=file,
            line=line,
            column=column,
            key=written(self.path),
            message=self.message,
            nearest=self.guess,
        )


def unknown(path: Path, name: str, what: str, known: Iterable[str]) -> Finding:
    """A name that names nothing, with the nearest that does or all there are."""
    names = list(known)
    guess = nearest(name, names)
    there = ", ".join(names[:_MOST]) or "there is none"
    more = "" if guess else f"; known here: {there}"
    return Finding(path, f"{name!r:.60} is no {what}{more}", guess)


_MOST = 20
