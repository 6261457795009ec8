"""A manifest that lets workers live elsewhere: what comes home, and what is refused beforehand."""

import pytest

from tests.support.shells import Shell

PLAN = """
runtime: {sites: {default: child}}
workspace: {include: [secret], setup: "echo set up > made"}
agents:
  writer:
    adapter: scripted
    script:
      steps:
        - shell: "cat secret made > out.txt; mkdir -p kept; cp out.txt kept; echo x >> a.txt"
        - result: "done"
pipelines:
  - name: p
    steps:
      - {name: make, agent: writer, prompt: "make it", artifacts: [kept], check: "grep x a.txt"}
      - {name: use, dependencies: [make], run: "cat kept/out.txt; tail -1 a.txt"}
"""


@pytest.fixture
def planned(repository: Shell) -> Shell:
    repository.env.clear()
    (repository.folder / "plait.yaml").write_text(PLAN)
    (repository.folder / ".gitignore").write_text("secret\nmade\nout.txt\nkept\n")
    repository.git("add", ".")
    repository.git("commit", "-qm", "plan")
    (repository.folder / "secret").write_text("a secret\n")
    return repository


def test_workers_of_a_manifest_that_says_so_live_on_a_mirror(planned: Shell):
    assert planned.plait("validate", "plait.yaml").code == 0
    done = planned.plait("run", "plait.yaml", "--headless", "--json")
    report = done.events[-1]["report"]
    assert report["steps"]["use"]["worker_results"][0]["phase"] == "FINISHED", done.err
    said = planned.plait("logs", "use/worker_1").out
    assert [line.strip() for line in said.splitlines()] == ["a secret", "set up", "x"]
    sites = [path for path in (planned.state / "sites").iterdir() if path.name.startswith("child-")]
    assert len(sites) == 1
    (kept,) = planned.folder.glob(".git/plait/runs/*/make/worker_1/artifacts_1/kept/out.txt")
    assert kept.read_text() == "a secret\nset up\n"
    assert len(planned.git("worktree", "list").splitlines()) == 1
    assert planned.plait("land", "make/worker_1").code == 0
    assert (planned.folder / "a.txt").read_text() == "one\ntwo\nthree\nx\n"


def test_each_step_may_name_its_site(planned: Shell):
    file = planned.folder / "plait.yaml"
    text = PLAN.replace("default: child", "default: local")
    file.write_text(text.replace("{name: make,", "{name: make, site: child,"))
    planned.git("commit", "-aqm", "sites of steps")
    done = planned.plait("run", "plait.yaml", "--headless", "--json")
    assert done.events[-1]["report"]["steps"]["use"]["worker_results"][0]["phase"] == "FINISHED"
    steps = planned.plait("status", "--json").json()["steps"]
    lives = {step["name"]: [w["site"] for w in step["workers"]] for step in steps}
    assert lives == {"make": ["child"], "use": [""]}


def test_what_cannot_be_carried_is_refused_before_and_when_it_starts(planned: Shell):
    (planned.folder / ".gitmodules").write_text("")
    planned.git("add", ".gitmodules")
    planned.git("commit", "-qm", "submodules")
    for words in (("validate", "plait.yaml"), ("run", "plait.yaml", "--headless")):
        done = planned.plait(*words)
        assert done.code not in {0, 3}, words
        assert "submodules cannot move" in done.err, words
    assert "no run here yet" in planned.plait("status").err


def test_only_a_repository_has_another_site(shell: Shell):
    shell.env.clear()
    (shell.folder / "plait.yaml").write_text(PLAN)
    done = shell.plait("validate", "plait.yaml")
    assert (done.code, "only workers of a git repository" in done.err) == (2, True)
