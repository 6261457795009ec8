"""Changes as data equal what git shows, whatever is in the files."""

from pathlib import Path

import pytest

from engine.git.diff import (
    FileChange,
    changed_files,
    counted_files,
    file_patches,
    merge_base,
    patch_bytes,
)
from engine.git.runner import Repo
from engine.review import diffs as git_diffs
from tests.support.pictures import png
from tests.support.repositories import RepositoryBuilder

pytestmark = pytest.mark.anyio

OLD: dict[str, str | bytes | None] = {
    "edited": "1\n2\n3\n",
    "gone": "x\n",
    "moved": "line\n" * 20,
    "binary": b"\0old",
    "mode": "#!/bin/sh\n",
    "no newline": "a\nb",
    "separators": "a\x0bb\x0cc\x1cd\u2028e\r\nf\n",
    "markers": "<<<<<<< a\n=======\n@@ -1 +1 @@\n>>>>>>> b\n",
    "link": "text\n",
    "t\tn\nl": "odd\n",
}


async def changed(tmp_path: Path) -> tuple[RepositoryBuilder, Repo, dict[bytes, FileChange]]:
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit(OLD, "old")
    built.git("mv", "moved", "elsewhere")
    for path in ("gone", "link"):
        (built.path / path).unlink()
    (built.path / "link").symlink_to("edited")
    (built.path / "mode").chmod(0o755)
    built.commit(
        {
            "edited": "1\ntwo\n3\n",
            "binary": b"\0new",
            "no newline": "a\nb\n",
            "separators": "a\x0bB\x0cc\x1cd\u2028e\r\nf\n",
            "markers": "<<<<<<< a\n=======\n@@ -1 +2 @@\n>>>>>>> b\n",
            "t\tn\nl": "odder\n",
            "new\nfile": "n\n",
            "empty": "",
        },
        "new",
    )
    repo = await Repo.open(built.path, built.environment)
    files = await changed_files(repo, "HEAD~1", "HEAD")
    return built, repo, {one.path: one for one in files}


async def test_every_kind_of_change_is_told_apart(tmp_path: Path):
    _, _, files = await changed(tmp_path)

    kinds = {path: one.kind for path, one in files.items()}
    assert kinds == {
        b"edited": "M", b"gone": "D", b"elsewhere": "R", b"binary": "M", b"mode": "M",
        b"no newline": "M", b"separators": "M", b"markers": "M", b"link": "T",
        b"t\tn\nl": "M", b"new\nfile": "A", b"empty": "A",
    }  # fmt: skip
    assert files[b"elsewhere"].old_path == b"moved"
    assert files[b"elsewhere"].similarity == 100
    assert files[b"binary"].is_binary
    assert files[b"mode"].is_mode_only
    assert (files[b"edited"].added, files[b"edited"].removed) == (1, 1)
    assert (files[b"empty"].added, files[b"empty"].removed) == (0, 0)


async def test_hunks_put_together_give_the_new_file(tmp_path: Path):
    built, repo, files = await changed(tmp_path)
    patches = await file_patches(repo, list(files.values()), ("HEAD~1", "HEAD"))
    for one, patch in zip(files.values(), patches, strict=True):
        if one.is_binary or one.is_mode_only or one.kind == "R":
            assert patch.hunks == ()
            continue
        for marks, oid in ((" -", one.old_oid), (" +", one.new_oid)):
            lines = [line for hunk in patch.hunks for line in hunk.lines if line.mark in marks]
            text = b"".join(line.text + b"\n" * line.has_newline for line in lines)
            wanted = b"" if set(oid) == {"0"} else built.git_bytes("cat-file", "blob", oid)
            assert text == wanted, one


