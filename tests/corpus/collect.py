"""Collect conflicted merges of a clone, with what people made of them: `collect.py CLONE OUTPUT`.

Every conflicted text of a merge becomes a line of JSON: its three versions, and the file of the
merge commit. The output belongs outside the project: it is other people's work.
"""

import argparse
import base64
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILES_OF_A_MERGE = 25
BIGGEST = 400_000
AT_ONCE = 40
REGULAR = ("100644", "100755")


class Clone(NamedTuple):
    """A repository to read, and a folder that takes the objects which its merges make."""

    folder: Path
    scratch: str

    def git(self, *argv: str, stdin: bytes = b"") -> bytes:
        objects = subprocess.run(
            ["git", "rev-parse", "--git-path", "objects"],
            cwd=self.folder,
            capture_output=True,
            check=True,
        ).stdout.decode()
        env = {
            **os.environ,
            "GIT_OBJECT_DIRECTORY": self.scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((self.folder / objects.strip()).resolve()),
        }
        done = subprocess.run(
            ["git", *argv], cwd=self.folder, env=env, input=stdin, capture_output=True, check=False
        )
        return done.stdout

    def blobs(self, names: list[str]) -> list[bytes | None]:
        """Return the bytes of these objects; None for one that is missing or no blob."""
        answer = self.git("cat-file", "--batch", stdin="".join(f"{n}\n" for n in names).encode())
        found: list[bytes | None] = []
        at = 0
        for _ in names:
            end = answer.index(b"\n", at)
            words = answer[at:end].split()
            at = end + 1
            if len(words) != 3 or not words[2].isdigit():
                found.append(None)
                continue
            size = int(words[2])
            found.append(answer[at : at + size] if words[1] == b"blob" else None)
            at += size + 1
        return found


def conflicted(clone: Clone, merges: list[list[str]]) -> Iterator[tuple[list[str], dict]]:
    """Yield those of some merges that have conflicted texts, with the objects of their stages."""
    pairs = "".join(f"{mine} {theirs}\n" for _, mine, theirs in merges).encode()
    words = ("merge-tree", "--write-tree", "-z", "--no-messages", "--stdin")
    fields = iter(clone.git(*words, stdin=pairs).split(b"\0"))
    for merge, status in zip(merges, fields, strict=False):
        next(fields, b"")
        stages: dict[str, dict[str, str]] = {}
        for field in fields:
            if not field:
                break
            head, path = field.split(b"\t", 1)
            mode, oid, number = head.decode().split(" ")
            if mode in REGULAR:
                stages.setdefault(os.fsdecode(path), {})[number] = oid
        if status == b"0":
            yield merge, {path: found for path, found in stages.items() if {"2", "3"} <= {*found}}


def cases(clone: Clone, *, most: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield the conflicted texts of at most so many merges, drawn from all of them."""
    listing = clone.git("rev-list", "--all", "--min-parents=2", "--max-parents=2", "--parents")
    merges = [line.split() for line in listing.decode().splitlines()]
    random.Random(seed).shuffle(merges)
    count = 0
    for start in range(0, len(merges), AT_ONCE):
        for (commit, mine, theirs), stages in conflicted(clone, merges[start : start + AT_ONCE]):
            trees = clone.git("rev-parse", *[f"{c}^{{tree}}" for c in (commit, mine, theirs)])
            done, *sides = trees.split()
            if not stages or done in sides:
                continue
            rows = list(_texts(clone, commit, stages))
            yield from rows
            count += bool(rows)
            if count == most:
                return


def _texts(clone: Clone, commit: str, stages: dict) -> Iterator[dict[str, str]]:
    paths = sorted(stages)[:FILES_OF_A_MERGE]
    names: list[str] = []
    for path in paths:
        found = stages[path]
        names += [found.get("1", "none"), found["2"], found["3"], f"{commit}:{path}"]
    if any("\n" in path for path in paths):
        return
    blobs = clone.blobs(names)
    for number, path in enumerate(paths):
        base, target, incoming, human = blobs[4 * number : 4 * number + 4]
        texts = (base or b"", target, incoming, human)
        if any(text is None or b"\0" in text or len(text) > BIGGEST for text in texts):
            continue
        keys = ("base", "target", "incoming", "human")
        coded = [base64.b64encode(text or b"").decode() for text in texts]
        yield {"merge": commit, "path": path, **dict(zip(keys, coded, strict=True))}


def main() -> None:
    """Collect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("output", type=Path, help="a file that ends with .jsonl.gz")
    parser.add_argument("--most", type=int, default=120, help="so many merges at most")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    count = 0
    with tempfile.TemporaryDirectory() as scratch, gzip.open(args.output, "wt") as out:
        for row in cases(Clone(args.clone, scratch), most=args.most, seed=args.seed):
            out.write(json.dumps(row) + "\n")
            count += 1
    sys.stdout.write(f"{args.output}: {count} texts\n")


if __name__ == "__main__":
    main()
