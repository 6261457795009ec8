"""The environment of an agent: what it may know of the user's, by name, and nothing else.

An allow-list, because variables hold tokens, sockets and paths into the user's repository. Secrets
that an agent needs are named by its adapter or by the user, and come in as `extra`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache

from engine.sandbox import caches, outlet
from engine.sandbox.holes import docker_socket
from engine.sandbox.ladder import files_rung
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.request import ConfineRequest
from engine.sandbox.view import View, look, toolchains_for

_KEPT = (
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CI"),
    *("USER", "LOGNAME", "SHELL"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy"),
    *("all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "PIP_INDEX_URL", "PIP_FIND_LINKS"),
    *("PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "PIP_DISABLE_PIP_VERSION_CHECK"),
    *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry", "NPM_CONFIG_REGISTRY"),
    *("GOPROXY", "GOPRIVATE", "GONOSUMDB", "GOSUMDB", "GOFLAGS", "GOTOOLCHAIN"),
    *("RUSTUP_TOOLCHAIN", "RUSTUP_AUTO_INSTALL", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS"),
    *("MAKEFLAGS", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "PYENV_VERSION", "PYTHONUTF8"),
)
"""Names of what is passed on where it is set; what a program must know to build and to connect."""

_NEVER = ("GIT_*", "HOME", "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "PLAIT_*")
"""Not even by a hole: these would point at the user's repository, or undo what is set here."""


def environment(
    machine: MachineSupport,
    request: ConfineRequest,
    extra: Mapping[str, str] | None = None,
    *,
    view: View | None = None,
) -> tuple[tuple[str, str], ...]:
    """The whole environment of an attempt, sorted by name.

    Args:
        machine: Where it will run.
        request: The same one that is given to `confine`.
        extra: What the adapter and the engine add; it has the last word.
        view: What the attempt sees, where that is known already.
    """
    is_kept, is_refused = _named((*_KEPT, *request.holes.env)), _named(_NEVER)
    found = {
        name: value for name, value in request.env.items() if is_kept(name) and not is_refused(name)
    }
    if view is None and files_rung(machine) is not None:
        view = look(machine, request)
    found.update(_own(machine, request, view))
    if request.holes.docker:
        found["DOCKER_HOST"] = f"unix://{docker_socket(request)}"
    if request.holes.ssh_agent and "SSH_AUTH_SOCK" in request.env:
        found["SSH_AUTH_SOCK"] = request.env["SSH_AUTH_SOCK"]
    found.update(extra or {})
    return tuple(sorted(found.items()))


def _own(
    machine: MachineSupport, request: ConfineRequest, view: View | None
) -> Iterator[tuple[str, str]]:
    is_mounted = files_rung(machine) is Mechanism.BWRAP
    toolchains = view.toolchains if view is not None else toolchains_for(request)
    temp = view.temp if view is not None and (is_mounted or request.temp is None) else request.temp
    yield from toolchains.variables
    yield from outlet.variables(request)
    yield from caches.variables(machine, request)
    yield "PATH", toolchains.path
    yield "HOME", str(request.home.resolve())
    yield "TMPDIR", str(temp)
    # A worktree that has lost its `.git` must not turn into whatever repository lies above it.
    yield "GIT_CEILING_DIRECTORIES", str(request.workspace.resolve().parent)


@lru_cache(maxsize=16)
def _named(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """Say if a name matches one of these."""
    return re.compile("|".join(map(translate, patterns))).match
