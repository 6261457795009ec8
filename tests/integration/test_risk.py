"""The files of a change by risk: each reason is seen in a real repository, and none is made up."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from anyio import to_thread

from engine.git.runner import Repo
from engine.messages.merging import FileRisk
from engine.messages.results import Change
from engine.review.risks.coverage import Coverage, read_coverage
from engine.review.risks.judging import risks
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
    coverage = await to_thread.run_sync(read_coverage, path)
    return {one.path: one for one in await risks(repo, change, target=target, coverage=coverage)}


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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with some files, two of which have one name."""
    for name in ("a.py", "src/a.py", "src/b.py", "pkg/tested.py", "tests/deep/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_report_of_another_checkout_has_one_folder_before_all_names(project: Path):
    lines = "".join(f"SF:/home/ci/{name}\nDA:7,0\n" for name in ("src/a.py", "src/b.py"))
    (project / "lcov.info").write_text(f"{lines}SF:/home/ci/src/gone/a.py\nDA:9,0\n")
    coverage = read_coverage(project)
    assert dict(coverage.missed) == {"src/a.py": {7}, "src/b.py": {7}}


@pytest.mark.parametrize(
    "of", ["SF:src/a.py\nDA:7,0\nSF:a.py\nDA:1,1\n", "SF:{}/src/a.py\nDA:7,0\nSF:{}/a.py\nDA:1,1\n"]
)
def test_a_file_is_never_taken_for_another_that_ends_like_it(project: Path, of: str):
    (project / "lcov.info").write_text(of.replace("{}", str(project)))
    assert dict(read_coverage(project).missed) == {"src/a.py": {7}, "a.py": frozenset()}


@pytest.mark.parametrize(
    "name", ["b.py", "deep/a.py", "../src/a.py", "/elsewhere/c.py", "x" * 9000]
)
def test_a_name_that_is_no_file_of_the_project_says_nothing(project: Path, name: str):
    (project / "lcov.info").write_text(f"SF:{name}\nDA:7,0\n")
    assert dict(read_coverage(project).missed) == {}


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "-1", "", "1e3"])
def test_what_is_no_number_of_a_line_is_passed_over(project: Path, number: str):
    (project / "lcov.info").write_text(f"SF:a.py\nDA:{number},0\nDA:3,0\n")
    assert read_coverage(project).of("a.py") == {3}


def test_a_link_in_place_of_a_report_is_not_followed(project: Path):
    (project / "real").write_text("SF:a.py\nDA:3,0\n")
    (project / "lcov.info").symlink_to("real")
    assert read_coverage(project).name == ""


@pytest.mark.parametrize("sources", [["{}/pkg"], ["pkg"], ["{}/src", "{}/pkg"]])
def test_a_report_names_files_below_its_sources(project: Path, sources: list[str]):
    said = "".join(f"<source>{one.replace('{}', str(project))}</source>" for one in sources)
    (project / "coverage.xml").write_text(f"{said}{COBERTURA}")
    assert dict(read_coverage(project).missed) == {"pkg/tested.py": {2}}


def test_a_name_below_two_sources_says_nothing(project: Path):
    said = "<source>src</source><source>tests/deep</source>"
    (project / "coverage.xml").write_text(f"{said}{COBERTURA.replace('tested.py', 'a.py')}")
    assert dict(read_coverage(project).missed) == {}


async def test_a_target_that_is_gone_leaves_the_other_reasons(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "r")
    base, head = built.commit(START, "start"), built.commit(CHANGED, "change")
    repo = await Repo.open(tmp_path / "r", built.environment)
    change = Change(base=base, head=head)
    first, *_ = await risks(repo, change, target="gone", coverage=Coverage())
    assert first.reasons == ("adds what looks like a secret: github-token",)
