"""Names of workers and attempts: written and read back the same, and nothing else is read."""

import pytest

from engine.ids import WOVEN, AttemptId, RunId, WorkerId

WORKER = WorkerId("implement", 2)


@pytest.mark.parametrize("worker", [WORKER, WorkerId("a", WOVEN), WorkerId("0_-z", 17)])
def test_a_workers_name_reads_back_as_itself(worker: WorkerId):
    assert WorkerId.parse(str(worker)) == worker


def test_workers_are_named_after_their_step():
    assert (str(WORKER), WORKER.short) == ("implement/worker_2", "worker_2")
    assert str(WorkerId("implement", WOVEN)) == "implement/woven"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "implement",
        "implement/2",
        "implement/worker_0",
        "implement/worker_02",
        "implement/worker_",
        "implement/worker_2 ",
        "implement/worker_2\n",
        "Implement/worker_2",
        "../worker_2",
        "-x/worker_2",
        "run/implement/worker_2",
        f"{'x' * 41}/worker_1",
        "implement/worker_²",
    ],
)
def test_what_is_no_workers_name_is_refused(text: str):
    with pytest.raises(ValueError, match="not a worker's name"):
        WorkerId.parse(text)


@pytest.mark.parametrize(("step", "index"), [("", 1), ("a/b", 1), ("a", -1), ("a\n", 1), ("A", 1)])
def test_no_such_worker_can_be_made(step: str, index: int):
    with pytest.raises(ValueError, match="not a worker's name"):
        WorkerId(step, index)


def test_workers_sort_by_step_and_then_by_number():
    workers = [WorkerId("b", 1), WorkerId("a", 10), WorkerId("a", 9)]
    assert sorted(workers) == [WorkerId("a", 9), WorkerId("a", 10), WorkerId("b", 1)]


@pytest.mark.parametrize("role", ["agent", "check", "check-abc.2"])
def test_an_attempts_name_reads_back_as_itself(role: str):
    attempt = AttemptId(RunId("a1b2"), WORKER, 3, role)
    assert AttemptId.parse(str(attempt)) == attempt


def test_an_attempt_has_a_name_and_a_path():
    attempt = AttemptId(RunId("a1b2"), WORKER, 3)
    assert str(attempt) == "a1b2/implement/worker_2@3"
    assert attempt.path == "a1b2/implement/worker_2/attempt_3"
    check = AttemptId(RunId("a1b2"), WORKER, 3, "check")
    assert str(check) == "a1b2/implement/worker_2@3+check"
    assert check.path == "a1b2/implement/worker_2/attempt_3+check"
