"""Tell which files of a change deserve the first look, and why in words.

Each reason stands for itself and says what was seen. The order is a help for the eye: nothing is
allowed or refused by it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from anyio import to_thread

from engine.errors import GitFailed, WorkspaceError
from engine.git.diff import FileChange, FileHunk, changed_files, file_patches
from engine.git.runner import Repo
from engine.messages.merging import FileRisk
from engine.messages.results import Change
from engine.redaction import Redactor
from engine.review.risks.coverage import Coverage

_MOST_COMMITS = 200
_SIZE, _NAMED = 50, 4
_LICENSE = re.compile(r"copyright|spdx-license|licen[cs]ed under", re.IGNORECASE)
_LICENSE_FILE = re.compile(
    r"(?:.*/)?(?:LICEN[CS]E|COPYING|NOTICE)S?(?:[-_][\w-]+(?:\.\d+)*)?(?:\.(?:txt|md|rst|html|lesser))?",
    re.IGNORECASE,
)
_TEST = re.compile(
    r"(?:.*/)?(?:tests?|spec|__tests__)/.*|.*(?:_test|\.test|\.spec)\.\w+|(?:.*/)?test_[^/]*\.\w+"
)
_PUBLIC = re.compile(
    r"(?:async )?def ([a-z]\w*)|class ([A-Z]\w*)"  # Python
    r"|(?:pub|export)(?:\([a-z]+\))? (?:default |async |unsafe |abstract |declare )*"
    r"(?:fn|struct|enum|trait|mod|type|function|class|interface|let|const|var|static) ([A-Za-z]\w*)"
    r"|func (?:\([^)]*\) )?([A-Z]\w*)|type ([A-Z]\w*) "  # Go
    r"|\s*public (?:[\w<>\[\],.?]+ )*([A-Za-z]\w*)\("  # Java, C#
)


class _Reason(NamedTuple):
    weight: float
    said: str


async def risks(
    repo: Repo, change: Change, *, target: str, coverage: Coverage
) -> tuple[FileRisk, ...]:
    """Return the files of a change, those first that deserve it most.

    Raises:
        WorkspaceError: There is no change.
    """
    if change.base is None or change.head is None:
        raise WorkspaceError("there is no change to look at")
    sides = (change.base, change.head)
    files = await changed_files(repo, *sides)
    patches = await file_patches(repo, files, sides)
    churn = await _churn(repo, target)

    def look() -> tuple[FileRisk, ...]:
        pairs = zip(files, patches, strict=True)
        found = [_risk(file, patch.hunks, churn, coverage) for file, patch in pairs]
        return tuple(sorted(found, key=lambda one: (-one.score, one.path)))

    return await to_thread.run_sync(look)


def _risk(
    file: FileChange, hunks: Sequence[FileHunk], churn: "_Churn", coverage: Coverage
) -> FileRisk:
    before = os.fsdecode(file.old_path or file.path)
    lines = list(_lines(hunks))
    reasons = [*_of_text(before, lines), *_of_tests(lines, coverage.of(before), coverage.name)]
    reasons += _of_size((file.added or 0) + (file.removed or 0))
    reasons += churn.of(before)
    return judged(os.fsdecode(file.path), reasons)


def judged(path: str, reasons: Sequence[_Reason]) -> FileRisk:
    """Return a file with its reasons, the weightiest first."""
    ranked = sorted(reasons, key=lambda reason: -reason.weight)
    score = sum(reason.weight for reason in ranked)
    return FileRisk(path=path, score=round(score, 1), reasons=tuple(one.said for one in ranked))


class _Changed(NamedTuple):
    """A changed line: its mark, its text, and its number on the base's side."""

    mark: str
    text: str
    old: int


def _lines(hunks: Sequence[FileHunk]) -> Iterator[_Changed]:
    for hunk in hunks:
        at = hunk.old[0]
        for line in hunk.lines:
            if line.mark != " ":
                yield _Changed(line.mark, line.text.decode(errors="replace"), at)
            at += line.mark != "+"


def _of_text(path: str, lines: Sequence[_Changed]) -> Iterator[_Reason]:
    """Yield what the lines say: secrets, licenses, public names."""
    added = "\n".join(line.text for line in lines if line.mark == "+")
    redactor = Redactor()
    redactor.text(added)
    if kinds := redactor.counts:
        yield _Reason(100.0 * len(kinds), f"adds what looks like a secret: {', '.join(kinds)}")
    if _LICENSE_FILE.fullmatch(path) or any(_LICENSE.search(line.text) for line in lines):
        yield _Reason(40.0, "changes a license or copyright line")
    kept = {line.text for line in lines if line.mark == "+"}  # what only moved is as it was
    gone = (line.text for line in lines if line.mark == "-" and line.text not in kept)
    found = filter(None, map(_PUBLIC.match, gone))
    names = dict.fromkeys(name for one in found for name in one.groups() if name)
    if names and not _TEST.fullmatch(path):
        few = ", ".join(list(names)[:_NAMED]) + ("…" if len(names) > _NAMED else "")
        yield _Reason(min(10.0 * len(names), 40.0), f"changes public names: {few}")


def _of_tests(lines: Sequence[_Changed], missed: frozenset[int], name: str) -> Iterator[_Reason]:
    count = len({line.old for line in lines if line.mark == "-"} & missed)
    if count:
        said = f"changes {count} line{'s' * (count != 1)} that no test reached ({name})"
        yield _Reason(min(2.0 * count, 30.0), said)


def _of_size(size: int) -> Iterator[_Reason]:
    if size >= _SIZE:
        yield _Reason(min(size / 20, 30.0), f"{size} lines")


class _Churn(NamedTuple):
    """The newest commits of a branch: how many they are, and how many of them touched each file."""

    commits: int
    touched: Counter[str]

    def of(self, path: str) -> Iterator[_Reason]:
        """Yield why a file that is changed often deserves a look."""
        count = self.touched[path]
        if count > 1:
            said = f"touched by {count} of the last {self.commits} commits"
            yield _Reason(min(float(count), 20.0), said)


async def _churn(repo: Repo, target: str) -> _Churn:
    """Count the newest commits that touched each file; none where the branch is gone."""
    words = ("log", "-z", "--name-only", "--no-renames", "--no-merges", f"-n{_MOST_COMMITS}")
    try:
        listing = await repo.read(*words, "--format=%x01", target, "--")
    except GitFailed:
        return _Churn(0, Counter())
    names = [os.fsdecode(name.strip(b"\n")) for name in listing.split(b"\0")]
    return _Churn(names.count("\1"), Counter(names))
