"""Order named things that wait for each other, and find circles among them."""

import heapq
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


def in_order(waits_for: Mapping[str, Sequence[str]]) -> list[str]:
    """Return every name after all it waits for; free ones keep the order given.

    Names waited for that are no keys are taken as there already. Names on a circle, and whatever
    waits for them, are left out.
    """
    names = list(waits_for)
    rank = {name: i for i, name in enumerate(names)}
    open_ = {name: {d for d in waits_for[name] if d in rank} for name in names}
    behind: dict[str, list[str]] = {name: [] for name in names}
    for name, dependencies in open_.items():
        for dependency in dependencies:
            behind[dependency].append(name)
    ready = [rank[name] for name in names if not open_[name]]
    ordered = []
    while ready:
        done = names[heapq.heappop(ready)]
        ordered.append(done)
        for name in behind[done]:
            open_[name].discard(done)
            if not open_[name]:
                heapq.heappush(ready, rank[name])
    return ordered


def circle(waits_for: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """Return one circle, its first name again at its end, or None if there is none."""
    known = {name: [d for d in waits_for[name] if d in waits_for] for name in waits_for}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        found: list[str] = error.args[1][:0:-1]
        rank = {name: i for i, name in enumerate(waits_for)}
        first = found.index(min(found, key=rank.__getitem__))
        return (*found[first:], *found[:first], found[first])
    return None


def circles(waits_for: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return circles, until none would be left if each were opened at its first name."""
    left = {name: list(dependencies) for name, dependencies in waits_for.items()}
    found: list[tuple[str, ...]] = []
    while len(found) < _MOST and (steps := circle(left)):
        found.append(steps)
        left[steps[0]] = [d for d in left[steps[0]] if d != steps[1]]
    return found


def all_behind(name: str, waits_for: Mapping[str, Sequence[str]]) -> set[str]:
    """Return everything a name waits for, directly or not."""
    found: set[str] = set()
    todo = list(waits_for.get(name, ()))
    while todo:
        step = todo.pop()
        if step not in found:
            found.add(step)
            todo.extend(waits_for.get(step, ()))
    return found


_MOST = 20
