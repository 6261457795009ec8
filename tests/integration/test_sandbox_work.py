"""A well-meaning agent finds its tools inside: git, compilers, interpreters, packages, names."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import WorkspaceError
from engine.limits import Limits
from engine.sandbox.confine import confine, looking, release
from engine.sandbox.environment import environment
from engine.sandbox.machine import MachineSupport
from engine.sandbox.probe import probe
from engine.sandbox.request import ConfineRequest, NetworkAccess, SandboxHoles
from engine.sandbox.tamper import fingerprint, violations
from tests.support.needs import need
from tests.support.sandboxes import PYTHON, Scene, attempts_with_cgroups, run
from tests.support.users import OrdinaryUser, ordinary_user

TRUSTED = ("config", "config.worktree", "hooks", "info", "HEAD", "packed-refs", "refs", "objects")
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> MachineSupport:
    found = probe(os.environ, tmp_path_factory.mktemp("state"))
    need("bubblewrap")
    return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    built = Scene.build(tmp_path)
    yield built
    built.close()


@pytest.fixture
def shell(machine: MachineSupport, scene: Scene) -> Shell:
    """Runs a script as the worker, with its environment; it must end well."""
    return shell_on(machine, scene)


def shell_on(machine: MachineSupport, scene: Scene) -> Shell:
    def do(script: str, request: ConfineRequest | None = None) -> subprocess.CompletedProcess[str]:
        asked = request or scene.request(network=NetworkAccess.NONE)
        profile = confine(machine, asked)
        try:
            done = run(
                profile,
                ["sh", "-euc", script],
                env=dict(environment(machine, asked)),
                cwd=scene.workspace,
            )
        finally:
            release(profile)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done

    return do


TOOLS = {
    "gcc": "gcc code.c -o code && ./code",
    "node": 'node -e \'require("os").userInfo(); require("fs").writeFileSync("n", "n")\'',
    "npm": "mkdir pkg && cd pkg && npm init -y >/dev/null && npm pack --silent",
    "cargo": "cargo --version || rustup show home",
    "java": "java -version",
    "perl": "perl -e 'print getpwuid($<)'",
    "make": "printf 'all:\\n\\techo made > made' > Makefile && make -s",
}
EVERYDAY_GIT = """
git status --porcelain | grep . && exit 1
echo one > one.txt && git add one.txt && git commit -qm one
echo two >> one.txt && git commit -qa --amend -m two
git checkout -qb side HEAD~1 && echo side > side.txt && git add . && git commit -qm side
git rebase -q plait/r/s/worker_1
echo dirty >> one.txt && git stash -q && git stash pop -q && git checkout -q one.txt
git tag v1 && git branch other && git branch -D other
git diff --stat feature main && git log --oneline feature..HEAD
git worktree add -q "$TMPDIR/tree" HEAD && git worktree remove "$TMPDIR/tree"
git gc -q --prune=now && git fsck --no-dangling && git rev-parse HEAD
git merge -q feature && git rev-parse --show-toplevel
"""


def test_everyday_git_works_and_touches_nothing_of_the_users(
    machine: MachineSupport, scene: Scene, shell: Shell
):
    shared = scene.repository.path / ".git"
    watched = (*(shared / name for name in TRUSTED), scene.repository.path / "code.c")
    before = fingerprint(watched)
    done = shell(EVERYDAY_GIT)
    assert done.stdout.splitlines()[-1] == str(scene.workspace)
    assert violations(before, fingerprint(watched)) == ()
    assert scene.repository.git("status", "--porcelain") == ""
    private = str(scene.attempt / "git")
    scene.repository.git("fetch", "-q", private, "+refs/heads/side:refs/plait/side")
    scene.repository.git("fsck", "--no-dangling")
    assert scene.repository.git("show", "refs/plait/side:side.txt") == "side"


def test_git_and_tools_work_behind_landlock(scene: Scene, tmp_path: Path):
    here = probe({**os.environ, "PLAIT_SANDBOX": "landlock"}, tmp_path / "state")
    need("landlock")
    (scene.workspace / ".git").write_bytes((scene.attempt / "gitfile").read_bytes())
    shared = scene.repository.path / ".git"
    watched = [shared / name for name in TRUSTED]
    before = fingerprint(watched)
    shell = shell_on(here, scene)
    shell(EVERYDAY_GIT)
    assert violations(before, fingerprint(watched)) == ()
    shell(f"{PYTHON} -m venv --without-pip .v && .v/bin/python -c 'import ssl, sqlite3, ctypes'")
    shell(f"{PYTHON} -c 'import multiprocessing as m; m.Lock()'")
    for tool, script in TOOLS.items():
        if shutil.which(tool):
            shell(script)


def test_a_short_program_of_the_engine_looks_and_cannot_write(
    machine: MachineSupport, scene: Scene
):
    (scene.workspace / "new.txt").write_text("new\n")
    request = scene.request()
    look = ["git", "--no-optional-locks", "status", "--porcelain"]
    env = dict(environment(machine, request))
    with looking(machine, request) as words:
        done = subprocess.run([*words, *look], env=env, capture_output=True, text=True, check=True)
        assert done.stdout == "?? new.txt\n"
        for script in ("touch x", "cat < /dev/tcp/127.0.0.1/1"):
            assert subprocess.run([*words, "sh", "-c", script], env=env, check=False).returncode
    assert request.name not in "".join(attempts_with_cgroups(machine))


def test_looking_leaves_the_cgroups_of_the_living_attempt_alone(
    machine: MachineSupport, scene: Scene
):
    need("cgroup memory")
    request = scene.request(limits=Limits(memory_mb=64))
    profile = confine(machine, request)
    try:
        with looking(machine, request) as one, looking(machine, request) as other:
            assert one != other
        assert all(Path(group.path).is_dir() for group in profile.cgroups)
    finally:
        assert release(profile) == ()


@pytest.mark.parametrize("is_tied", [True, False])
def test_killing_what_looks_kills_all_it_started(
    machine: MachineSupport, scene: Scene, tmp_path: Path, *, is_tied: bool
):
    if not is_tied:  # nothing else would end what is left
        need("cgroup memory")
    request = scene.request(writable=(tmp_path,))
    stay = "setsid sh -c 'exec 9<> alive; flock 9; echo up; sleep 60' & wait"
    with looking(machine, request) as words:
        tied = [word for word in words if is_tied or word != "--die-with-parent"]
        child = subprocess.Popen(
            [*tied, "sh", "-c", f"cd {tmp_path}; {stay}"],
            env=dict(environment(machine, request)),
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        child.kill()
        child.wait()
        wait = ["flock", "--timeout", "60" if is_tied else "0.2", tmp_path / "alive", "true"]
        is_free = subprocess.run(wait, check=False).returncode == 0
        child.stdout.close()
    assert is_free is is_tied
    after = ["flock", "--timeout", "60", tmp_path / "alive", "true"]
    assert subprocess.run(after, check=False).returncode == 0, "no group outlives the look"


def test_the_worktrees_own_git_runs_no_hook_of_the_agents_outside(scene: Scene, shell: Shell):
    shell(
        "printf '#!/bin/sh\\ntouch ~/ran' > hook && chmod +x hook && git config core.fsmonitor "
        '"$PWD/hook" && git status --porcelain && test -e ~/ran && rm ~/ran'
    )
    scene.repository.git("status", cwd=scene.workspace)
    assert not (scene.home / "ran").exists()


def test_compilers_and_interpreters_work(scene: Scene, shell: Shell):
    for tool, script in TOOLS.items():
        if shutil.which(tool):
            shell(script)


def test_python_makes_environments_installs_and_tests(scene: Scene, shell: Shell):
    wheel = scene.workspace / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as parts:
        parts.writestr("mod.py", "answer = 42\n")
        parts.writestr("pkg-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        parts.writestr(
            "pkg-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n"
        )
        parts.writestr("pkg-1.0.dist-info/RECORD", "")
    (scene.workspace / "test_it.py").write_text("def test_it(): assert 1\n")
    shell(
        f"{PYTHON} -m venv --without-pip .v && "
        f"{PYTHON} -m pip --python .v/bin/python install -q --no-index ./{wheel.name} && "
        ".v/bin/python -c 'import mod; assert mod.answer == 42'"
    )
    shell(f"{sys.executable} -m pytest -q -p no:cacheprovider test_it.py")
    shell(
        f"{PYTHON} -c 'import multiprocessing as m; m.Lock(); "
        'assert m.get_context("fork").Pool(2).map(abs, [-1]) == [1]\''
    )


def test_names_of_the_user_and_of_the_host_are_there(shell: Shell):
    assert shell("id -un").stdout.strip() not in ("", "1000")
    assert shell("cat /etc/hostname; uname -n; nproc").stdout.split()


def test_holes_open_what_is_named_and_nothing_else(scene: Scene, shell: Shell):
    home = scene.repository.home
    (home / ".npmrc").write_text("registry=treasure\n")
    (home / "notes").mkdir()
    request = scene.request(
        holes=SandboxHoles(paths=("~/.npmrc", f"{home}/notes:rw"), env=("MY_*", "GIT_DIR")),
        env={**scene.request().env, "MY_KEY": "1", "GIT_DIR": "/x", "SECRET": "2"},
    )
    script = f"cat ~/.npmrc {home}/.npmrc; touch {home}/notes/x; ls -A {home}; env | sort"
    said = shell(script, request).stdout.splitlines()
    assert said[:2] == ["registry=treasure"] * 2
    assert {".npmrc", "notes"} <= set(said)
    assert ".ssh" not in said
    assert (home / "notes" / "x").exists()
    assert "MY_KEY=1" in said
    assert not [line for line in said if line.startswith(("SECRET", "GIT_DIR"))]


def test_programs_are_found_and_started_through_links_of_folders(scene: Scene, shell: Shell):
    user = scene.repository.home
    for name, words in (("real/bin/direct", "direct"), ("versions/2.1/agent", "agent")):
        (user / name).parent.mkdir(parents=True)
        (user / name).write_text(f"#!/bin/sh\necho {words}\n")
        (user / name).chmod(0o755)
    (user / "real/secret").write_text("treasure")
    (user / "tools").symlink_to("real")
    (user / "current").symlink_to(user / "versions/2.1")
    (user / "real/bin/agent").symlink_to(user / "current/agent")
    path = f"{user}/tools/bin:{os.environ['PATH']}"
    request = scene.request(env={**scene.request().env, "PATH": path})
    said = shell(
        f"direct; agent; {user}/tools/bin/agent; ls -A {user} {user}/tools", request
    ).stdout
    assert said.split()[:3] == ["direct", "agent", "agent"]
    assert "secret" not in said
    with pytest.raises(AssertionError, match="not found"):
        shell("direct", scene.request())


@pytest.mark.parametrize("prefix", ["", "/oldroot", "/newroot"])
def test_a_link_in_the_home_does_not_lead_a_hole_outside(
    scene: Scene, shell: Shell, tmp_path: Path, prefix: str
):
    real = scene.repository.home
    (real / ".npmrc").write_text("x")
    (real / ".config/tool").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (scene.home / ".npmrc").symlink_to(f"{prefix}{outside}/created")
    (scene.home / ".config").symlink_to(outside)
    shell("true", scene.request(holes=SandboxHoles(paths=("~/.npmrc", "~/.config/tool"))))
    assert list(outside.iterdir()) == []


def test_a_git_file_that_became_a_link_is_refused(
    machine: MachineSupport, scene: Scene, tmp_path: Path
):
    (scene.workspace / ".git").unlink()
    (scene.workspace / ".git").symlink_to(f"/oldroot{tmp_path}/created-outside")
    with pytest.raises(WorkspaceError, match="tampered"):
        confine(machine, scene.request())


@pytest.fixture(scope="module")
def ordinary() -> Iterator[OrdinaryUser]:
    with ordinary_user() as user:
        yield user


_LOOK = """
import json, sys
from pathlib import Path
from engine.sandbox.holes import hole_paths, hole_sockets, missing_holes
from engine.sandbox.request import ConfineRequest, SandboxHoles
from engine.sandbox.toolchains import _INSTALLERS, find_toolchains
inner, good, here, shown = sys.argv[1], sys.argv[2], Path("/"), []
for variable in ["PATH", *(name for name, _ in _INSTALLERS)]:
    env = {"HOME": good, "PATH": good, "SSH_AUTH_SOCK": inner, "DOCKER_HOST": f"unix://{inner}"}
    env[variable] = f"{inner}:{good}" if variable == "PATH" else inner
    found = find_toolchains(env, [Path("/usr")])
    holes = SandboxHoles(paths=(inner,), docker=True, ssh_agent=True)
    request = ConfineRequest(name="x", workspace=here, home=here, env=env, holes=holes)
    opened = [*map(str, hole_paths(request)), *hole_sockets(request)]
    is_named = any(value == inner for _, value in found.variables) or inner in found.path
    shown.append([is_named, len(opened) > 0, len(missing_holes(request)) > 0])
print(json.dumps(shown))
"""


def test_what_the_user_may_not_enter_is_passed_over_whatever_names_it(ordinary: OrdinaryUser):
    closed, good = ordinary.folder / "closed", ordinary.folder / "good/bin"
    for folder in (closed / "bin", closed / "lib", good):
        folder.mkdir(parents=True)
    (closed / "bin/tool").touch()
    (good / "away").symlink_to(closed / "bin/tool")
    for mode in (0o755, 0o000):
        closed.chmod(mode)
        done = ordinary.run("-c", _LOOK, str(closed / "bin"), str(good))
        assert done.returncode == 0, done.stderr
        is_open = mode != 0
        assert json.loads(done.stdout)[0] == [is_open, is_open, not is_open]
        assert all(each[1:] == [is_open, not is_open] for each in json.loads(done.stdout))
        assert is_open or not any(is_named for is_named, *_ in json.loads(done.stdout))
