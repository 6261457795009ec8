"""Read a manifest: from bytes or a dict to a `Manifest`, or to every problem at once.

Texts that it keeps in files of the repository are put into its tree before it is checked: what is
made of a manifest, and journaled, needs no file again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from engine.errors import SpecError, SpecProblem
from engine.spec.checks import check_manifest
from engine.spec.complaints import Complaint, cleaned, is_echo, problem_of
from engine.spec.pipeline import Manifest
from engine.spec.readiness import unready
from engine.spec.tree import (
    Fields,
    Items,
    Node,
    NotPlain,
    Path,
    Scalar,
    at,
    entries,
    from_plain,
    plain,
    text,
)
from engine.spec.words import is_inside
from engine.spec.yaml_text import read_yaml

MOST_PROBLEMS = 100
"""More problems than anyone reads; complaint the nearest known key for each takes time."""
Reader = Callable[[str], bytes]
"""Gives the bytes of a path inside the repository, or raises OSError or ValueError."""
LARGEST_BYTES = 256 * 1024


def load_manifest(data: bytes, *, file: str, read: Reader | None = None) -> Manifest:
    """Return the manifest in a file's bytes.

    Args:
        data: The bytes of the file.
        file: Its name, for messages.
        read: Gives the bytes of a path inside the repository, for `prompt_file` and `script`. It
            raises OSError or ValueError where there are none.

    Raises:
        SpecError: With every problem found, in order of place.
    """
    root, problems = read_yaml(data, file=file)
    return _manifest(root, problems, file=file, read=read)


def manifest_from(
    values: Mapping[str, Any], *, file: str = "<dict>", read: Reader | None = None
) -> Manifest:
    """Return the manifest in plain Python values; problems stand at 1:1 and name a key.

    Raises:
        SpecError: With every problem found.
    """
    try:
        root = from_plain(values)
    except NotPlain as error:
        problem = Complaint(error.path, str(error)).placed(_NOTHING, file=file)
        raise SpecError([cleaned(problem)]) from None
    return _manifest(root, [], file=file, read=read)


_NOTHING = from_plain({})


def _manifest(
    root: Node | None, problems: list[SpecProblem], *, file: str, read: Reader | None
) -> Manifest:
    if root is None:
        raise SpecError(_sorted(problems))
    root, unread = _with_files(root, read)
    complaints = [*_few(unread), *_few(check_manifest(root)), *_few(_not_ready(root))]
    try:
        manifest = Manifest.model_validate(plain(root))
    except ValidationError as error:
        found = [e for e in error.errors(include_url=False) if not is_echo(e)][:MOST_PROBLEMS]
        typed = [problem_of(e, root, Manifest, file=file) for e in found]
    else:
        if not problems and not complaints:
            return manifest
        typed = []
    placed = [complaint.placed(root, file=file) for complaint in complaints]
    raise SpecError(_sorted([*problems, *typed, *placed])[:MOST_PROBLEMS])


def _few(complaints: Iterable[Complaint]) -> Iterable[Complaint]:
    return islice(complaints, MOST_PROBLEMS)


def _not_ready(root: Node) -> Iterable[Complaint]:
    return (Complaint(path, f"is not possible: {reason}") for path, reason in unready(root))


def _sorted(problems: list[SpecProblem]) -> list[SpecProblem]:
    return sorted(map(cleaned, problems), key=lambda problem: (problem.line, problem.column))


def _with_files(root: Node, read: Reader | None) -> tuple[Node, list[Complaint]]:
    """Return the tree with each `prompt_file` and `script` path replaced by its text."""
    problems: list[Complaint] = []
    for path, key in _places(root):
        name = text(at(root, *path))
        if name is None or not is_inside(name):
            continue  # told as a problem of its type
        if read is None and key == "script":
            continue  # its adapter reads it
        try:
            words = _read(name, read)
        except (OSError, ValueError) as error:
            problems.append(Complaint(path, f"{name!r:.80} {_why(error)}"))
            continue
        if key == "script" and "\n" not in words:
            words += "\n"  # so that nobody takes it for a path
        root = _replaced(root, path, key, words)
    return root, problems


def _places(root: Node) -> Iterator[tuple[Path, str]]:
    """Yield where a file is named, and under which key its text goes."""
    for name, persona in entries(at(root, "personas")):
        yield from _prompt_of(persona, ("personas", name))
    for name, agent in entries(at(root, "agents")):
        if (script := text(at(agent, "script"))) and "\n" not in script:
            yield ("agents", name, "script"), "script"
    for i, pipeline in entries(at(root, "pipelines")):
        for j, step in entries(at(pipeline, "steps")):
            yield from _prompt_of(step, ("pipelines", i, "steps", j))


def _prompt_of(node: Node, path: Path) -> Iterator[tuple[Path, str]]:
    if at(node, "prompt_file") is not None and at(node, "prompt") is None:
        yield (*path, "prompt_file"), "prompt"


def _read(name: str, read: Reader | None) -> str:
    if read is None:
        raise ValueError("cannot be read here; write the text instead of a file name")
    data = read(name)
    if len(data) > LARGEST_BYTES:
        raise ValueError(f"has {len(data)} bytes; plait reads at most {LARGEST_BYTES}")
    words = data.decode("utf-8").removeprefix("\ufeff")
    if not words.strip():
        raise ValueError("is empty")
    if "\0" in words:
        raise ValueError("is not text: it has a NUL byte")
    return words


def _why(error: OSError | ValueError) -> str:
    match error:
        case UnicodeDecodeError():
            return "is not UTF-8"
        case OSError():
            return f"cannot be read: {error.strerror or error}"
        case _:
            return str(error)


def _replaced(node: Node, path: Path, key: str, words: str) -> Node:
    """Return the tree with the text under `key` in place of the last key of the path."""
    step, rest = path[0], path[1:]
    if isinstance(node, Items) and isinstance(step, int):
        below = _replaced(node.items[step], rest, key, words)
        return Items((*node.items[:step], below, *node.items[step + 1 :]), node.place)
    if isinstance(node, Fields) and isinstance(step, str):
        fields, keys = dict(node.fields), dict(node.keys)
        old = fields.pop(step)
        into = step if rest else key
        fields[into] = _replaced(old, rest, key, words) if rest else Scalar(words, old.place)
        keys[into] = keys.get(step, old.place)
        return Fields(fields, node.place, keys)
    return node
