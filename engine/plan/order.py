"""The laws that every plan keeps, made from a manifest or in Python."""

from collections.abc import Mapping, Sequence

from engine.errors import CyclicDependency, PlanError, UnknownDependency
from engine.policies import Policy
from engine.spec.graph import circle, in_order
from engine.spec.nearest import nearest


def ordered(waits_for: Mapping[str, Sequence[str]]) -> list[str]:
    """The steps in an order their dependencies allow, as given where they leave it open.

    Raises:
        UnknownDependency: Where a step waits for one that is not there.
        CyclicDependency: Where steps wait for each other.
    """
    for name, dependencies in waits_for.items():
        for dependency in dependencies:
            if dependency not in waits_for:
                raise UnknownDependency(name, dependency, nearest(dependency, waits_for))
    if steps := circle(waits_for):
        raise CyclicDependency(steps)
    return in_order(waits_for)


def check_policy(step: str, policy: Policy, workers: int) -> None:
    """Raises PlanError where a policy needs more workers than the step has."""
    if policy.n > workers:
        raise PlanError(
            f"step {step!r}: the policy {policy} needs {policy.n} workers, but there are {workers}",
            hint="Lower the number of the policy, or raise `concurrency` and the cap of the run.",
        )
