"""Whatever is done to a manifest, it is read or refused with a place: no traceback, no hang."""

import os
import random
import re
import time
from pathlib import Path

import pytest

from engine.errors import PlanError, SpecError
from engine.plan.describe import describe
from engine.plan.make import make_plan
from engine.spec.load import load_manifest
from engine.spec.pipeline import Manifest
from engine.spec.reference import EXAMPLE

COUNT = 10_000 if os.environ.get("PLAIT_THOROUGH") == "1" else 2_000
BATCHES = 10
SLOWEST_S = 1.0
PLACED = re.compile(r"plait\.yaml:[1-9][0-9]*:[1-9][0-9]*: \S")
SMALL = """\
runtime: {max_concurrent_workers: 3, sandbox: {network: {allow: [a.org]}}, permissions: {deny: [x]}}
agents: {a: &a {adapter: scripted, script: [{say: hi}]}, b: *a}
personas: {p: {agent: a, prompt_file: p.md}}
pipelines:
- name: one
  steps:
  - {name: x, persona: p, prompt: "{steps.y.output} {{item}}", dependencies: [y], policy: quorum:2,
     concurrency: 2, retry: {attempts: 2, intensity: {restarts: 1}}, choose: check, check: "true"}
  - {name: y, agent: b, prompt_file: p.md, variants: [{agent: a, n: 2}, {model: m}], merge: each}
  - {name: z, run: "make", strategy: {matrix: {items: [a, b], max_concurrency: 1}}}
"""
SEEDS = (EXAMPLE.encode(), SMALL.encode())
SCRAPS = (
    *(
        b"\t",
        b"\0",
        b"\xff",
        b"\xc3\x28",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\r",
        b"\n\n",
        b"\x1b[",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%YAML 9.9\n",
        b"<<: *a",
        b"&a ",
        b"*a",
        b"*nobody",
        b"!!python/name:os ",
    ),
    *(
        b"!x ",
        b"? ",
        b"- ",
        b": ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"'",
        b'"',
        b"|",
        b">",
        b"#",
        b"@",
        b"`",
    ),
    *(b"null", b"~", b"yes", b"TRUE", b"0x1f", b"1e999", b".nan", b"-1", b"99999999999999999999"),
    *(
        b"[" * 100,
        b"{a: " * 100,
        b"- " * 100,
        b"{" * 4000,
        b"a" * 5000,
        b"{steps.x.output}",
        b"{item}",
    ),
    *(
        b"first(0)",
        b"quorum(99)",
        b"../../etc",
        b"/etc/passwd",
        b"worker_1",
        b"__class__",
        b"\xf0\x9f\xa7\xb6",
    ),
)


def mutated(rng: random.Random) -> bytes:
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        rng.choice(MUTATIONS)(data, rng)
    return bytes(data)


def _flip(data: bytearray, rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _cut(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) + 1)
    del data[start : start + rng.choice((1, 2, 5, 40, 400))]


def _scrap(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(SCRAPS)


def _repeat(data: bytearray, rng: random.Random) -> None:
    start, at = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    data[at:at] = data[start : start + rng.choice((3, 30, 300))]


def _swap_words(data: bytearray, rng: random.Random) -> None:
    words = [m.span() for m in re.finditer(rb"[\w./-]+", bytes(data))]
    if len(words) > 1:
        (start, end), (other, other_end) = rng.sample(words, 2)
        data[start:end] = bytes(data[other:other_end])


def _move_line(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b"  ", b" ")) + line)
    data[:] = b"\n".join(lines)


def _drop_line(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    lines.pop(rng.randrange(len(lines)))
    data[:] = b"\n".join(lines)


def _replace_value(data: bytearray, rng: random.Random) -> None:
    values = [m.span(1) for m in re.finditer(rb": ([^\n,}\]]+)", bytes(data))]
    if values:
        start, end = rng.choice(values)
        data[start:end] = rng.choice(SCRAPS)


MUTATIONS = (
    *(_flip, _cut, _scrap, _repeat),
    *(_swap_words, _move_line, _drop_line, _replace_value),
)


def refusal(data: bytes) -> SpecError | Manifest:
    try:
        return load_manifest(data, file="plait.yaml", read=lambda _: b"a prompt")
    except SpecError as error:
        return error


def outcome(data: bytes) -> str:
    """Return what became of it; anything but our own errors comes out as it is."""
    manifest = refusal(data)
    if isinstance(manifest, SpecError):
        assert manifest.problems
        for line in str(manifest).split("\n"):
            assert PLACED.match(line), line
            assert line.isprintable(), line
        return "refused"
    for pipeline in manifest.pipelines:
        try:
            describe(make_plan(manifest, pipeline=pipeline.name))
        except PlanError as error:
            pytest.fail(f"a manifest that was read makes no plan: {error}")
    return "planned"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_mutated_manifest_is_read_or_refused_with_a_place(batch: int, tmp_path: Path):
    seen = {"refused": 0, "planned": 0}
    for seed in range(batch, COUNT, BATCHES):
        data = mutated(random.Random(seed))
        began = time.thread_time()
        try:
            seen[outcome(data)] += 1
        except Exception:
            (tmp_path / f"{seed}.yaml").write_bytes(data)
            raise
        assert time.thread_time() - began < SLOWEST_S, (seed, data[:200])
    # The mutations must reach both sides, or they prove nothing.
    assert seen["refused"] > COUNT / BATCHES / 4
    assert seen["planned"] > COUNT / BATCHES / 50


def test_the_seeds_themselves_are_planned():
    assert [outcome(seed) for seed in SEEDS] == ["planned", "planned"]
