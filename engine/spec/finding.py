"""A problem before it has a place: the path it is at, and what is wrong there."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


def cleaned(problem: SpecProblem) -> SpecProblem:
    """The problem as a terminal may see it: what a manifest says goes into messages as it is.

    Control characters, line ends and invisible ones are written as escapes, and nothing is long.
    """
    guess = problem.nearest
    return replace(
        problem,
        key=_printable(problem.key, _LONGEST_KEY),
        message=_printable(problem.message, _LONGEST),
        nearest=None if guess is None else _printable(guess, _LONGEST_KEY),
    )


def _printable(text: str, most: int) -> str:
    cut = text if len(text) <= most else text[: most - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


_MOST = 20
_LONGEST = 600
_LONGEST_KEY = 200
