"""Define the kinds of text and number in a manifest, with words for what was expected."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from engine.ids import STEP_NAME
from engine.policies import PATTERN, Policy, spellings

Adapter = Literal[
    "scripted",
    "command",
    "terminal",
    "claude",
    "codex",
    "gemini",
    "opencode",
    "copilot",
    "qwen",
    "pi",
    "cline",
    "aider",
    "mini",
    "acp",
    "gemini-acp",
    "opencode-acp",
    "copilot-acp",
    "qwen-acp",
    "claude-acp",
    "codex-acp",
    "jsonl",
]
ADAPTERS: tuple[str, ...] = get_args(Adapter)
"""Every adapter there is; each is also an agent of that name that needs no entry."""

NEEDS_ARGV = ("command", "terminal", "acp")
"""Adapters that know no program of their own."""

WORKER_CAP = 500
"""The most workers one engine runs at once, whatever a manifest asks.

Those of one machine are bounded by its memory long before; 200 were run on two cores.
"""
HINT_CAP = 10
"""The most sub-agents an agent is told it may spawn."""


LOCAL = "local"
SITES = (LOCAL, "child")
"""The sites that every repository has."""


class Section(BaseModel):
    """A mapping of known keys, strictly typed, that cannot change once read."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


def either(words: Sequence[str]) -> str:
    """Return words as a sentence offers them: `a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def is_inside(path: str) -> bool:
    """Return whether the path stays below its folder, whatever stands there."""
    pure = PurePosixPath(path)
    return bool(path) and not pure.is_absolute() and ".." not in pure.parts and "\0" not in path


def is_folder_below(path: str) -> bool:
    """Return whether the path or pattern can name a folder below its folder, and nothing else."""
    is_plain = not path.startswith("!") and "\n" not in path
    return is_plain and is_inside(path) and bool(PurePosixPath(path).parts)


def _kind(is_right: Callable[[str], object], expectation: str) -> AfterValidator:
    def check(value: str) -> str:
        if is_right(value):
            return value
        raise PydanticCustomError("expected", "expected {what}", {"what": expectation})

    return AfterValidator(check)


def _schema(pattern: str) -> object:
    return Field(json_schema_extra={"pattern": pattern})


_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"

Name = Annotated[
    str,
    _kind(
        re.compile(_NAME).fullmatch,
        "a name of 1 to 40 letters, digits, `_`, `.` and `-` that starts with a letter or digit",
    ),
    _schema(f"^{_NAME}$"),
]
StepName = Annotated[
    str,
    _kind(
        STEP_NAME.fullmatch,
        "a name of 1 to 40 lowercase letters, digits, `_` and `-` that starts with a letter "
        "or digit",
    ),
    _schema(f"^{STEP_NAME.pattern}$"),
]
Text = Annotated[str, _kind(str.strip, "some text, found none"), Field(min_length=0)]
InsidePath = Annotated[
    str, _kind(is_inside, "a path inside the repository: relative, without `..`")
]
SparseFolders = Annotated[
    tuple[
        Annotated[
            str,
            _kind(
                is_folder_below,
                "a folder below the top of the repository: relative, without `..` and `!`",
            ),
        ],
        ...,
    ],
    Field(max_length=1000),
]
Variable = Annotated[
    str,
    _kind(re.compile(_VARIABLE).fullmatch, "the name of an environment variable"),
    _schema(f"^{_VARIABLE}$"),
]
PolicyText = Annotated[
    str,
    _kind(Policy.read, f"{either(spellings('(N)'))}, with N at least 1"),
    _schema(PATTERN),
]
Count = Annotated[int, Field(ge=1, le=10**12)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
