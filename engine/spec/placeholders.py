"""Find and fill the placeholders of prompts.

`{item}` is one; `{{item}}` is the literal text `{item}`; any other braces are literal anyway.
"""

import re
from collections.abc import Callable

SIMPLE = ("item", "worker", "replica", "run", "step", "files")
OF_STEP = ("output", "branch")
# Possessive and anchored at the first brace: a megabyte of braces is read once, not squared.
_FOUND = re.compile(
    r"(?<!\{)(\{++)(" + "|".join(SIMPLE) + r"|steps\.[^{}\s.]{1,60}\.[^{}\s.]{1,60})(\}+)"
)


def placeholders(template: str) -> tuple[str, ...]:
    """Return the names of all placeholders that would be filled, in order, each once."""
    names = (match[2] for match in _FOUND.finditer(template) if not _is_literal(match))
    return tuple(dict.fromkeys(names))


def substitute(template: str, value_of: Callable[[str], str | None]) -> str:
    """Replace each placeholder in one pass; None leaves it as it stands."""

    def replacement(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        if _is_literal(match):
            return before[1:] + name + after[1:]
        value = value_of(name)
        return match[0] if value is None else before[1:] + value + after[1:]

    return _FOUND.sub(replacement, template)


def escaped(text: str) -> str:
    """Return a template that gives exactly this text, whatever braces it holds."""

    def one_more(match: re.Match[str]) -> str:
        return "{" + match[0] + "}"

    return _FOUND.sub(one_more, text)


def _is_literal(match: re.Match[str]) -> bool:
    return min(len(match[1]), len(match[3])) > 1
