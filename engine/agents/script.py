"""Reads scripts for the scripted agent: YAML text to the steps of one worker's one attempt.

Knows which steps there are and what shape their arguments have, so that a mistake is reported
before anything runs; playing them is `script_player`.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from engine.errors import AgentError
from engine.ids import WorkerId
from engine.values import dataclass

Step = dict[str, Any]

_BOOL = "tag:yaml.org,2002:bool"
_WORDS_TO_YAML = {_BOOL, "tag:yaml.org,2002:timestamp"}


class _Loader(yaml.SafeLoader):
    """YAML in which `on` is a word and a date is text: only `true` and `false` are booleans."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag not in _WORDS_TO_YAML]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|false)$"), ["t", "f"])


class ScriptInvalid(AgentError):
    """A script of the scripted agent is wrong; `problems` holds every problem found."""

    hint = "docs/scripted.md describes every step."

    def __init__(self, where: str, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{where}: {problem}" for problem in problems))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_span(value: object) -> bool:
    pair = 2
    return _is_number(value) or (
        isinstance(value, list) and len(value) == pair and all(map(_is_number, value))
    )


def _is_steps(value: object) -> bool:
    return isinstance(value, list)


def _is_branches(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(steps, list) for steps in value.values())


Check = Callable[[object], bool]
_SAYS: dict[Check, str] = {
    _is_text: "text",
    _is_number: "a number",
    _is_count: "a whole number",
    _is_flag: "true or false",
    _is_texts: "a list of strings",
    _is_span: "seconds, or a list of two",
    _is_steps: "a list of steps",
    _is_branches: "steps for each answer",
}


@dataclass(frozen=True, kw_only=True)
class StepShape:
    """The form of a step's argument: a plain value, a mapping of these keys, or both."""

    plain: Check | None = None
    keys: Mapping[str, Check] | None = None
    needs: tuple[str, ...] = ()


_FILE = {"path": _is_text, "text": _is_text}
SHAPES: dict[str, StepShape] = {
    "say": StepShape(plain=_is_text, keys={"text": _is_text, "stream": _is_flag}, needs=("text",)),
    "think": StepShape(plain=_is_text),
    "tool": StepShape(
        keys={
            "name": _is_text,
            "title": _is_text,
            "for": _is_span,
            "state": _is_text,
            "output": _is_text,
            "paths": _is_texts,
        },
        needs=("name",),
    ),
    "read": StepShape(plain=_is_text),
    "write": StepShape(keys=_FILE, needs=("path", "text")),
    "append": StepShape(keys=_FILE, needs=("path", "text")),
    "replace": StepShape(
        keys={"path": _is_text, "old": _is_text, "new": _is_text, "count": _is_count},
        needs=("path", "old", "new"),
    ),
    "delete": StepShape(plain=_is_text),
    "shell": StepShape(
        plain=_is_text, keys={"command": _is_text, "must": _is_flag}, needs=("command",)
    ),
    "commit": StepShape(plain=_is_text),
    "sleep": StepShape(plain=_is_span),
    "ask": StepShape(
        plain=_is_text,
        keys={
            "text": _is_text,
            "choices": _is_texts,
            "permission": _is_flag,
            "tool": _is_text,
            "detail": _is_text,
            "on": _is_branches,
        },
        needs=("text",),
    ),
    "usage": StepShape(
        keys={"input_tokens": _is_count, "output_tokens": _is_count, "usd": _is_number}
    ),
    "progress": StepShape(plain=_is_number, keys={"fraction": _is_number, "note": _is_text}),
    "agents": StepShape(plain=_is_count),
    "retrying": StepShape(keys={"attempt": _is_count, "delay_s": _is_number, "status": _is_text}),
    "rate_limit": StepShape(keys={"until": _is_number, "delay_s": _is_number, "ends": _is_flag}),
    "stdout": StepShape(plain=_is_text),
    "stderr": StepShape(plain=_is_text),
    "flood": StepShape(
        plain=_is_count,
        keys={"lines": _is_count, "text": _is_text, "stream": _is_text},
        needs=("lines",),
    ),
    "memory": StepShape(plain=_is_count, keys={"mb": _is_count, "for": _is_span}, needs=("mb",)),
    "cpu": StepShape(plain=_is_number),
    "disk": StepShape(keys={"mb": _is_count, "path": _is_text}, needs=("mb",)),
    "spawn": StepShape(
        plain=_is_count, keys={"count": _is_count, "for": _is_number, "detached": _is_flag}
    ),
    "ignore_term": StepShape(plain=_is_flag),
    "hang": StepShape(plain=_is_flag),
    "repeat": StepShape(keys={"times": _is_count, "steps": _is_steps}, needs=("times", "steps")),
    "fail": StepShape(plain=_is_text, keys={"text": _is_text, "exit": _is_count}, needs=("text",)),
    "crash": StepShape(plain=lambda value: _is_count(value) or _is_text(value)),
    "result": StepShape(plain=_is_text),
}
_BRANCH = {"steps", "attempts", "resumed"}
_HEAD = _BRANCH | {"workers", "seed", "pace"}


@dataclass(frozen=True, kw_only=True)
class Script:
    """A checked script: which steps it has for whom is asked with `steps_for`."""

    seed: int
    pace: float
    _tree: Mapping[str, Any]

    def steps_for(self, worker: WorkerId, attempt: int, *, is_resumed: bool = False) -> list[Step]:
        """The steps of one attempt: the worker's own branch first, then its attempt's."""
        branch = self._tree
        workers = branch.get("workers", {})
        for name in (str(worker), str(worker.index), worker.step):
            if name in workers:
                branch = workers[name]
                break
        if is_resumed and "resumed" in branch:
            return list(branch["resumed"])
        attempts: Mapping[str, Any] = branch.get("attempts", {})
        reached = [int(number) for number in attempts if int(number) <= attempt]
        if reached:
            return list(attempts[str(max(reached))])
        return list(branch.get("steps", ()))


def read_script(text: str, where: str = "script") -> Script:
    """The script that this YAML text is; every problem found is reported at once."""
    try:
        tree = yaml.load(text, _Loader)  # noqa: S506 - a safe loader with fewer surprises
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ScriptInvalid(where, [" ".join(str(error).split())]) from error
    problems: list[str] = []
    branch = _branch(tree, "", problems)
    head = tree if isinstance(tree, dict) else {}
    seed, pace = head.get("seed", 0), head.get("pace", 1.0)
    if not _is_count(seed):
        problems.append("seed: expected a whole number")
    if not _is_number(pace):
        problems.append("pace: expected a number")
    if problems:
        raise ScriptInvalid(where, problems)
    return Script(seed=seed, pace=pace, _tree=branch)


def _branch(tree: object, place: str, problems: list[str]) -> dict[str, Any]:
    """One branch with string keys: its steps, and the branches below it."""
    if isinstance(tree, list):
        tree = {"steps": tree}
    if not isinstance(tree, dict):
        problems.append(f"{place or 'script'}: expected a list of steps or a mapping")
        return {}
    known = _BRANCH if place else _HEAD
    problems += [
        f"{place}{key}: unknown key{_near(key, known)}"
        for key in sorted(tree.keys() - known, key=str)
    ]
    return _parts(tree, place, problems)


def _parts(tree: dict[Any, Any], place: str, problems: list[str]) -> dict[str, Any]:
    branch: dict[str, Any] = {}
    for key in ("steps", "resumed"):
        if key in tree:
            branch[key] = _steps(tree[key], f"{place}{key}", problems)
    if "workers" in tree:
        branch["workers"] = {
            name: _branch(part, f"{place}workers.{name}.", problems)
            for name, part in _named(tree["workers"], f"{place}workers", problems)
        }
    if "attempts" in tree:
        branch["attempts"] = {
            name: _steps(part, f"{place}attempts.{name}", problems)
            for name, part in _named(tree["attempts"], f"{place}attempts", problems)
            if _is_attempt(name, place, problems)
        }
    return branch


def _is_attempt(name: str, place: str, problems: list[str]) -> bool:
    if name.isascii() and name.isdigit() and len(name) < 10:  # noqa: PLR2004 - any sane count
        return True
    problems.append(f"{place}attempts.{name}: attempts are numbered from 1")
    return False


def _named(part: object, place: str, problems: list[str]) -> list[tuple[str, object]]:
    if isinstance(part, dict):
        return [(str(name), value) for name, value in part.items()]
    problems.append(f"{place}: expected a mapping")
    return []


def _steps(steps: object, place: str, problems: list[str]) -> list[Step]:
    if not isinstance(steps, list):
        problems.append(f"{place}: expected a list of steps")
        return []
    for number, step in enumerate(steps, 1):
        here = f"{place}[{number}]"
        if isinstance(step, dict) and len(step) == 1:
            for name, argument in step.items():
                _step(name, argument, here, problems)
        else:
            problems.append(f"{here}: expected one step with one name")
    return steps


def _step(name: object, argument: object, place: str, problems: list[str]) -> None:
    shape = SHAPES.get(name) if isinstance(name, str) else None
    if shape is None:
        problems.append(f"{place}: {name} is not a step{_near(name, SHAPES)}")
    elif isinstance(argument, dict) and shape.keys is not None:
        _keys(shape, argument, f"{place}.{name}", problems)
    elif shape.plain is None or not shape.plain(argument):
        wanted = (
            "a mapping" if shape.plain is None else _SAYS.get(shape.plain, "a code or a signal")
        )
        problems.append(f"{place}.{name}: expected {wanted}")


def _keys(shape: StepShape, given: dict[Any, Any], place: str, problems: list[str]) -> None:
    known = shape.keys or {}
    problems += [f"{place}: {key} is missing" for key in shape.needs if key not in given]
    for key, value in given.items():
        if key not in known:
            problems.append(f"{place}.{key}: unknown key{_near(key, known)}")
        elif not known[key](value):
            problems.append(f"{place}.{key}: expected {_SAYS[known[key]]}")
        elif known[key] is _is_steps:
            _steps(value, f"{place}.{key}", problems)
        elif known[key] is _is_branches:
            for answer, steps in value.items():
                _steps(steps, f"{place}.{key}.{answer}", problems)


def _near(name: object, known: Mapping[str, object] | set[str]) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
