"""`plait land`, `check` and `resolve` on real runs: the queue, the decisions, the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.phases import Phase
from tests.support.engine_runs import scripted
from tests.support.merging_runs import (
    SOURCE,
    MergingPlace,
    changed,
    conflicted,
    land,
    reviewed,
    writes,
)
from tui.commands.base import dispatch

pytestmark = pytest.mark.long
WHO = "s2/worker_1"
MINE, THEIRS = changed(3, "mine"), changed(3, "theirs")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MergingPlace:
    made = MergingPlace(tmp_path)
    for name in ("PLAIT_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, made.environment[name])
    return made


class Shell:
    """Second shells on a place: each word list is one command."""

    def __init__(self, place: MergingPlace, capsys: pytest.CaptureFixture[str]) -> None:
        self._place, self._capsys = place, capsys
        self.out = self.err = ""

    def __call__(self, name: str, *words: str) -> int:
        self._capsys.readouterr()
        try:
            code = dispatch(name, ["-C", str(self._place.project), *words])
        except SystemExit as left:
            code = 2 if isinstance(left.code, str) else int(left.code or 0)
        said = self._capsys.readouterr()
        self.out, self.err = said.out, said.err
        return code

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def plait(place: MergingPlace, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(place, capsys)


def prepared(place: MergingPlace, prepare: Callable[..., Any], *texts: Any, **more: Any) -> None:
    """A run brought to where the commands begin, its engine gone again."""

    async def play() -> None:
        async with place.engine() as engine:
            await prepare(engine, place, *texts, **more)

    anyio.run(play)


async def _reviewed(engine: Any, place: MergingPlace, *texts: Any, **more: Any) -> None:
    await reviewed(engine, place.workers(*texts, **more))


def phases(plait: Shell) -> list[str]:
    assert plait("status", "--json") == 0
    return [w["phase"] for step in plait.json["steps"] for w in step["workers"]]


def test_conflicts_are_shown_decided_and_landed_from_a_shell(place: MergingPlace, plait: Shell):
    prepared(place, conflicted, MINE, THEIRS)
    assert plait("resolve", WHO, "--show") == 3
    assert "code  contents: 1 hunk open" in plait.out
    assert plait("resolve", WHO, "--show", "--json") == 3
    assert plait.json["files"][0]["hunks"][0]["line"] == 3
    assert plait("resolve", WHO, "--incoming", "nothing") == 2
    assert plait("resolve", WHO, "--both", "code", "--show") == 0
    assert plait("resolve", WHO, "--undo", "--show") == 3
    assert plait("resolve", WHO, "--both", "code") == 0
    assert plait.out.strip() == place.built.rev("main")
    assert place.text() == changed(3, "mine\ntheirs")
    assert phases(plait) == ["LANDED", "LANDED"]


def test_a_file_is_written_from_another(place: MergingPlace, plait: Shell, tmp_path: Path):
    prepared(place, conflicted, MINE, THEIRS)
    (tmp_path / "mine").write_text("by hand\n")
    assert (
        plait("resolve", WHO, "--write", "code", str(tmp_path / "mine"), "--delete", "other") == 0
    )
    assert place.text() == "by hand\n"
    assert place.built.git("ls-tree", "--name-only", "main") == "code"


def test_several_land_in_plan_order_and_one_that_cannot_is_set_aside(
    place: MergingPlace, plait: Shell
):
    texts = (MINE, THEIRS, {"other": changed(5, "third")})
    prepared(place, _reviewed, *texts)
    assert plait("land", "s1", "nobody") == 2
    assert "'nobody' is not a worker of this run\nName one of: s1/worker_1" in plait.err
    assert plait("land", "s3", "s2", "s1", "--json") == 3
    rows = plait.json
    assert [(row["worker"][:2], row["landed"]) for row in rows] == [
        ("s1", True),
        ("s2", False),
        ("s3", True),
    ]
    assert rows[1]["conflicts"] == ["code"]
    assert (
        "s2/worker_1 conflicts with the target in code\nResolve them with `plait review "
        in plait.err
    )
    assert (place.text(), place.text("other")) == (MINE, changed(5, "third"))
    assert phases(plait) == ["LANDED", "CONFLICTED", "LANDED"]


def test_fewest_conflicts_first_lets_more_land(place: MergingPlace, plait: Shell):
    """The first in the plan would conflict with what the user has put on the target since."""
    place_texts = (changed(2, "first"), {"other": changed(2, "second")}, {"other": changed(9, "x")})
    prepared(place, _reviewed, *place_texts)
    place.built.commit({"code": changed(2, "by the user")}, "meanwhile")
    assert plait("land", "s1", "s2", "s3", "--order", "fewest-conflicts", "--json") == 3
    assert [row["worker"][:2] for row in plait.json] == ["s2", "s3", "s1"]
    assert "s1/worker_1: 1 conflict expected" in plait.err
    assert place.text("other") == changed(9, "x", changed(2, "second"))


def test_a_check_is_run_again_on_the_tree_that_would_land(place: MergingPlace, plait: Shell):
    """Each change passes alone; what the user has put on the target since makes them fail."""
    check = "! grep -q forbidden other"
    prepared(place, _reviewed, MINE, check=check)
    assert plait("check", "s1/worker_1", "--json") == 0
    tree = plait.json["tree"]
    assert place.built.show(tree, "code").decode() == MINE
    place.built.commit({"other": "forbidden\n"}, "meanwhile")
    assert plait("check", "s1/worker_1", "--json") == 1
    assert place.built.show(plait.json["tree"], "other").decode() == "forbidden\n"
    assert plait("check", "s1/worker_1", "--own") == 0
    assert f"passed in its own tree ({tree})" in plait.out
    assert plait("status", "--json") == 0
    assert plait.json["steps"][0]["workers"][0]["check"]["tree"] == tree


def test_a_check_is_really_run_again_and_not_remembered(place: MergingPlace, plait: Shell):
    counts = f"echo ran >> {place.outside}/runs"
    prepared(place, _reviewed, MINE, check=counts)
    before = (place.outside / "runs").read_text().count("ran")
    for _ in range(2):
        assert plait("check", "s1") == 0
    assert (place.outside / "runs").read_text().count("ran") == before + 2


def test_the_tree_that_decisions_make_is_checked_before_it_lands(place: MergingPlace, plait: Shell):
    prepared(
        place, conflicted, MINE, THEIRS, check="! grep -q ^theirs code || ! grep -q ^mine code"
    )
    assert plait("check", WHO) == 2
    assert "still to resolve: code" in plait.err
    assert plait("resolve", WHO, "--both", "--show") == 0
    assert plait("check", WHO) == 1
    assert "failed on tree" in plait.out
    assert plait("resolve", WHO, "--undo", "--incoming", "--show") == 0
    assert plait("check", WHO) == 0
    assert phases(plait) == [Phase.LANDED, Phase.CONFLICTED]


def test_what_has_no_conflicts_is_refused_in_words(place: MergingPlace, plait: Shell):
    prepared(place, _reviewed, SOURCE + "more\n")
    assert plait("resolve", "s1", "--target") == 2
    assert "REVIEWING: it has no conflicts" in plait.err
    assert plait("check", "s1") == 2
    assert "has no check" in plait.err


def test_several_land_on_a_branch_that_they_make(place: MergingPlace, plait: Shell):
    prepared(place, _reviewed, MINE, {"other": changed(5, "second")})
    before = place.built.rev("main")
    assert plait("land", "s2", "s1", "--to", "fresh") == 0
    assert (place.text(revision="fresh"), place.built.rev("main")) == (MINE, before)
    assert place.text("other", "fresh") == changed(5, "second")


def lines_of(place: MergingPlace) -> list[str]:
    return (place.outside / "checks").read_text().split()


@pytest.mark.parametrize(("bad", "checks"), [(0, 1), (3, 5)])
def test_a_batch_is_checked_at_once_and_halved_until_the_one_that_fails_is_found(
    place: MergingPlace, plait: Shell, bad: int, checks: int
):
    """The check of the whole, of both halves, and of each of the half that fails."""
    texts = [{f"f{n}": "bad\n" if n == bad else "good\n"} for n in range(1, 5)]
    count = place.outside / "checks"
    check = f"if test -e {place.outside}/on; then echo x >> {count}; ! grep -q bad f*; fi"
    prepared(place, reviewed_with(check), *texts)
    (place.outside / "on").touch()
    names = [f"s{n}/worker_1" for n in range(1, 5)]
    code = plait("land", *names, "--batch", "--json")
    landed = [row["worker"] for row in plait.json if row["landed"]]
    assert landed == [name for name in names if name != f"s{bad}/worker_1"]
    assert code == (1 if bad else 0)
    assert len(lines_of(place)) == checks
    said = place.built.git("log", "--first-parent", "--format=%(trailers:key=Plait-Check)", "main")
    assert "(as one of a batch)" in said
    last = place.built.git("log", "-1", "--format=%(trailers:key=Plait-Check)", "main")
    assert "(as one of a batch)" not in last


def reviewed_with(check: str) -> Callable[..., Any]:
    async def prepare(engine: Any, place: MergingPlace, *texts: Any) -> None:
        await reviewed(engine, place.workers(*texts, check=check))

    return prepare


def test_a_run_toward_no_branch_is_refused_before_anything_begins(
    place: MergingPlace, plait: Shell
):
    words = ("run", "--headless", "-a", "scripted", "-p", "say hi")
    assert plait(*words, "--target", "mian") == 2
    assert "there is no branch 'mian'; did you mean 'main'?" in plait.err
    assert plait(*words, "--target", "nosuch") == 2
    assert "there is no branch 'nosuch'\nTo create it, run `git branch nosuch`" in plait.err
    runs = Path(place.built.git("rev-parse", "--absolute-git-dir"), "plait/runs")
    assert not runs.exists() or not list(runs.iterdir())


def test_what_was_seen_is_named_and_anything_else_is_refused_with_exit_2(
    place: MergingPlace, plait: Shell
):
    prepared(place, _reviewed, changed(1, "one", changed(12, "twelve")), check="true")
    assert plait("diff", "s1/worker_1") == 0
    tree = plait.err.split("this is tree ")[1].split(";")[0]
    assert plait("drop", "s1/worker_1", "code:1", "--seen", tree[:12]) == 0
    for words in (
        ("approve", "s1/worker_1"),
        ("reject", "s1/worker_1"),
        ("choose", "s1/worker_1"),
        ("land", "s1/worker_1"),
        ("retry", "s1/worker_1"),
        ("check", "s1/worker_1"),
        ("drop", "s1/worker_1", "--nothing"),
    ):
        assert plait(words[0], *words[1:], "--seen", tree) == 2, words
        assert "changed since you looked" in plait.err, words
    assert plait("approve", "s1/worker_1", "--seen", "nothing") == 2
    assert plait("land", "s1", "s1/worker_1", "--seen", tree) == 2
    assert phases(plait) == ["REVIEWING"]
    assert plait("land", "s1/worker_1") == 0
    assert place.text() == changed(12, "twelve")


def test_names_that_hide_are_spelled_out_and_json_keeps_them(place: MergingPlace, plait: Shell):
    texts = {"calc\x07.py": "bell\n", "calc.py": "plain\n", "a\u202eb": "turned\n"}
    prepared(place, _reviewed, texts, prompt="Ring\x07 the\u202e bell")
    assert plait("diff", "s1/worker_1", "--stat") == 0
    assert r"calc\x07.py" in plait.out
    assert r"a\u202eb" in plait.out
    assert plait.out.count(" calc.py") == 1
    assert plait("drop", "s1/worker_1") == 0
    assert r"calc\x07.py:1" in plait.out
    assert plait("drop", "s1/worker_1", r"calc\x07.py:1") == 0
    assert plait("land", "s1/worker_1") == 0
    assert sorted(
        place.built.git("ls-tree", "-z", "--name-only", "main").split("\0")[:-1]
    ) == sorted(["a\u202eb", "calc.py", "code", "other"])
    subject = place.built.git("log", "-1", "--format=%s", "main").strip()
    assert subject == r"s1/worker_1: Ring\x07 the\u202e bell"


LONG = "yes $(head -c 9000 /dev/zero | tr '\\0' x) | head -c 70000000 > long"
COMMITS = "head -c 99 /dev/zero > blob && git add -A && git commit -qm long"


def test_a_change_too_long_to_be_read_lands_only_by_an_explicit_word(
    place: MergingPlace, plait: Shell
):
    steps = [
        {"name": "s1", "agent": scripted(shell(f"{LONG} && {COMMITS}"), {"result": "done"})},
        {"name": "s2", "agent": writes(MINE)},
    ]

    async def play() -> None:
        async with place.engine(within_s=60) as engine:
            await reviewed(engine, place.manifest(*steps, isolation_strategy="worktree"))

    anyio.run(play)
    assert plait("status") == 0
    assert "(1 binary, diff cut)" in plait.out
    assert plait("land", "s1", "s2", "--json") == 1
    assert [row["landed"] for row in plait.json] == [False, True]
    assert "too long to show in full" in plait.err
    assert "--despite-cut" in plait.err
    assert plait("diff", "s1", "--stat") == 0
    tree = plait.err.split("this is tree ")[1][:12]
    assert plait("land", "s1", "--seen", "0" * 12) == 2
    assert plait("land", "s1", "--seen", tree) == 0
    assert plait("undo", "s1") == 0
    assert plait("land", "s1", "--despite-cut") == 0


def shell(command: str) -> dict[str, Any]:
    return {"shell": {"command": command, "must": True}}


def test_what_is_decided_for_another_change_than_was_seen_is_refused(
    place: MergingPlace, plait: Shell
):
    prepared(place, conflicted, MINE, THEIRS)
    before = place.built.rev("main")
    assert plait("resolve", WHO, "--incoming", "--seen", "0" * 12) == 2
    assert "has changed since you looked" in plait.err
    assert plait("resolve", WHO, "--show") == 3
    assert place.built.rev("main") == before
    tree = place.built.rev(f"plait/{_run_of(place)}/{WHO}^{{tree}}")
    assert plait("resolve", WHO, "--incoming", "--seen", tree[:12]) == 0


def _run_of(place: MergingPlace) -> str:
    (name,) = {
        ref.split("/")[1]
        for ref in place.built.git(
            "branch", "--list", "plait/*", "--format=%(refname:short)"
        ).split()
    }
    return name


def test_a_pull_request_is_made_only_of_what_was_seen(place: MergingPlace, plait: Shell):
    place.built.git("init", "-q", "--bare", str(place.project.parent / "there.git"))
    place.built.git("remote", "add", "origin", str(place.project.parent / "there.git"))
    prepared(place, _reviewed, MINE)
    assert plait("pr", "s1", "--seen", "0" * 12) == 2
    assert "s1/worker_1 has changed since you looked" in plait.err
    assert not place.built.git("ls-remote", "origin")
    tree = place.built.rev(f"plait/{_run_of(place)}/s1/worker_1^{{tree}}")
    assert plait("pr", "s1", "--seen", tree[:12], "--dry-run") == 0


async def _lock_clashes(engine: Any, place: MergingPlace) -> None:
    """A run whose second worker conflicts in a file, and in another that is made of that one."""
    sides = [{"code": text, "code.lock": text[::-1]} for text in (MINE, THEIRS)]
    manifest = place.workers(*sides)
    manifest["review"] = {"regenerate": {"*.lock": "grep -c . code > code.lock"}}
    run = await reviewed(engine, manifest)
    assert await land(engine, run, "s1/worker_1") is Phase.LANDED
    assert await land(engine, run, WHO) is Phase.CONFLICTED


def test_generated_files_are_made_once_the_rest_is_decided(place: MergingPlace, plait: Shell):
    prepared(place, _lock_clashes)
    assert plait("resolve", WHO, "--show") == 3
    assert "regenerate it with `grep -c . code > code.lock` (--regenerate)" in plait.out
    assert plait("resolve", WHO, "--regenerate", "--show") != 0
    assert "generated from other files: resolve code first" in plait.err
    assert plait("resolve", WHO, "--both", "code", "--regenerate") == 0
    assert place.text("code.lock") == "13\n"
