"""Test what is believed of memory: suspicion by what is resident, proof by what is proportional."""

import pytest

from engine.keeper.cgroups import Cgroups
from engine.keeper.sampler import MB, Excess, Sampler
from engine.keeper.tree import Tree


class Machine(Sampler):
    """A sampler of a machine that is made up: what is resident, and how much of it is shared."""

    def __init__(self, limit_mb: float) -> None:
        super().__init__(Tree(Cgroups([])), {"memory_mb": limit_mb})
        self.resident_mb, self.true_mb, self.proofs = 0.0, 0.0, 0

    def _read(self) -> None:
        self.memory = int(self.resident_mb * MB)

    def _proportional(self) -> int:
        self.proofs += 1
        return int(self.true_mb * MB)

    def use(self, resident_mb: float, true_mb: float | None = None) -> float:
        self.resident_mb = resident_mb
        self.true_mb = resident_mb if true_mb is None else true_mb
        self._confirmed_until = 0.0
        self.limits_changed()
        return self.look()


def test_a_tight_limit_is_looked_at_sooner_than_a_wide_one() -> None:
    assert Machine(4000).use(100) > Machine(500).use(100) > Machine(110).use(100)


def test_what_is_over_its_limit_by_both_counts_is_an_excess() -> None:
    machine = Machine(500)
    with pytest.raises(Excess) as excess:
        machine.use(600)
    assert (excess.value.kind, excess.value.allowed, excess.value.seen) == ("memory_mb", 500, 600)
    assert machine.memory_peak == 600 * MB


def test_sharers_are_cleared_once_and_not_suspected_again_while_nothing_grows() -> None:
    machine = Machine(500)
    for _ in range(5):
        machine.use(1500, 300)
    assert machine.proofs == 1
    assert machine.memory_peak == 300 * MB


def test_growth_after_a_proof_is_counted_as_private() -> None:
    machine = Machine(500)
    machine.use(1500, 300)
    machine.use(1650, 450)
    assert machine.memory == 450 * MB
    with pytest.raises(Excess):
        machine.use(1710, 510)
    assert machine.proofs == 2


def test_what_sharers_free_does_not_hide_later_growth() -> None:
    machine = Machine(500)
    machine.use(1500, 300)
    machine.use(300)  # four of the five have ended
    with pytest.raises(Excess):
        machine.use(510)


class Counted(Sampler):
    """A sampler that notes how it looked, below a process limit that wants it often."""

    def __init__(self) -> None:
        super().__init__(Tree(Cgroups([])), {"memory_mb": 1e6, "pids": 30})
        self.looks: list[str] = []

    def _read(self) -> None:
        self.looks.append("all")

    def _count(self) -> None:
        self.looks.append("count")
        super()._count()


def test_between_looks_at_all_processes_are_only_counted_until_limits_change() -> None:
    sampler = Counted()
    assert sampler.look() <= 0.02
    sampler.look()
    sampler.limits_changed()
    sampler.look()
    assert sampler.looks == ["all", "count", "all"]
