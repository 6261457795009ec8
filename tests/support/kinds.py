"""Repositories as people have them, each made from a small plain one."""

import os

from tests.support.repositories import RepositoryBuilder


def bare(built: RepositoryBuilder) -> RepositoryBuilder:
    other = RepositoryBuilder(built.path.with_name("bare"), init=False)
    built.git("clone", "-q", "--bare", str(built.path), str(other.path))
    return other


def linked(built: RepositoryBuilder) -> RepositoryBuilder:
    place = built.path.with_name("linked")
    built.git("worktree", "add", "-q", "-b", "side", str(place))
    return RepositoryBuilder(place, init=False)


def shallow(built: RepositoryBuilder) -> RepositoryBuilder:
    for n in range(4):
        built.commit({"n": str(n)})
    other = RepositoryBuilder(built.path.with_name("shallow"), init=False)
    built.git("clone", "-q", "--depth=2", f"file://{built.path}", str(other.path))
    return other


def borrowing(built: RepositoryBuilder) -> RepositoryBuilder:
    second = built.path.with_name("second")
    built.git("clone", "-q", "--shared", str(built.path), str(second))
    other = RepositoryBuilder(built.path.with_name("third"), init=False)
    built.git("clone", "-q", "--shared", str(second), str(other.path))
    return other


def lacking_blobs(built: RepositoryBuilder) -> RepositoryBuilder:
    built.configure("uploadpack.allowFilter", "true")
    built.configure("uploadpack.allowAnySHA1InWant", "true")
    other = RepositoryBuilder(built.path.with_name("partial"), init=False)
    words = ("clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{built.path}")
    built.git(*words, str(other.path))
    return other


def detached(built: RepositoryBuilder) -> RepositoryBuilder:
    built.git("checkout", "-q", "--detach")
    return built


def unborn(built: RepositoryBuilder) -> RepositoryBuilder:
    return RepositoryBuilder(built.path.with_name("unborn"))


def sparse(built: RepositoryBuilder) -> RepositoryBuilder:
    built.commit({"big/one/x": "x\n", "small/y": "y\n"})
    built.git("sparse-checkout", "set", "small")
    return built


def line_ends(built: RepositoryBuilder) -> RepositoryBuilder:
    built.commit({".gitattributes": "*.bat text eol=crlf\n", "x.bat": "a\r\nb\r\n"})
    return built.configure("core.autocrlf", "true", scope="--global")


def large_files(built: RepositoryBuilder) -> RepositoryBuilder:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 3\n"
    built.configure("filter.lfs.smudge", "git-lfs smudge -- %f", scope="--global")
    built.configure("filter.lfs.clean", "git-lfs clean -- %f", scope="--global")
    return _raw_commit(built, {".gitattributes": "*.psd filter=lfs -text\n", "a.psd": pointer})


def _raw_commit(built: RepositoryBuilder, files: dict[str, str]) -> RepositoryBuilder:
    for path, text in files.items():
        blob = built.git("hash-object", "-w", "--stdin", "--no-filters", stdin=text.encode())
        built.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    built.git("commit", "-qm", "raw")
    built.git("checkout-index", "-qfa", env={"GIT_CONFIG_GLOBAL": os.devnull})
    return built


def hooks(built: RepositoryBuilder) -> RepositoryBuilder:
    for name in ("post-checkout", "post-index-change", "post-commit"):
        built.write(f".git/hooks/{name}", "#!/bin/sh\nexit 1\n", mode=0o755)
    return built


def submodule(built: RepositoryBuilder) -> RepositoryBuilder:
    inner = RepositoryBuilder.small(built.path.with_name("inner"))
    words = ("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "mod")
    built.git(*words)
    built.git("commit", "-qm", "submodule")
    return built


def odd_path(built: RepositoryBuilder) -> RepositoryBuilder:
    place = built.path.with_name("odd 'na\tme\" ü $HOME")
    built.path.rename(place)
    return RepositoryBuilder(place, init=False)


def apart(built: RepositoryBuilder) -> RepositoryBuilder:
    other = RepositoryBuilder(built.path.with_name("apart"), init=False)
    other.git("init", "-q", "-b", "main", "--separate-git-dir", f"{other.path}.git")
    other.commit({"README.md": "#\n", "src/a.py": "a\n"})
    return other


def is_submodule(built: RepositoryBuilder) -> RepositoryBuilder:
    inner = RepositoryBuilder(submodule(built).path / "mod", init=False)
    inner.home = built.home
    return inner


def sha256(built: RepositoryBuilder) -> RepositoryBuilder:
    other = RepositoryBuilder(built.path.with_name("sha256"), init=False)
    other.git("init", "-q", "-b", "main", "--object-format=sha256")
    other.commit({"README.md": "#\n", "src/a.py": "a\n"})
    return other


AS_PEOPLE_HAVE_THEM = [
    bare, linked, shallow, borrowing, lacking_blobs, detached, unborn, sparse, line_ends,
    large_files, hooks, submodule, is_submodule, apart, odd_path, sha256,
]  # fmt: skip
