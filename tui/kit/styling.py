"""Read the user's own style: sheets and themes in the user's folder, now and when they change."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from textual.css.errors import StylesheetError
from textual.css.stylesheet import Stylesheet, StylesheetParseError
from textual.css.tokenizer import TokenError


class StyleProblem(NamedTuple):
    """One thing wrong with a sheet."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class Checked(NamedTuple):
    """The sheets that can be used, in the order of their names, and what is wrong with others."""

    sheets: tuple[Path, ...]
    problems: tuple[StyleProblem, ...]


def checked(folder: Path | None, variables: Mapping[str, str]) -> Checked:
    """Read every sheet of a folder; one with a mistake is left out whole."""
    sheets: list[Path] = []
    problems: list[StyleProblem] = []
    for path in sorted(folder.glob("*.tcss")) if folder else ():
        found = list(_problems(path, variables))
        problems += found
        if not found:
            sheets.append(path)
    return Checked(tuple(sheets), tuple(problems))


def _problems(path: Path, variables: Mapping[str, str]) -> Iterator[StyleProblem]:
    """Yield what is wrong with a sheet, each with its line."""
    sheet = Stylesheet(variables=dict(variables))
    try:
        sheet.add_source(path.read_text("utf-8"), (str(path), ""))
        sheet.parse()
    except StylesheetParseError as refused:
        errors = chain.from_iterable(rule.errors for rule in refused.errors.rules)
        for token, message in dict.fromkeys(errors):
            line = (token.referenced_by or token).location[0] + 1
            said = message if isinstance(message, str) else message.summary
            yield StyleProblem(path.name, line, said)
    except TokenError as refused:
        yield StyleProblem(path.name, refused.start[0], str(refused))
    except (StylesheetError, OSError, UnicodeDecodeError) as refused:
        yield StyleProblem(path.name, 1, str(refused))


def stamp(folder: Path | None) -> tuple[tuple[str, int, int], ...]:
    """Return what tells that a sheet or a theme was changed, added or taken away."""
    if folder is None:
        return ()
    found: list[tuple[str, int, int]] = []
    for path in sorted((*folder.glob("*.tcss"), *folder.glob("themes/*.toml"))):
        try:
            state = path.stat()
        except OSError:
            continue  # it was taken away this moment
        found.append((str(path), state.st_mtime_ns, state.st_size))
    return tuple(found)
