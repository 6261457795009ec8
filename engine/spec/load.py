"""Reading a manifest: from bytes or a dict to a `Manifest`, or to every problem at once."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from engine.errors import SpecError, SpecProblem
from engine.spec.checks import check_manifest
from engine.spec.complaints import is_echo, problem_of
from engine.spec.finding import Finding, cleaned
from engine.spec.pipeline import Manifest
from engine.spec.prompt_files import Reader, with_files
from engine.spec.readiness import unready
from engine.spec.tree import Node, NotPlain, from_plain, plain
from engine.spec.yaml_text import read_yaml

MOST_PROBLEMS = 100
"""More problems than anyone reads; finding the nearest known key for each takes time."""


def load_manifest(data: bytes, *, file: str, read: Reader | None = None) -> Manifest:
    """The manifest that a file's bytes say.

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
    """The manifest that plain Python values say; problems stand at 1:1 and name their key.

    Raises:
        SpecError: With every problem found.
    """
    try:
        root = from_plain(values)
    except NotPlain as error:
        problem = Finding(error.path, str(error)).placed(_NOTHING, file=file)
        raise SpecError([cleaned(problem)]) from None
    return _manifest(root, [], file=file, read=read)


_NOTHING = from_plain({})


def _manifest(
    root: Node | None, problems: list[SpecProblem], *, file: str, read: Reader | None
) -> Manifest:
    if root is None:
        raise SpecError(_sorted(problems))
    root, unread = with_files(root, read)
    findings = [*_few(unread), *_few(check_manifest(root)), *_few(_not_ready(root))]
    try:
        manifest = Manifest.model_validate(plain(root))
    except ValidationError as error:
        found = [e for e in error.errors(include_url=False) if not is_echo(e)][:MOST_PROBLEMS]
        typed = [problem_of(e, root, Manifest, file=file) for e in found]
    else:
        if not problems and not findings:
            return manifest
        typed = []
    placed = [finding.placed(root, file=file) for finding in findings]
    raise SpecError(_sorted([*problems, *typed, *placed])[:MOST_PROBLEMS])


def _few(findings: Iterable[Finding]) -> Iterable[Finding]:
    return islice(findings, MOST_PROBLEMS)


def _not_ready(root: Node) -> Iterable[Finding]:
    return (Finding(path, f"cannot be done: {reason}") for path, reason in unready(root))


def _sorted(problems: list[SpecProblem]) -> list[SpecProblem]:
    return sorted(map(cleaned, problems), key=lambda problem: (problem.line, problem.column))
