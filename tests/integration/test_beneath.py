"""The one writer into trees that an agent can shape: nothing gets out of the root, nothing blocks.

Each attack has its control: the same deed done by `shutil` or by a plain path gets out.
"""

import ctypes
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.beneath import (
    Bounds,
    EntryKind,
    PathRefused,
    Taken,
    WalkEntry,
    Why,
    copy_as,
    copy_tree,
    list_tree,
    make_link,
    move_aside,
    open_up,
    opening,
    read_file,
    remove_file,
    remove_tree,
    write_file,
)

DEEP = 60
MB = 1 << 20


@pytest.fixture(params=["openat2", "steps"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds with a kernel that has `openat2` and with one that has not."""
    monkeypatch.setattr(opening, "_lacks_openat2", request.param == "steps")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret\n")
    return folder


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    target.mkdir()
    return source, target


def whys(refused: tuple[PathRefused, ...]) -> dict[bytes, Why]:
    return {one.path: one.why for one in refused}


def untouched(outside: Path) -> bool:
    inside = {path.name: path.read_text() for path in outside.iterdir()}
    return inside == {"secret": "secret\n"}


# ------------------------------------------------------------------ links


def test_a_link_in_the_target_is_no_folder_to_write_through(
    roots: tuple[Path, Path], outside: Path
):
    source, target = roots
    (source / "dist").mkdir()
    (source / "dist/post-checkout").write_text("#!/bin/sh\n")
    (target / "dist").symlink_to(outside)
    done = copy_tree(source, ["dist"], target)
    assert whys(done.refused) == {b"dist": Why.BEHIND_LINK}
    assert done.files == ()
    assert untouched(outside)
    # the control: the plain copy writes through the link
    shutil.copytree(source / "dist", target / "dist", symlinks=True, dirs_exist_ok=True)
    assert not untouched(outside)


@pytest.mark.parametrize("depth", [1, 2, 5, 40])
def test_a_link_at_any_depth_stops_reading_and_writing(
    roots: tuple[Path, Path], outside: Path, depth: int
):
    source, target = roots
    for root in roots:
        place = root.joinpath(*["d"] * (depth - 1))
        place.mkdir(parents=True, exist_ok=True)
        (place / "link").symlink_to(outside)
    name = "/".join([*["d"] * (depth - 1), "link/secret"])
    for found in (
        read_file(source, name),
        write_file(target, name, b"mine"),
        make_link(target, name, "x"),
        remove_file(target, name),
        move_aside(target, name),
        *remove_tree(target, name),
        *copy_tree(source, [name], target).refused,
    ):
        assert isinstance(found, PathRefused), found
        assert found.why is Why.BEHIND_LINK
    assert untouched(outside)
    assert (source / name).read_text() == "secret\n"  # the control: a plain path follows it


def test_a_file_that_is_a_link_is_neither_read_nor_written_through(
    roots: tuple[Path, Path], outside: Path
):
    source, _ = roots
    (source / "file").symlink_to(outside / "secret")
    assert isinstance(read_file(source, "file"), PathRefused)
    assert write_file(source, "file", b"mine\n") is None
    assert untouched(outside)
    assert (source / "file").read_text() == "mine\n"


def test_a_file_with_a_second_name_elsewhere_keeps_its_contents_there(
    roots: tuple[Path, Path], outside: Path
):
    source, _ = roots
    (source / "file").hardlink_to(outside / "secret")
    assert write_file(source, "file", b"mine\n") is None
    assert untouched(outside)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a\0b", ""])
def test_a_name_that_is_no_path_inside_is_refused(roots: tuple[Path, Path], name: str):
    assert isinstance(write_file(roots[0], name, b""), PathRefused)
    assert isinstance(read_file(roots[0], name), PathRefused)


def test_links_are_copied_as_links_and_those_that_lead_out_only_where_asked(
    roots: tuple[Path, Path],
):
    source, target = roots
    (source / "a").mkdir()
    (source / "a/up").symlink_to("../x")
    (source / "a/out").symlink_to("../../x")
    (source / "a/absolute").symlink_to("/etc/passwd")
    done = copy_tree(source, [""], target, is_closed=True)
    assert whys(done.refused) == {b"a/out": Why.LEADS_OUT, b"a/absolute": Why.LEADS_OUT}
    assert (target / "a/up").readlink() == Path("../x")
    assert set(copy_tree(source, [""], target).files) == {b"a/out", b"a/absolute"}


# ------------------------------------------------------------------ what is no file


def test_what_is_no_file_is_refused_and_nothing_waits_for_it(roots: tuple[Path, Path]):
    source, target = roots
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(source / "socket"))
    expected = {b"fifo", b"socket"}
    if os.geteuid() == 0:
        os.mknod(source / "device", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        expected |= {b"device"}
    (source / "file").write_text("kept\n")
    done = copy_tree(source, [""], target)
    assert whys(done.refused) == dict.fromkeys(expected, Why.NOT_A_FILE)
    assert done.files == (b"file",)
    for name in expected:
        assert read_file(source, name) == PathRefused(name, Why.NOT_A_FILE)


# ------------------------------------------------------------------ bounds, holes, depth


def test_bounds_cut_a_copy_and_say_so(roots: tuple[Path, Path]):
    source, target = roots
    for number in range(20):
        (source / f"{number:02}").write_bytes(os.urandom(8192))
    done = copy_tree(source, [""], target, bounds=Bounds(entries=5))
    assert len(done.files) == 5
    assert [one.why for one in done.refused] == [Why.TOO_MANY]
    assert remove_tree(target) == ()
    target.mkdir()
    done = copy_tree(source, [""], target, bounds=Bounds(size=30_000))
    assert len(done.files) == 3
    assert {one.why for one in done.refused} == {Why.TOO_BIG}
    (source / "a/b/c").mkdir(parents=True)
    done = copy_tree(source, ["a"], target, bounds=Bounds(depth=2))
    assert whys(done.refused) == {b"a/b": Why.TOO_DEEP}


def test_holes_stay_holes(roots: tuple[Path, Path]):
    source, target = roots
    with (source / "sparse").open("wb") as file:
        file.write(b"head")
        file.seek(700 * MB)
        file.write(b"middle")
        file.truncate(1900 * MB)
    done = copy_tree(source, ["sparse"], target, bounds=Bounds(size=2 * MB))
    assert done.refused == ()
    found = (target / "sparse").stat()
    assert found.st_size == 1900 * MB
    assert found.st_blocks * 512 < MB
    with (target / "sparse").open("rb") as file:
        assert file.read(4) == b"head"
        file.seek(700 * MB)
        assert file.read(7) == b"middle\0"


def deep_tree(root: Path, depth: int, name: str = "d" * 200) -> None:
    """Make a tree deeper than any path that the kernel takes, with a file at its end."""
    current = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=current)
        inner = os.open(name, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(os.open("end", os.O_WRONLY | os.O_CREAT, dir_fd=current))
    os.close(current)


def test_a_tree_beyond_the_longest_path_is_listed_copied_and_removed(roots: tuple[Path, Path]):
    source, target = roots
    deep_tree(source, DEEP)
    name = b"/".join([b"d" * 200] * DEEP + [b"end"])
    with pytest.raises(OSError, match="too long"):
        (source / os.fsdecode(name)).stat()
    assert [one.path for one in list_tree(source)][-1] == name
    assert copy_tree(source, [""], target).files == (name,)
    assert read_file(target, name) == b""
    for root in roots:
        assert remove_tree(root) == ()
        assert not root.exists()


def test_a_tree_deeper_than_descriptors_last_is_removed(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    deep_tree(root, 1_000, "d")
    assert remove_tree(root) == ()
    assert not root.exists()


# ------------------------------------------------------------------ modes


def test_what_forbids_reading_is_named_or_opened_up(roots: tuple[Path, Path]):
    source, target = roots
    (source / "closed").mkdir()
    (source / "closed/file").write_text("kept\n")
    (source / "mute").write_text("kept\n")
    (source / "mute").chmod(0)
    (source / "closed").chmod(0)
    if os.geteuid():
        done = copy_tree(source, [""], target)
        assert whys(done.refused) == {b"closed": Why.UNREADABLE, b"mute": Why.UNREADABLE}
        remove_tree(target, "closed")
    assert set(open_up(source)) == {b"closed", b"mute"}
    done = copy_tree(source, [""], target)
    assert done.refused == ()
    assert set(done.files) == {b"closed/file", b"mute"}


def test_folders_that_may_not_be_written_go_all_the_same(tmp_path: Path):
    script = (
        "import os, sys; from pathlib import Path; from engine.beneath import remove_tree\n"
        "os.geteuid() or os.setuid(65534)\n"
        "tree = Path(sys.argv[1], 'tree'); inner = tree / 'inner'; inner.mkdir(parents=True)\n"
        "(inner / 'file').touch(); inner.chmod(0o500)\n"
        "remove_tree(tree)\n"
        "print(os.listdir(sys.argv[1]))\n"
    )
    folder = Path("/tmp") / f"plait-trash-{os.getpid()}"  # noqa: S108 - others cannot enter tmp_path
    folder.mkdir()
    folder.chmod(0o777)  # for the user that the script becomes
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, folder], capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(folder)
    assert done.stdout == "[]\n", done.stderr


def test_nothing_becomes_set_user_id_and_modes_and_times_are_kept(roots: tuple[Path, Path]):
    source, target = roots
    (source / "folder").mkdir()
    (source / "folder/run").write_text("#!/bin/sh\n")
    (source / "folder/run").chmod(0o4755)
    (source / "folder").chmod(0o550)
    os.utime(source / "folder/run", ns=(1, 10**18))
    copy_tree(source, [""], target)
    found = (target / "folder/run").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime_ns) == (0o755, 10**18)
    assert stat.S_IMODE((target / "folder").stat().st_mode) == 0o550
    for root in roots:
        assert remove_tree(root) == ()


# ------------------------------------------------------------------ single files


def test_what_is_in_the_way_is_kept_replaced_or_put_aside(roots: tuple[Path, Path]):
    root, _ = roots
    (root / "file").write_text("theirs\n")
    taken = write_file(root, "file", b"ours\n", taken=Taken.KEEP)
    assert taken == PathRefused(b"file", Why.TAKEN)
    assert write_file(root, "file/below", b"ours\n", taken=Taken.ASIDE) is None
    assert (root / "file/below").read_text() == "ours\n"
    assert [path.read_text() for path in root.glob("file.aside-*")] == ["theirs\n"]
    assert write_file(root, "file", b"ours\n", taken=Taken.ASIDE) is None
    assert (root / "file").read_text() == "ours\n"
    assert len(list(root.glob("*.aside-*"))) == 2
    aside = move_aside(root, "file")
    assert isinstance(aside, bytes)
    assert read_file(root, aside) == b"ours\n"
    assert not list(root.glob(".*"))


def test_one_thing_is_copied_under_another_name(roots: tuple[Path, Path]):
    source, target = roots
    (source / "a").mkdir()
    (source / "a/file").write_text("x")
    assert copy_as(source, "a", target, "new/b").files == (b"new/b/file",)


# ------------------------------------------------------------------ races


@contextmanager
def swapping(place: Path, outside: Path) -> Iterator[None]:
    """Let another thread swap a folder for a link that leads out, and back, over and over."""
    link = place.parent.with_name("link")
    link.symlink_to(outside)
    is_over = threading.Event()
    libc = ctypes.CDLL(None)
    names = (-100, os.fsencode(place), -100, os.fsencode(link), 2)  # AT_FDCWD, RENAME_EXCHANGE

    def swap() -> None:
        while not is_over.wait(0.0001):
            libc.renameat2(*names)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        if place.is_symlink():
            libc.renameat2(*names)
        link.unlink()


def raced(deed: Callable[[], object], place: Path, outside: Path, *, tries: int) -> bool:
    """Do something over and over during the swaps; tell if anything got out."""
    with swapping(place, outside):
        for _ in range(tries):
            with suppress(OSError, shutil.Error):
                deed()
            if not untouched(outside):
                return True
    return False


def test_no_swap_during_a_copy_leads_a_write_out(roots: tuple[Path, Path], outside: Path):
    source, target = roots
    (source / "a/b").mkdir(parents=True)
    for number in range(10):
        (source / f"a/b/{number}").write_text("mine\n")
    (target / "a/b").mkdir(parents=True)

    def ours() -> None:
        copy_tree(source, ["a"], target)
        write_file(target, "a/b/mine", b"mine\n")
        remove_tree(target, "a/b/secret")
        remove_file(target, "a/b/secret")
        for number in range(10):
            remove_file(target, f"a/b/{number}")

    def plain() -> None:
        for number in range(10):
            shutil.copy2(source / f"a/b/{number}", target / f"a/b/{number}")

    assert not raced(ours, target / "a/b", outside, tries=100)
    assert raced(plain, target / "a/b", outside, tries=3_000)


def test_no_swap_during_a_copy_leads_a_read_out(roots: tuple[Path, Path], outside: Path):
    source, target = roots
    (source / "a/b").mkdir(parents=True)
    (source / "a/b/secret").write_text("mine\n")
    read: set[object] = set()

    def ours() -> None:
        for name in copy_tree(source, ["a"], target).files:
            if not (target / os.fsdecode(name)).is_symlink():
                read.add(read_file(target, name))
        remove_tree(target, "a")

    with swapping(source / "a/b", outside):
        for _ in range(100):
            ours()
    assert read == {b"mine\n"}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_tree_contains_every_entry_is_copied_or_named(
    roots: tuple[Path, Path], outside: Path, seed: int
):
    source, target = roots
    chance = random.Random(seed)
    for root in roots:
        grow(root, chance, outside, depth=0)
    there = [one for one in list_tree(source) if isinstance(one, WalkEntry)]
    done = copy_tree(source, [""], target)
    told = {*done.files, *(one.path for one in done.refused)}
    for entry in there:
        is_told = any(entry.path == one or entry.path.startswith(one + b"/") for one in told)
        assert is_told or entry.kind is EntryKind.FOLDER
    assert untouched(outside)
    for root in roots:
        assert remove_tree(root) == ()
    assert untouched(outside)


def grow(folder: Path, chance: random.Random, outside: Path, *, depth: int) -> None:
    """Fill a folder with whatever an agent may leave there."""
    for _ in range(chance.randrange(1, 6)):
        name = chance.choice(["a", "b", "B", "é", "\udcff", "-x", " ", "\n", "c.txt", ".git"])
        place = folder / name
        with suppress(OSError):
            match chance.randrange(7):
                case 0 | 1:
                    with place.open("xb") as file:
                        file.write(chance.randbytes(chance.randrange(100)))
                case 2:
                    place.symlink_to(chance.choice([outside, "..", "/", "nowhere", "a"]))
                case 3:
                    os.mkfifo(place)
                case _ if depth < 5:
                    place.mkdir()
                    grow(place, chance, outside, depth=depth + 1)
                case _:
                    place.hardlink_to(outside / "secret")
