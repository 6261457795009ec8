"""Test what a worker costs in a repository of some size."""

from tests.support.shells import Shell

PLAN = """
agents:
  c: {adapter: command, argv: [sh, -c, "echo more >> f1; echo new > new"]}
pipelines:
  - name: p
    steps:
      - {name: a, agent: c, prompt: "x"}
"""
FILES = 300


def test_a_collection_reads_and_stores_only_what_was_changed(repository: Shell):
    for i in range(FILES):
        (repository.folder / f"f{i}").write_text(f"content of {i}\n" * 20)
    (repository.folder / "plait.yaml").write_text(PLAN)
    repository.git("add", ".")
    repository.git("commit", "-qm", "many files")
    before = objects(repository)
    done = repository.plait("run", "plait.yaml", "--headless")
    assert done.code == 3, done.err
    assert 0 < objects(repository) - before < FILES / 10


def objects(repository: Shell) -> int:
    """Return how many objects the repository holds, packed or not."""
    told = dict(line.split(": ") for line in repository.git("count-objects", "-v").splitlines())
    return int(told["count"]) + int(told["in-pack"])
