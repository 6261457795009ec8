"""No regular expression takes more than linear time, whatever somebody writes for it to read.

One that takes time by the square of a text stops the whole process for minutes: no other thread
runs meanwhile. So each is tried on texts made against it, as the code around it uses it.
"""

import re
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import engine
import tui
from tests.support.long_texts import hostile_texts

_SHORT, _TIMES = 1000, 4
_MOST = 2 * _TIMES
"""So many times longer a text of four times the length may take: by the square it is 16."""
_LEAST_S = 0.002
_TINY, _TINY_S = 24, 0.05
"""A longer text would never come to its end where each letter doubles the time."""
_WAYS = ("match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split")
_READ_OF_THE_USER = {
    "engine.agents.settings.plain._VARIABLE": "the user's own file of variables",
    "engine.agents.settings.tables._VARIABLE": "the user's own file of variables",
    "engine.agents.settings.copied._REFERENCE": "the user's own settings",
    "engine.agents.settings.copied._COMMENT": "the user's own settings",
    "engine.agents.settings.copied._LAST_COMMA": "the user's own settings",
    "tui.commands.base._WRONG_CHOICE": "a message of argparse about the user's own words",
}


def test_no_expression_takes_more_than_linear_time():
    slow = {
        name: worst
        for name, pattern, ways in expressions()
        if name not in _READ_OF_THE_USER
        if (worst := slowest(pattern, ways))
    }
    assert slow == {}


@pytest.mark.parametrize(
    ("words", "ways"),
    [
        (r'<class\b[^>]*\bfilename="([^"]*)"', {"split"}),
        (r"\s*x", {"search"}),
        (r"(\w+)=(.*)", {"findall"}),
        (r"^<<<ANSWER[^\n]*\n(.*?)^ANSWER>>>", {"findall"}),
        (r"(?:a+)+b", {"match"}),
    ],
)
def test_one_that_does_is_found(words: str, ways: set[str]):
    assert slowest(re.compile(words, re.MULTILINE | re.DOTALL), ways)


def expressions() -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Yield what is compiled at the top of a module, and what is called on it there."""
    roots = [Path(str(package.__file__)).parent for package in (engine, tui)]
    for path in sorted(file for root in roots for file in root.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "re.compile(" not in source or "__main__" in path.name:
            continue
        parts = path.relative_to(roots[0].parent).with_suffix("").parts
        module = import_module(".".join(parts).removesuffix(".__init__"))
        for name, value in vars(module).items():
            if re.search(rf"^{name}\b.* = ", source, re.MULTILINE):  # else it is another module's
                for found in patterns_in(value):
                    used = rf"\b{name}\b(?:\[[^]\n]*\])?\.({'|'.join(_WAYS)})\b"
                    ways = set(re.findall(used, source)) or set(_WAYS)
                    yield f"{module.__name__}.{name}", found, ways


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    value = getattr(value, "__self__", value)  # a bound `match`
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from (one for part in value.values() for one in patterns_in(part))
    elif isinstance(value, tuple | list):
        yield from (one for part in value for one in patterns_in(part))


def slowest(pattern: re.Pattern[Any], ways: set[str]) -> tuple[str, str] | None:
    """Return of what the first text is made that takes too long for its length."""
    tiny, short = hostile_texts(pattern, _TINY), hostile_texts(pattern, _SHORT)
    long = hostile_texts(pattern, _SHORT * _TIMES)
    for key, text in long.items():
        for less, most_s in ((tiny[key], _TINY_S), (short[key], 1)):
            # Twice: a collection of garbage may fall into one look.
            if all(taken(pattern, less, ways) > most_s for _ in range(2)):
                return key
        if (first := taken(pattern, text, ways)) > _LEAST_S:
            longer = min(first, taken(pattern, text, ways))
            shorter = max(taken(pattern, short[key], ways) for _ in range(2))
            if longer > _MOST * shorter:
                return key
    return None


def taken(pattern: re.Pattern[Any], text: str | bytes, ways: set[str]) -> float:
    """Return the processor's seconds for reading a text, in the ways in which it is read."""
    began = time.process_time()
    for way in ways & {"match", "fullmatch", "search"}:
        getattr(pattern, way)(text)
    if ways - {"match", "fullmatch", "search"}:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - began
