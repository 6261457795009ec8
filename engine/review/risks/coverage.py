"""Read the coverage report that lies in a project: the lines that no test reached.

Agents may have written the report. So reading it takes time that grows with its length alone, and
a name in it counts only where the project has that very file.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from engine.beneath import read_file

_REPORTS = ("coverage.xml", "lcov.info", "coverage/lcov.info")
_LONGEST, _MOST_FILES = 16 << 20, 20_000
_MOST_FOLDERS, _LONGEST_NAME = 32, 4096
_ENOUGH = 2
"""So many files show that a folder is another checkout: one alone may only end like a file here."""
# No repeat reaches over the end of a tag or the beginning of another: each text is read once.
_TAG = re.compile(r"<(class|line)\b([^<>]*)>")
_ATTRIBUTE = re.compile(r'\b(filename|number|hits)="([^"]*)"')
_SOURCE = re.compile(r"<source>([^<]*)</source>")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The lines that no test reached, by the paths of a project's files."""

    name: str = ""
    missed: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def of(self, path: str) -> frozenset[int]:
        """Return the lines of a file that were missed."""
        return self.missed.get(path, frozenset())


def read_coverage(project: Path) -> Coverage:
    """Return the coverage report that lies in a project; an empty one where there is none."""
    for name in _REPORTS:
        data = read_file(project, name, most=_LONGEST)
        if isinstance(data, bytes):
            text = data.decode(errors="replace")
            is_xml = name.endswith("xml")
            missed = _by_file(_cobertura(text) if is_xml else _lcov(text))
            sources = _SOURCE.findall(text)[:_MOST_FOLDERS] if is_xml else []
            return Coverage(name=name, missed=_placed(missed, sources, os.fspath(project)))
    return Coverage()


def _by_file(found: Iterable[tuple[str, str]]) -> dict[str, frozenset[int]]:
    missed: dict[str, set[int]] = {}
    for name, number in found:
        lines = missed.setdefault(name, set())
        if _NUMBER.fullmatch(number):
            lines.add(int(number))
    return {name: frozenset(lines) for name, lines in islice(missed.items(), _MOST_FILES)}


def _cobertura(text: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a report, and their missed lines."""
    name = ""
    for tag, words in _TAG.findall(text):
        said = dict(_ATTRIBUTE.findall(words))
        if tag == "class":
            name = said.get("filename", "")
            yield name, ""
        elif said.get("hits") == "0":
            yield name, said.get("number", "")


def _lcov(text: str) -> Iterator[tuple[str, str]]:
    name = ""
    for line in text.splitlines():
        if line.startswith("SF:"):
            name = line.removeprefix("SF:")
            yield name, ""
        number, _, hits = line.removeprefix("DA:").partition(",")
        if line.startswith("DA:") and hits.partition(",")[0] == "0":
            yield name, number


def _placed(
    missed: Mapping[str, frozenset[int]], sources: Sequence[str], project: str
) -> dict[str, frozenset[int]]:
    """Return the lines by the paths of files that the project has; the others are left out.

    A name may be below one of the report's sources. Where the report was made in another checkout,
    one folder stands before all of its names, and the rest is a file here.
    """
    found: dict[str, frozenset[int]] = {}
    elsewhere: Counter[str] = Counter()
    away: dict[tuple[str, str], frozenset[int]] = {}
    roots = [source.strip() for source in sources] or ["."]
    for name, lines in missed.items():
        if not name or len(name) > _LONGEST_NAME:
            continue
        places = {_below(_below(project, root), name) for root in roots}
        there = [place for place in places if _is_in(project, place)]
        if len(there) == 1:
            found[os.path.relpath(there[0], project)] = lines
        for place in places if not there else ():
            if split := _moved(project, place):
                elsewhere[split[0]] += 1
                away[split] = lines
    for before, count in elsewhere.most_common(1):
        here = {path: lines for (folder, path), lines in away.items() if folder == before}
        found = {**here, **found} if count >= _ENOUGH else found
    return found


def _below(folder: str, name: str) -> str:
    return os.path.normpath(name if name.startswith("/") else f"{folder}/{name}")


def _is_in(project: str, place: str) -> bool:
    # For so many names, a Path costs too much.
    return place.startswith(f"{project}/") and os.path.isfile(place)  # noqa: PTH113


def _moved(project: str, place: str) -> tuple[str, str] | None:
    """Split a path of another checkout into its folder and the longest rest that is a file here."""
    if place.startswith(f"{project}/"):
        return None
    parts = place.split("/")
    for at in range(max(1, len(parts) - _MOST_FOLDERS), len(parts)):
        path = "/".join(parts[at:])
        if _is_in(project, f"{project}/{path}"):
            return "/".join(parts[:at]), path
    return None