async def test_hunks_are_counted_as_they_are_shown(tmp_path: Path):
    _, repo, files = await changed(tmp_path)
    built = RepositoryBuilder(tmp_path / "other")
    lines = [f"{n}\n" for n in range(60)]
    odd = "++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n"
    built.commit({"a": "".join(lines), "odd": "x\n", "late": "x" * 9000 + "\n"}, "old")
    lines[5] = lines[40] = "\n"
    late = "x" * 9000 + "\0\0diff --git a/x b/x\n@@ -1 +1 @@\n"
    built.commit({"a": "".join(lines), "odd": f"x\n{odd}", "late": late}, "new")
    other = await Repo.open(built.path, built.environment)
    for one in (repo, other):
        found, hunks = await counted_files(one, "HEAD~1", "HEAD")
        patches = await file_patches(one, found, ("HEAD~1", "HEAD"))
        assert hunks == sum(len(patch.hunks) or 1 for patch in patches)
    assert hunks == 4
    found, _ = await counted_files(repo, "HEAD~1", "HEAD")
    assert found == tuple(files.values())
    assert await counted_files(repo, "HEAD", "HEAD") == ((), 0)


async def test_a_patch_too_long_is_cut_and_says_so(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({"long": "x\n"}, "old")
    built.commit({"long": "".join(f"{n}\n\n" for n in range(90_000))}, "new")
    repo = await Repo.open(built.path, built.environment)
    sides = ("HEAD~1", "HEAD")
    files = await changed_files(repo, *sides)

    (cut,) = await file_patches(repo, files, sides, max_bytes=1000)
    assert cut.is_cut
    (whole,) = await file_patches(repo, files, sides)
    assert not whole.is_cut
    assert whole.hunks[0].new == (1, 180_000)
    assert await patch_bytes(repo, "HEAD~1", "HEAD", max_bytes=1000) is None


async def test_a_diff_that_was_cut_counts_all_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({"a": "x\n", "long": "x\n"}, "old")
    built.commit({"a": "y\n", "long": "\n".join(map(str, range(9000))), "z": "z\n"}, "new")
    repo = await Repo.open(built.path, built.environment)
    monkeypatch.setattr(git_diffs, "MOST_BYTES", 2000)

    diff = await git_diffs.change_diff(repo, "HEAD~1", "HEAD", against="old")

    counts = {file.path: (file.added, file.removed, file.is_cut) for file in diff.files}
    assert counts == {"a": (1, 1, False), "long": (9000, 1, True), "z": (1, 0, True)}
    assert diff.files[1].hunks == ()


async def test_a_byte_that_is_no_text_is_told_from_another_one(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    for value in (b"caf\xe9\n", b"caf\xe8\n", b"caf\xe7\n"):
        built.commit({"a": value}, "change")
    repo = await Repo.open(built.path, built.environment)
    diffs = [
        await git_diffs.change_diff(repo, f"HEAD~{at}", f"HEAD~{at - 1}", against="")
        for at in (2, 1)
    ]
    (one,), (two,) = (diff.files[0].hunks for diff in diffs)
    assert [line.text for line in one.lines] == ["caf\udce9", "caf\udce8"]
    assert [line.text for line in two.lines] == ["caf\udce8", "caf\udce7"]
    assert diffs[0].keys != diffs[1].keys


async def test_a_picture_says_its_size_and_is_had_whole(tmp_path: Path):
    built = RepositoryBuilder(tmp_path / "repo")
    old = {"a.png": png(7, 5), "gone.gif": b"GIF89a\x46\0\x32\0\0", "b.png": b"\0no picture"}
    built.commit({**old, "same.png": png(3, 3), "data.bin": b"\0" + png(9, 9)}, "old")
    new = {"a.png": png(8, 5), "gone.gif": None, "b.png": png(2, 2), "c.png": png(1, 1)}
    built.commit({**new, "same.png": png(3, 3, filters=b"\1"), "data.bin": png(9, 9)}, "new")
    repo = await Repo.open(built.path, built.environment)
    sides = ("HEAD~1", "HEAD")
    diff = await git_diffs.change_diff(repo, *sides, against="")
    looks = {f.path: f.note.partition(" pixels")[0] for f in diff.files if f.is_picture}
    assert looks == {
        "a.png": "PNG picture, 8 \u00d7 5",
        "b.png": "PNG picture, 2 \u00d7 2",
        "c.png": "PNG picture, 1 \u00d7 1",
        "gone.gif": "GIF picture, was 70 \u00d7 50",
        "same.png": "PNG picture, 3 \u00d7 3",
    }
    notes = {f.path: f.note for f in diff.files}
    assert notes["a.png"].endswith(f"pixels, was 7 \u00d7 5, {len(new['a.png'] or b'')} B, was "
                                   f"{len(old['a.png'])} B")  # fmt: skip
    assert "pixels, as before" in notes["same.png"]
    assert notes["data.bin"].startswith("binary, ")  # by its name it is none

    found = await git_diffs.whole_sides(repo, sides, ["a.png", "gone.gif", "c.png", "absent"])
    assert [(f.path, f.old, f.new, f.is_cut) for f in found] == [
        ("a.png", old["a.png"], new["a.png"], False),
        ("c.png", None, new["c.png"], False),
        ("gone.gif", old["gone.gif"], None, False),
    ]


async def test_what_is_too_large_is_left_out_and_named_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({"a": "x" * 9, "b": "y" * 90}, "old")
    built.commit({"a": "x" * 8, "b": "y" * 9}, "new")
    repo = await Repo.open(built.path, built.environment)
    monkeypatch.setattr(git_diffs, "_MOST_TEXT", 50)
    found = await git_diffs.whole_sides(repo, ("HEAD~1", "HEAD"), ["a", "b"])
    assert [(f.path, f.old, f.is_cut) for f in found] == [("a", b"x" * 9, False), ("b", None, True)]


@pytest.mark.parametrize("kind", ["added", "changed", "renamed"])
async def test_whether_a_patch_is_cut_is_known_at_every_bound(tmp_path: Path, kind: str):
    built = RepositoryBuilder(tmp_path / "repo")
    built.commit({"long": "".join(f"{n}\n" for n in range(3_000)), "gone": "g\n" * 99}, "old")
    new = {
        "added": {"more": "".join(f"{n} more\n" for n in range(2_000)), "blob": "a\0b"},
        "changed": {"long": "".join(f"{n}{'' if n % 9 else '!'}\n" for n in range(3_000))},
        "renamed": {"gone": None, "going": "g\n" * 98},
    }[kind]
    built.commit(new, "new")
    repo = await Repo.open(built.path, built.environment)
    files = await changed_files(repo, "HEAD~1", "HEAD")
    sides = "HEAD~1", "HEAD"
    records = ("diff-tree", "-r", "-z", "--no-abbrev", "-M", "--raw", "--numstat", *sides)
    beside = len(await repo.read(*records)) + 1
    for most in (64, 500, 20_000, 60_000, 1 << 20, 64 << 20):
        patches = await file_patches(repo, files, sides, max_bytes=most)
        is_cut = any(patch.is_cut for patch in patches)
        counted, hunks = await counted_files(repo, *sides, max_bytes=most + beside)
        assert counted == files
        assert (hunks is None) == is_cut


async def test_a_whole_patch_applies(tmp_path: Path):
    built, repo, _ = await changed(tmp_path)
    patch = await patch_bytes(repo, "HEAD~1", "HEAD")
    tree = built.rev("HEAD^{tree}")
    built.git("reset", "-q", "--hard", "HEAD~1")

    built.git("apply", "--index", stdin=patch)

    assert built.git("write-tree") == tree


async def test_common_ancestors(tmp_path: Path):
    built = RepositoryBuilder.small(tmp_path / "repo")
    built.git("checkout", "-q", "-b", "work")
    built.commit({"x": "1"})
    built.commit({"x": "2"})
    built.git("checkout", "-q", "main")
    built.commit({"y": "1"})
    repo = await Repo.open(built.path, built.environment)

    assert await merge_base(repo, "work", "main") == built.rev("main~1")
    built.git("checkout", "-q", "--orphan", "apart")
    built.commit({"z": "1"})
    assert await merge_base(repo, "apart", "main") is None
