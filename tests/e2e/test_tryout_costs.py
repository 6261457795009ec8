"""What a worker costs in a repository of some size."""

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
    done = repository.plait("run", "plait.yaml", "--headless")
    assert done.code == 3, done.err
    runs = repository.folder / ".git/plait/runs"
    stored = [path for path in runs.glob("**/objects/??/*") if path.is_file()]
    assert 0 < len(stored) < FILES / 10
