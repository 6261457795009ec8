"""An agent with a screen asks, a human takes it over and answers; the work lands."""

from collections.abc import Iterator

import pytest

from tests.support.console_story import console_story
from tests.support.ray_node import shared_node
from tests.support.shells import Shell, end_engine

pytestmark = pytest.mark.long

ASKER = r"""
printf '\033[?1049h\033[H\033[2J\033[1;34mAn agent with a screen\033[0m\nIt was told: %s\n' "$1"
printf '\033]9;Which name shall the file have?\007'
printf 'name> '
read name
echo made > "$name.txt"
printf '\033[?1049l'
echo "wrote $name.txt"
"""
PLAN = """
runtime: {sites: SITES}
agents:
  asker: {adapter: terminal, argv: [sh, ./asker.sh, "{prompt}"]}
pipelines:
  - name: p
    steps: [{name: ask, agent: asker, prompt: "make a file", check: "test -f hello.txt"}]
"""


@pytest.fixture(params=["local", "child", pytest.param("ray", marks=pytest.mark.needs("ray"))])
def sites(request: pytest.FixtureRequest, repository: Shell) -> str:
    """The sites of a manifest: this machine, a child, or a node of a cluster."""
    if request.param != "ray":
        return f"{{default: {request.param}}}"
    node = shared_node()
    repository.env.update(node.environment)
    return f'{{default: box, box: {{ray: {{address: "{node.address}"}}}}}}'


@pytest.fixture
def asking(repository: Shell, sites: str) -> Iterator[Shell]:
    """A repository with an agent that has a screen and asks on it."""
    (repository.folder / "asker.sh").write_text(ASKER)
    (repository.folder / "plait.yaml").write_text(PLAN.replace("SITES", sites))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "an agent")
    yield repository
    end_engine(repository)


def test_a_human_takes_an_agent_over_answers_in_its_terminal_and_lands(asking: Shell) -> None:
    with console_story(asking, "run", "plait.yaml", "--yes") as terminal:
        terminal.shows("ask/worker_1", "ASKS YOU", "Which name shall the file have?")
        terminal.do("fleet.take_over").shows("It was told: make a file", "gives back")
        terminal.press(b"hel")
        terminal.shows("name> hel")
        terminal.press(b"\x1d")
        terminal.shows("The terminal is the agent's again", "takes it over again")
        terminal.do("worker.take_over").shows("gives back")
        terminal.press(b"lo\r")
        terminal.shows("REVIEW", "its last screen", "wrote hello.txt")
        terminal.do("everywhere.quit_now")
        assert terminal.end() == 0
    landed = asking.plait("land", "ask/worker_1")
    assert landed.code == 0, landed.err
    assert asking.git("show", "HEAD:hello.txt") == "made\n"


def test_an_answer_from_another_shell_is_typed_for_the_agent(asking: Shell) -> None:
    with console_story(asking, "run", "plait.yaml", "--yes") as terminal:
        terminal.shows("Which name shall the file have?")
        done = asking.plait("answer", "ask/worker_1", "hello")
        assert done.code == 0, done.err
        terminal.shows("REVIEW").do("everywhere.quit_now")
        assert terminal.end() == 0


@pytest.mark.parametrize("sites", ["child"], indirect=True)
def test_a_shell_is_refused_before_it_starts_where_nobody_can_come_in(asking: Shell) -> None:
    with console_story(asking, "run", "plait.yaml", "--yes") as terminal:
        terminal.shows("Which name shall the file have?")
        terminal.do("fleet.terminal").shows("it runs at child, which you cannot enter from here")
        terminal.do("everywhere.quit_now")
        assert terminal.end() == 0
    said = asking.plait("shell", "ask/worker_1", "true")
    assert (said.code, "which you cannot enter" in said.err) == (2, True), said
    assert asking.plait("answer", "ask/worker_1", "hello").code == 0
