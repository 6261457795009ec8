"""The times of attempts, from the events that tell of their phases."""

from engine.ids import RunId
from engine.messages.events import Told, WorkerMoved
from engine.messages.timing import AttemptTimes
from engine.phases import Phase
from engine.run.timing import attempt_times
from tui.words.figures import UNKNOWN
from tui.words.timing import times_text

W = "code/worker_1"
NOT_YET = [UNKNOWN] * 3


def told(*moves: tuple[float, int, str]) -> list[Told]:
    """Return the events of a worker that goes from phase to phase."""
    before, events = Phase.WAITING, []
    for at, attempt, name in moves:
        event = WorkerMoved(worker=W, attempt=attempt, before=before, after=Phase[name])
        events.append(Told(run=RunId("r"), at=at, event=event, seq=len(events) + 1))
        before = event.after
    return events


def test_each_stage_ends_where_the_next_begins():
    moves = told(
        *(
            (10.0, 0, "QUEUED"),
            (11.0, 1, "PREPARING"),
            (13.0, 1, "RUNNING"),
            (17.0, 1, "COLLECTING"),
        ),
        *(
            (25.0, 1, "CHECKING"),
            (41.0, 1, "REVIEWING"),
            (99.0, 1, "LANDING"),
            (100.0, 1, "LANDED"),
        ),
    )
    assert attempt_times(moves) == [
        AttemptTimes(
            worker=W,
            attempt=1,
            began=10.0,
            queued=1.0,
            prepared=2.0,
            worked=4.0,
            collected=8.0,
            checked=16.0,
        )
    ]


def test_a_stage_that_goes_on_has_no_time_yet():
    times = attempt_times(told((10.0, 0, "QUEUED"), (11.0, 1, "PREPARING"), (13.0, 1, "RUNNING")))
    assert [(one.prepared, one.worked) for one in times] == [(2.0, None)]
    assert attempt_times(told((10.0, 0, "QUEUED"))) == []


def test_an_attempt_that_follows_another_waits_from_where_it_was_queued():
    moves = told(
        *((1.0, 0, "QUEUED"), (2.0, 1, "PREPARING"), (3.0, 1, "RUNNING"), (4.0, 1, "COLLECTING")),
        *((5.0, 1, "BACKING_OFF"), (60.0, 1, "QUEUED"), (62.0, 2, "PREPARING")),
        *((65.0, 2, "RUNNING"), (70.0, 2, "STOPPING"), (71.0, 2, "COLLECTING")),
    )
    first, second = attempt_times(moves)
    assert (first.attempt, first.queued, first.collected) == (1, 1.0, 1.0)
    assert (second.attempt, second.began, second.queued) == (2, 60.0, 2.0)
    assert (second.prepared, second.worked, second.collected) == (3.0, 6.0, None)


def test_the_table_adds_up_what_is_known():
    one = AttemptTimes(worker=W, attempt=1, began=0.0, queued=0.0421, worked=3.14, cpu=61.0)
    two = AttemptTimes(worker=W, attempt=2, began=0.0, queued=1.0, worked=3661.0)
    lines = [line.split() for line in times_text([one, two]).splitlines()]
    assert lines[1:] == [
        ["code/worker_1@1", "0.042s", *NOT_YET, "3.1s", UNKNOWN, UNKNOWN, "1:01"],
        ["code/worker_1@2", "1.0s", *NOT_YET, "1:01:01", *NOT_YET],
        ["in", "all", "1.0s", *NOT_YET, "1:01:04", UNKNOWN, UNKNOWN, "1:01"],
    ]
    assert len({len(line) for line in times_text([one, two]).splitlines()}) == 1
