"""Odd merges without end: two histories each, as commits that `git fast-import` can read.

Knows what people do to trees that makes merges hard. Whole folders move while the other side adds
to them. Files become links, folders or submodules. Names differ in case alone. Content, mode and
place change at once. Every third history is crossed, so it has two bases.
"""

import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.support.merge_oracle import ENVIRONMENT
from tests.support.merge_stories import File, Tree, file

LINK, SUBMODULE, EXECUTABLE = "120000", "160000", "100755"
Deed = Callable[[Tree, random.Random, bytes], None]


ODD_NAMES = (
    b"a/line\nbreak",
    b'a/quo"te',
    b"b/latin-\xe9",
    b"a/ blank ",
    b":(top)a",
    b"a/[f]*",
    b"-f",
    b"a\\b/f",
    b"odd\n/f",
    b"a/deep/\tf",
)
ATTRIBUTES = (
    b"*1 merge=union\n",
    b"*2 -merge\n",
    b"* conflict-marker-size=9\n",
)


def _text(dice: random.Random, name: bytes) -> bytes:
    return b"".join(b"%s %d\n" % (name, number) for number in range(dice.randrange(6, 20)))


def first_tree(dice: random.Random) -> Tree:
    """Return a few folders of texts, with a link, a binary file, a submodule and case twins."""
    tree: Tree = {}
    for number in range(dice.randrange(4, 9)):
        folder = dice.choice([b"", b"a/", b"a/", b"b/", b"a/deep/"])
        tree[folder + b"f%d" % number] = file(_text(dice, b"line of %d," % number))
    tree[b"link"] = (LINK, b"a")
    tree[b"pic"] = file(b"\0" + _text(dice, b"pixel"))
    tree[b"sub"] = (SUBMODULE, b"%040x" % dice.randrange(1 << 80))
    if dice.random() < 0.3:
        tree[dice.choice(ODD_NAMES)] = file(_text(dice, b"oddly named"))
    if dice.random() < 0.2:
        tree[b".gitattributes"] = file(dice.choice(ATTRIBUTES))
    if dice.random() < 0.5:
        tree |= {b"Case": file(_text(dice, b"upper")), b"case": file(_text(dice, b"lower"))}
    return tree


def _put(tree: Tree, path: bytes, entry: File) -> None:
    """Put an entry at a path: what stands in its way goes, files above and folders below.

    Attributes stay a file: git refuses a link in their place, and so does plait.
    """
    if path.lower().endswith(b".gitattributes") and not entry[0].startswith("100"):
        return
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        tree.pop(b"/".join(parts[:depth]), None)
    for other in [other for other in tree if other.startswith(path + b"/")]:
        del tree[other]
    tree[path] = entry


def _pick(tree: Tree, dice: random.Random) -> bytes:
    texts = [path for path, (mode, _) in sorted(tree.items()) if mode.startswith("100")]
    return dice.choice(texts or sorted(tree))


def _edit(tree: Tree, dice: random.Random, who: bytes) -> None:
    path = _pick(tree, dice)
    mode, content = tree[path]
    if mode == SUBMODULE:
        return
    lines = content.splitlines(keepends=True)
    at = dice.randrange(len(lines) + 1)
    new = [b"%s %d\n" % (who, dice.randrange(100)) for _ in range(dice.randrange(3))]
    lines[at : at + dice.randrange(3)] = new
    tree[path] = (mode, b"".join(lines) or b"x")


def _move(tree: Tree, dice: random.Random, who: bytes) -> None:
    path = _pick(tree, dice)
    name = path.rpartition(b"/")[2]
    there = dice.choice([b"a/", b"b/", b"c/", b"", b"a/deep/"])
    _put(tree, there + dice.choice([name, name, b"moved", b"by-" + who]), tree.pop(path))


def _move_folder(tree: Tree, dice: random.Random, who: bytes) -> None:
    folders = sorted({path.rpartition(b"/")[0] for path in tree if b"/" in path})
    if not folders:
        return
    old = dice.choice(folders) + b"/"
    new = dice.choice([b"b/", b"c/", b"away/", b"by-" + who + b"/", b"a/deep/", b""])
    if not new.startswith(old):
        for path in [path for path in tree if path.startswith(old)]:
            _put(tree, new + path[len(old) :], tree.pop(path))


def _add(tree: Tree, dice: random.Random, who: bytes) -> None:
    folder = dice.choice([b"a/", b"a/", b"b/", b"c/", b"a/deep/", b""])
    _put(tree, folder + b"new%d" % dice.randrange(4), file(_text(dice, b"new of " + who)))


