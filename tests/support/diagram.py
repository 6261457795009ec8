"""Draw what ARCHITECTURE.md shows of the code: the phases and the map of the rooms.

`python -m tests.support.diagram` draws both anew. Both come from the code, so they cannot say
anything else: the phases from the tables of the core, the map from the folders, their docstrings
and the import contracts.
"""

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.core.phase import RULED, TOLD
from engine.phases import SETTLED, Phase

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
_ROUND, _SLACK = 100, 0.2


def phases_diagram() -> str:
    """Draw both tables as a Mermaid state diagram: named moves are facts, `rule` a joint rule."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> WAITING"]
    for phase in Phase:
        words: dict[Phase, list[str]] = {}
        for fact, reached in TOLD[phase].items():
            for to in reached:
                words.setdefault(to, []).append(fact)
        for to in RULED.get(phase, ()):
            words.setdefault(to, []).append("rule")
        lines += [f"    {phase} --> {to} : {', '.join(words[to])}" for to in Phase if to in words]
    lines += [f"    {phase} --> [*]" for phase in Phase if phase in SETTLED]
    return "\n".join([*lines, "```"])


def rooms_map() -> str:
    """Draw every room with its level, its size and its sentence, the highest level first."""
    pure = _names("The thinking rooms touch no world", "source_modules")
    shut = _names("The TUI sees the engine through its front door", "forbidden_modules")
    return "\n".join(
        [
            "| level | room | files | lines | the room's own sentence |",
            "|---|---|---|---|---|",
            *_rows("tui"),
            *_rows("engine"),
            "",
            f"Pure, so without clock, process or file: {pure}.",
            f"Closed to the console, which uses the port instead: {shut}.",
        ]
    )


def _contracts() -> list[Mapping[str, list[str]]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts: list[Mapping[str, list[str]]] = settings["tool"]["importlinter"]["contracts"]
    return contracts


def _names(contract: str, key: str) -> str:
    """Return the modules that a contract names, for a sentence."""
    found = next(one[key] for one in _contracts() if one["name"] == contract)
    return ", ".join(f"`{module.removeprefix('engine.')}`" for module in sorted(found))


def _layers(package: str) -> list[list[str]]:
    """Return the rooms of a package by level, the highest first."""
    layers = next(one["layers"] for one in _contracts() if one.get("containers") == [package])
    return [re.findall(r"\w+", layer) for layer in layers]


def _rows(package: str) -> Iterator[str]:
    """Yield a row for each room of a package, and one for each room inside it."""
    layers = _layers(package)
    for level, rooms in zip(range(len(layers), 0, -1), layers, strict=True):
        for room in rooms:
            place = ROOT / package / room
            yield _row(level, place if place.is_dir() else place.with_suffix(".py"))
            for door in sorted(place.rglob("*/__init__.py")):
                if _sentence(door):
                    yield _row(level, door.parent)


def _row(level: int, place: Path) -> str:
    name = place.relative_to(ROOT).as_posix()
    files = sorted(place.glob("*.py")) if place.is_dir() else [place]
    lines = sum(len(path.read_text().splitlines()) for path in files)
    door = place / "__init__.py" if place.is_dir() else place
    size = max(_ROUND, round(lines, -2))
    return f"| {level} | `{name}` | {len(files)} | {size} | {_sentence(door)} |"


def _sentence(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def with_diagram(page: str) -> str:
    """Return the page with the phases drawn anew."""
    return _with(page, "phases", phases_diagram())


def with_map(page: str) -> str:
    """Return the page with the map drawn anew; figures that are still about right stay."""
    drawn = _with(page, "rooms", rooms_map())
    known = {_unsized(line): line for line in page.splitlines()}
    return "\n".join(
        known[_unsized(line)] if _is_about(line, known.get(_unsized(line), "")) else line
        for line in drawn.split("\n")
    )


def _with(page: str, name: str, block: str) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"


_SIZE = re.compile(r"\| (\d+) \| (\d+) \| (?=[A-Z])")


def _unsized(line: str) -> str:
    return _SIZE.sub("", line)


def _is_about(line: str, known: str) -> bool:
    """Say if two rows give sizes so close that the page need not change."""
    new, old = _SIZE.search(line), _SIZE.search(known)
    return bool(new and old) and all(
        abs(int(now) - int(then)) <= max(_SLACK * int(now), 2 if now == new[1] else 2 * _ROUND)
        for now, then in zip(new.groups(), old.groups(), strict=True)
    )


if __name__ == "__main__":
    PAGE.write_text(_with(with_diagram(PAGE.read_text()), "rooms", rooms_map()))
