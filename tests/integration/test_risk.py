"""The files of a change by risk: each reason is seen in a real repository, and none is made up."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from engine.git.runner import Repo
from engine.messages.merging import FileRisk
from engine.messages.results import Change
from engine.review.risks.judging import read_coverage, risks
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio
CODE = "def parse(text):\n    return text\n\n\ndef _own():\n    return 1\n"
TOKEN = "ghp_" + "a1B2" * 9
START = {
    "plain.py": CODE,
    "api.py": CODE,
    "tests/test_api.py": CODE,
    "header.py": "# Copyright 2026 Ann\n" + CODE,
    "keys.py": CODE,
    "often.py": CODE,
    "large.py": CODE,
    "tested.py": CODE,
    "LICENSE": "free\n",
    "license_check.py": CODE,
    "test_top.py": CODE,
    "moved.py": CODE,
    "notes.py": CODE,
}
CHANGED: Mapping[str, str] = {
    "plain.py": CODE.replace("return 1", "return 2"),
    "api.py": CODE.replace("parse(text)", "parse(text, size)").replace("_own()", "_own(a)"),
    "tests/test_api.py": CODE.replace("parse(text)", "parse(text, size)"),
    "header.py": "# Copyright 2026 Bea\n" + CODE,
    "keys.py": CODE + f'TOKEN = "{TOKEN}"\n',
    "often.py": CODE.replace("return 1", "return 3"),
    "large.py": CODE + "x = 1\n" * 60,
    "tested.py": CODE.replace("return text", "return text.strip()"),
    "LICENSE": "not free\n",
    "license_check.py": CODE.replace("return 1", "return 2"),
    "test_top.py": CODE.replace("parse(text)", "parse(text, size)"),
    "moved.py": "def _own():\n    return 1\n\n\ndef parse(text):\n    return text\n",
    "notes.py": CODE + 'SAID = "[redacted github-token 1]"\n',
}
LCOV = "SF:tested.py\nDA:1,1\nDA:2,0\nend_of_record\nSF:plain.py\nDA:1,0\nend_of_record\n"
COBERTURA = """<coverage><class name="t" filename="tested.py"><lines>
<line number="1" hits="1"/><line number="2" hits="0"/></lines></class></coverage>"""


async def found(path: Path, **files: str) -> dict[str, FileRisk]:
    """The risk of each file of one change, in order."""
    built = RepositoryBuilder(path)
    base = built.commit(START, "start")
    for number in range(3):
        built.commit({"often.py": CODE.replace("return 1", f"return 1{number}")}, "again")
    target = built.commit({"often.py": CODE}, "back")
    head = built.commit(CHANGED, "change")
    for name, text in files.items():
        (path / name.replace("_", ".")).write_text(text)
    repo = await Repo.open(path, built.environment)
    change = Change(base=base, head=head)
    return {one.path: one for one in await risks(repo, change, target=target, project=path)}


async def test_each_reason_is_told_of_the_file_that_has_it_and_of_no_other(tmp_path: Path):
    said = {path: one.reasons for path, one in (await found(tmp_path / "r")).items()}
    assert said == {
        "keys.py": ("adds what looks like a secret: github-token",),
        "LICENSE": ("changes a license or copyright line",),
        "header.py": ("changes a license or copyright line",),
        "api.py": ("changes public names: parse",),
        "often.py": ("touched by 5 of the last 5 commits",),
        "large.py": ("60 lines",),
        "plain.py": (),
        "tested.py": (),
        "tests/test_api.py": (),
        "license_check.py": (),
        "test_top.py": (),
        "moved.py": (),
        "notes.py": (),
    }


async def test_the_riskiest_stands_first(tmp_path: Path):
    assert list(await found(tmp_path / "r"))[:2] == ["keys.py", "LICENSE"]


@pytest.mark.parametrize(("name", "text"), [("lcov_info", LCOV), ("coverage_xml", COBERTURA)])
async def test_a_coverage_report_tells_of_changed_lines_that_no_test_reached(
    tmp_path: Path, name: str, text: str
):
    said = await found(tmp_path / "r", **{name: text})
    where = name.replace("_", ".")
    assert said["tested.py"].reasons == (f"changes 1 line that no test reached ({where})",)
    assert said["plain.py"].reasons == ()  # what it missed there was not changed


def test_a_project_without_a_report_and_one_that_is_none_say_nothing(tmp_path: Path):
    assert read_coverage(tmp_path).of("a.py") == frozenset()
    (tmp_path / "coverage.xml").write_bytes(b"\xff\x00 no report")
    assert read_coverage(tmp_path).of("a.py") == frozenset()


def test_a_report_may_know_a_file_by_a_longer_or_a_shorter_path(tmp_path: Path):
    (tmp_path / "lcov.info").write_text("SF:/home/ci/src/a.py\nDA:7,0\n")
    coverage = read_coverage(tmp_path)
    assert coverage.of("src/a.py") == {7}
    assert coverage.of("lib/a.py") == frozenset()


@pytest.mark.parametrize("of", ["SF:src/a.py\nDA:7,0\nSF:a.py\nDA:1,1\n", "SF:{}/a.py\nDA:1,1\n"])
def test_a_file_is_never_taken_for_another_that_ends_like_it(tmp_path: Path, of: str):
    also = f"SF:{tmp_path}/src/a.py\nDA:7,0\n"
    (tmp_path / "lcov.info").write_text(also + of.format(tmp_path))
    coverage = read_coverage(tmp_path)
    assert coverage.of("a.py") == frozenset()
    assert coverage.of("src/a.py") == {7}


def test_a_report_names_files_below_its_source(tmp_path: Path):
    (tmp_path / "coverage.xml").write_text(f"<source>{tmp_path}/pkg</source>{COBERTURA}")
    coverage = read_coverage(tmp_path)
    assert coverage.of("pkg/tested.py") == {2}
    assert coverage.of("other/tested.py") == frozenset()
