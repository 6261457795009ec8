"""Whether one more attempt fits: promises count, and the first always starts."""

import pytest

from engine.limits import Limits
from engine.sandbox.admission import Claim, Room, admit, fair_share

ROOM = Room(memory_mb=6000, disk_mb=1000)


def claim(cap: int | None, used: float = 0.0) -> Claim:
    return Claim(limits=Limits(memory_mb=cap), memory_mb=used)


def test_an_attempt_fits_into_what_is_neither_used_nor_promised():
    assert admit(ROOM, [claim(4096, used=1096)], Limits(memory_mb=3000)).fits
    refused = admit(ROOM, [claim(4096, used=1095)], Limits(memory_mb=3000))
    assert not refused.fits
    assert (
        refused.reason == "memory: 3000 MB wanted, 2999 MB neither used nor promised to 1 running"
    )


def test_one_above_its_cap_promises_nothing_back():
    assert admit(ROOM, [claim(1000, used=3000)], Limits(memory_mb=6000)).fits


def test_without_a_limit_the_least_is_counted():
    assert admit(ROOM, [claim(None)], Limits()).fits
    assert not admit(ROOM, [claim(None), claim(None)], Limits()).fits


def test_the_first_may_always_start():
    assert admit(Room(memory_mb=10, disk_mb=0), [], Limits(memory_mb=4096), tree_mb=50).fits


def test_a_checkout_that_fits_on_no_disk_waits():
    refused = admit(ROOM, [claim(100)], Limits(memory_mb=100), tree_mb=1001)
    assert "1001 MB" in refused.reason


@pytest.mark.parametrize(
    ("free", "slots", "expected"),
    [
        (20_000, 5, (4000, 5)),
        (20_000, 10, (2048, 9)),
        (10_240, 5, (2048, 5)),
        (1000, 4, (2048, 1)),
    ],
)
def test_a_fair_share_is_at_least_two_gigabytes_or_fewer_start(
    free: int, slots: int, expected: tuple[int, int]
):
    assert fair_share(Room(memory_mb=free, disk_mb=0), slots) == expected
