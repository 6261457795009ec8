"""Test what many runs came to: one's own history, and one that a team shares."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.needs import need
from tests.support.postgres import Postgres, program, started
from tests.support.shells import Done, Shell

pytestmark = pytest.mark.long
PLAN = """
runtime: {{database: {{strategy: {strategy}}}}}
agents:
  writer:
    adapter: scripted
    script:
      steps:
        - write: {{path: new.txt, text: "{strategy}"}}
        - usage: {{usd: 0.25, input_tokens: 100, output_tokens: 20}}
        - result: "written"
  breaker: {{adapter: scripted, script: {{steps: [{{fail: "no idea"}}]}}}}
pipelines:
  - name: parser
    steps:
      - {{name: write, agent: writer, prompt: "Fix the quoted-field bug", check: test -f new.txt}}
      - {{name: break, agent: breaker, prompt: "Break it"}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    need("postgresql")
    with started() as server:
        yield server


def ran(shell: Shell, strategy: str) -> Done:
    (shell.folder / "plait.yaml").write_text(PLAN.format(strategy=strategy))
    done = shell.plait("run", "plait.yaml", "--headless", "--yes")
    assert done.code == 1, done.err
    landed = shell.plait("land", "write/worker_1")
    assert landed.code == 0, landed.err
    return done


def test_ones_own_history_is_searched_and_added_up_without_a_server(repository: Shell):
    assert repository.plait("history").err == "no attempt matches\n"
    ran(repository, "per_agent")
    found = repository.plait("history", "quoted")
    [line] = found.out.splitlines()
    for word in ("write/worker_1@1", "writer", "landed ", "$0.25", "Fix the quoted-field bug"):
        assert word in line, line
    assert repository.plait("history", "nowhere").out == ""
    [failed] = repository.plait("history", "--outcome", "failed", "--json").json()
    assert failed["person"] == "A"
    assert failed["attempt"]["step"] == "break"

    for path in repository.state.glob("history.db*"):
        path.unlink()
    assert repository.plait("history", "quoted").out == found.out  # made again from the journals

    rows = repository.plait("stats", "--json").json()
    by_agent = {row["name"]: row for row in rows}
    assert by_agent["writer"]["usd_per_landed"] == 0.25
    assert (by_agent["writer"]["first_checks"], by_agent["writer"]["first_passed"]) == (1, 1)
    assert (by_agent["breaker"]["success"], by_agent["breaker"]["landed"]) == (0, 0)
    table = repository.plait("stats", "--by", "step", "--since", "1d").out.splitlines()
    assert table[0].split()[:3] == ["runs", "attempts", "success"]
    assert {line.split()[0] for line in table[1:]} == {"write", "break"}
    assert repository.plait("stats", "--until", "1d").err == "no attempt matches\n"
    assert "expected a date" in repository.plait("stats", "--since", "soon").err
    assert "expected a number" in repository.plait("history", "-n", "0").err


def test_a_team_shares_a_history(repository: Shell, server: Postgres):
    repository.git("remote", "add", "origin", "git@example.org:team/parser.git")
    missing = repository.plait("db", "status")
    assert missing.code == 1
    assert "PLAIT_DATABASE_URL is not set" in missing.err
    alone = ran(repository, "shared")
    assert "the shared history is delayed: PLAIT_DATABASE_URL is not set" in alone.err
    assert "shared history delayed" not in repository.plait("status").out  # nobody delivers now
    repository.env["PLAIT_DATABASE_URL"] = server.database()
    assert "`plait db up`" in repository.plait("db", "status").err
    assert repository.plait("db", "up").out == "version 2, was 0\n"
    assert repository.plait("db", "up").out == "version 2, as before\n"

    ran(repository, "per_agent")
    assert repository.plait("history", "--team").out == ""
    ran(repository, "shared")
    found = repository.plait("history", "--team", "quoted").out.splitlines()
    assert len(found) == 2  # with what the first run could not deliver
    assert "example.org/team/parser A" in found[0]
    assert repository.plait("db", "push").out == "0 events delivered\n"
    assert repository.plait("db", "push", "--everything").out != "0 events delivered\n"
    [figures] = repository.plait("stats", "--team", "--by", "repository", "--json").json()
    assert (figures["name"], figures["runs"], figures["landed"]) == (
        *("example.org/team/parser", 3),
        3,
    )
    status = repository.plait("db", "status", "--json").json()
    assert (status["runs"], status["attempts"], status["to_look_at"]) == (3, 6, [])

    assert repository.plait("db", "prune", "--before", "1d").out == "0 runs removed\n"
    assert repository.plait("db", "prune", "--before", "0h").out == "3 runs removed\n"
    assert repository.plait("history", "--team").out == ""
    assert repository.plait("db", "push", "--again").code == 0
    assert repository.plait("history", "--team").out == ""
    assert len(repository.plait("history").out.splitlines()) == 6


def test_what_a_restored_database_lacks_is_delivered_again(repository: Shell, server: Postgres):
    url = repository.env["PLAIT_DATABASE_URL"] = server.database()
    repository.plait("db", "up")
    ran(repository, "shared")
    backup = subprocess.run([program("pg_dump"), url], check=True, capture_output=True).stdout
    repository.git("rm", "-q", "new.txt")
    repository.git("commit", "-qm", "gone")
    ran(repository, "shared")
    repository.plait("db", "push")
    whole = repository.plait("db", "status", "--json").json()
    assert (whole["runs"], whole["to_look_at"]) == (2, [])

    server.execute("DROP SCHEMA plait CASCADE", url)
    psql = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", url]
    subprocess.run(psql, input=backup, check=True, stdout=subprocess.DEVNULL)
    assert repository.plait("db", "status", "--json").json()["runs"] == 1
    assert repository.plait("db", "push").out == "0 events delivered\n"
    assert repository.plait("db", "push", "--again").out != "0 events delivered\n"
    restored = repository.plait("db", "status", "--json").json()
    assert restored == whole
    assert repository.plait("db", "push", "--again").out == "0 events delivered\n"


COMMITS = """
agents:
  worker: {adapter: command, argv: [sh, -c, "%s"]}
pipelines:
  - name: p
    steps: [{name: write, agent: worker, prompt: "Add two lines", check: "true"}]
"""
SCRIPT = "sed -i 1d a.txt; git commit -qam w1; echo 'a: b' >>a.txt; git commit -qam w2"


@pytest.mark.parametrize("style", ["merge", "squash", "rebase"])
def test_a_line_is_traced_to_the_attempt_that_wrote_it(repository: Shell, style: str):
    name = "-c user.name=W -c user.email=w@x"
    script = SCRIPT.replace("git commit", f"git {name} commit")
    (repository.folder / "plait.yaml").write_text(COMMITS % script)
    assert repository.plait("run", "plait.yaml", "--headless", "--yes").code == 3
    landed = repository.plait("land", "write/worker_1", "--style", style)
    assert landed.code == 0, landed.err
    file = repository.folder / "a.txt"
    file.write_text(f"mine\n{file.read_text()}later\n")
    repository.git("commit", "-qm", "later", "a.txt")
    file.write_text(f"{file.read_text()}loose\n")

    [written] = repository.plait("blame", "a.txt:4", "--json").json()
    run = repository.plait("runs", "--json").json()[0]["run"]
    landing, attempt = written["landing"], written["hit"]["attempt"]
    assert (landing["run"], landing["worker"], landing["attempt"]) == (run, "write/worker_1", 1)
    assert landing["check"] == "passed: true"
    assert (attempt["agent"], attempt["prompt"]) == ("worker", "Add two lines")
    assert attempt["landed"] == landing["commit"]

    told = repository.plait("blame", "a.txt").out
    for words in (
        "a.txt:1  ",
        "a.txt:4  ",
        f"write/worker_1@1 of run {run}",
        "prompt: Add two lines",
        "written by worker",
        "a.txt:6  not committed",
    ):
        assert words in told, told
    assert told.count("prompt:") == 1
    others = repository.plait("blame", "a.txt:1-3", "--json").json()
    assert [one["landing"] for one in others] == [None, None]
    (repository.state / "history.db").unlink()
    shutil.rmtree(repository.folder / ".git" / "plait" / "runs")
    if style != "rebase":
        assert "no history here contains its run" in repository.plait("blame", "a.txt:4").out


def test_a_place_that_is_none_is_refused(repository: Shell):
    assert repository.plait("blame", "nowhere.txt").code == 1
    assert repository.plait("blame", "a.txt:99").code == 1
    assert repository.plait("blame", "/etc/passwd").code == 2
