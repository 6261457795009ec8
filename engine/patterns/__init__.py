"""Run many pieces of async work at once: all, settled, raced, staged, retried, pooled.

This room knows concurrency and nothing else: no agents, no repositories, no runs. Work is a
zero-argument async callable or, where there are items, a function of one item. One rule holds
everywhere: a pattern that returns bare values raises the first error and cancels the rest; a
pattern that returns `Success | Failure` never lets one failure touch its siblings. Everything runs
on asyncio and on trio, can be cancelled at any point, and leaves no task behind.
"""

from engine.patterns.background import Background, Failed, contained, failure_in
from engine.patterns.bounded import Progress, Work
from engine.patterns.flow import balanced, in_batches, map_chunks, stages
from engine.patterns.outcome import Failure, Outcome, StrayCancellation, Success
from engine.patterns.pool import Pool
from engine.patterns.retry import retry_failed, with_retry, with_timeout
from engine.patterns.together import fan_in, first, gather, race, settled
from engine.policies import Backoff

__all__ = [
    "Background",
    "Backoff",
    "Failed",
    "Failure",
    "Outcome",
    "Pool",
    "Progress",
    "StrayCancellation",
    "Success",
    "Work",
    "balanced",
    "contained",
    "failure_in",
    "fan_in",
    "first",
    "gather",
    "in_batches",
    "map_chunks",
    "race",
    "retry_failed",
    "settled",
    "stages",
    "with_retry",
    "with_timeout",
]