def _delete(tree: Tree, dice: random.Random, who: bytes) -> None:
    del who
    if len(tree) > 2:
        del tree[dice.choice(sorted(tree))]


def _mode(tree: Tree, dice: random.Random, who: bytes) -> None:
    del who
    path = _pick(tree, dice)
    mode, content = tree[path]
    if mode.startswith("100"):
        tree[path] = (EXECUTABLE if mode != EXECUTABLE else "100644", content)


def _type(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Turn a file into a link, a submodule, a binary file or a folder; or another into a file."""
    path = dice.choice(sorted(tree))
    others: list[File] = [
        (LINK, b"to-" + who),
        (SUBMODULE, b"%040x" % dice.randrange(1 << 80)),
        file(b"\0" + who),
        file(_text(dice, b"anew by " + who)),
    ]
    if dice.random() < 0.3:
        inside = tree.pop(path)
        _put(tree, path + b"/inside", inside)
    else:
        _put(tree, path, dice.choice(others))


def _replace(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Move a file away and put something else where it was."""
    path = _pick(tree, dice)
    entry = tree[path]
    _move(tree, dice, who)
    if path not in tree:
        others = [(LINK, b"new-place"), file(_text(dice, b"instead, by " + who)), entry]
        _put(tree, path, dice.choice(others))


def _swap(tree: Tree, dice: random.Random, who: bytes) -> None:
    del who
    one, other = _pick(tree, dice), _pick(tree, dice)
    tree[one], tree[other] = tree[other], tree[one]


def _submodule(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Move a submodule on to another commit."""
    del who
    links = sorted(path for path, (mode, _) in tree.items() if mode == SUBMODULE)
    if links:
        tree[dice.choice(links)] = (SUBMODULE, b"%040x" % dice.randrange(1 << 80))


def _copy(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Put the same file elsewhere too, so that a move may have come from either."""
    path = _pick(tree, dice)
    folder = dice.choice([b"a/", b"b/", b"c/", b""])
    _put(tree, folder + dice.choice([b"moved", b"copy-of-" + who]), tree[path])


def _nest(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Move a folder into one of its own, or all that is there below a new one."""
    folders = sorted({path.rpartition(b"/")[0] for path in tree if b"/" in path})
    old = dice.choice(folders) + b"/" if folders and dice.random() < 0.8 else b""
    new = old + dice.choice([b"deep/", b"in-" + who + b"/"])
    for path in [path for path in sorted(tree) if path.startswith(old)]:
        _put(tree, new + path[len(old) :], tree.pop(path))


def _case(tree: Tree, dice: random.Random, who: bytes) -> None:
    path = _pick(tree, dice)
    head, slash, name = path.rpartition(b"/")
    twin = head + slash + name.swapcase()
    if dice.random() < 0.5:
        _put(tree, twin, tree.pop(path))
    else:
        _put(tree, twin, file(_text(dice, b"twin by " + who)))


def _all_at_once(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Change the content, the mode and the place of one file."""
    path = _pick(tree, dice)
    alone = {path: tree.pop(path)}
    _edit(alone, dice, who)
    _mode(alone, dice, who)
    _move(alone, dice, who)
    ((new, entry),) = alone.items()
    _put(tree, new, entry)


def _ends(tree: Tree, dice: random.Random, who: bytes) -> None:
    """Change the line ends of a text, or drop its last one."""
    del who
    path = _pick(tree, dice)
    mode, content = tree[path]
    if mode.startswith("100") and b"\r" not in content:
        new = content.replace(b"\n", b"\r\n") if dice.random() < 0.6 else content.rstrip(b"\n")
        tree[path] = (mode, new or b"x")


DEEDS: Mapping[Deed, int] = {
    _edit: 10,
    _move: 5,
    _move_folder: 4,
    _add: 5,
    _delete: 3,
    _mode: 2,
    _type: 3,
    _replace: 2,
    _swap: 1,
    _submodule: 2,
    _copy: 2,
    _nest: 1,
    _case: 1,
    _all_at_once: 3,
    _ends: 1,
}


def edited(tree: Tree, dice: random.Random, who: bytes, *, most: int = 5) -> Tree:
    """Return the tree after a few deeds of one side."""
    new = dict(tree)
    for _ in range(dice.randrange(1, most + 1)):
        (deed,) = dice.choices(list(DEEDS), list(DEEDS.values()))
        deed(new, dice, who)
    return new


def _meet(target: Tree, incoming: Tree, dice: random.Random) -> None:
    """Let both sides do to one file what does not go together."""
    shared = (path for path, entry in sorted(target.items()) if incoming.get(path) == entry)
    paths = [path for path in shared if target[path][0].startswith("100")]
    if not paths:
        return
    path = dice.choice(paths)
    mode, content = incoming[path]
    incoming[path] = (mode, content + b"met by incoming\n")
    match dice.randrange(3):
        case 0:
            del target[path]
            _put(target, b"c/met", (mode, content + b"met by target\n"))
            _put(incoming, b"c/met", file(_text(dice, b"met anew")))
        case 1:
            _put(target, path, dice.choice([(LINK, b"met"), (SUBMODULE, b"%040x" % 7)]))
        case _:
            _put(target, path + b"/met", file(_text(dice, b"met below")))


def _joined(tips: Sequence[Tree], dice: random.Random) -> Tree:
    """Return a tree that somebody may have made of some: of each path one of the versions."""
    tree: Tree = {}
    for path in sorted({path for tip in tips for path in tip}):
        entry = dice.choice(tips).get(path)
        if entry is not None:
            _put(tree, path, entry)
    return tree or dict(tips[0])


def commit(name: str, tree: Tree, *parents: str) -> bytes:
    """Return a commit for `fast-import`, under the ref of that name."""
    when = 1_700_000_000
    head = b"commit refs/heads/%s\ncommitter a <a@x> %d +0000\ndata 0\n" % (name.encode(), when)
    words = [b"from", *[b"merge"] * len(parents)]
    rows = [b"%s refs/heads/%s\n" % (word, one.encode()) for word, one in zip(words, parents)]  # noqa: B905
    rows.append(b"deleteall\n")
    for path, (mode, content) in tree.items():
        quoted = b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'
        if mode == SUBMODULE:
            rows.append(b"M %s %s %s\n" % (mode.encode(), content, quoted))
        else:
            data = b"data %d\n%s\n" % (len(content), content)
            rows.append(b"M %s inline %s\n%s" % (mode.encode(), quoted, data))
    return head + b"".join(rows) + b"\n"


def history(seed: int) -> Iterator[bytes]:
    """Yield the commits of one merge; its sides are the refs `SEED/target` and `SEED/incoming`."""
    dice = random.Random(seed)
    base = first_tree(dice)
    yield commit(f"{seed}/base", base)
    target, incoming = edited(base, dice, b"target"), edited(base, dice, b"incoming")
    if dice.random() < 0.3:
        _meet(target, incoming, dice)
    if seed % 3:
        yield commit(f"{seed}/target", target, f"{seed}/base")
        yield commit(f"{seed}/incoming", incoming, f"{seed}/base")
        return
    yield from _crossed(seed, dice, (base, target, incoming))


def _crossed(seed: int, dice: random.Random, trees: tuple[Tree, Tree, Tree]) -> Iterator[bytes]:
    """Yield sides that merged the same commits, each in its own way: two or three, once or twice.

    So many bases they have. Crossed twice, the bases are crossed themselves.
    """
    base, *tips = trees
    names = ["target", "incoming"]
    if dice.random() < 0.3:
        names.append("third")
        tips.append(edited(base, dice, b"third"))
    for name, tree in zip(names, tips, strict=True):
        yield commit(f"{seed}/{name}-1", tree, f"{seed}/base")
    last = dice.choice([2, 2, 3])
    for turn in range(2, last + 1):
        agreed = _joined(tips, dice)
        made = [agreed if dice.random() < 0.6 else _joined(tips, dice) for _ in names]
        for number, (name, joined) in enumerate(zip(names, made, strict=True)):
            others = [*names[number:], *names[:number]]
            yield commit(
                f"{seed}/{name}-m{turn}", joined, *(f"{seed}/{o}-{turn - 1}" for o in others)
            )
            made[number] = edited(joined, dice, name.encode(), most=3)
            ref = f"{seed}/{name}" if turn == last else f"{seed}/{name}-{turn}"
            yield commit(ref, made[number], f"{seed}/{name}-m{turn}")
        tips = made


def put(folder: Path, seeds: Sequence[int]) -> None:
    """Make a repository that has the merges of these seeds."""
    folder.mkdir(parents=True)
    run = partial(subprocess.run, cwd=folder, env=ENVIRONMENT, check=True)
    run(["git", "init", "-q", "-b", "main"])
    stream = b"".join(part for seed in seeds for part in history(seed))
    run(["git", "fast-import", "--quiet", "--force"], input=stream)
