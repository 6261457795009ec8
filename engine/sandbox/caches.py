"""The user's package caches under the worker's own: read from below, written above.

Without this every worker downloads everything again; with the caches themselves a worker could put
a package into them that the user installs tomorrow. bubblewrap of 0.11 or later makes the layers;
an older one leaves a worker with its own caches alone. Nothing is mounted inside the worker's HOME
(see `holes`): variables lead to the layers, and for one tool, which has none, a link.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine.beneath import make_link
from engine.sandbox.holes import unlink_inside
from engine.sandbox.ladder import files_rung
from engine.sandbox.machine import MachineSupport, Mechanism
from engine.sandbox.request import ConfineRequest
from engine.sandbox.toolchains import is_open
from engine.values import dataclass

_PLACE = Path("/run/plait-caches")
_CACHES: tuple[tuple[str, str], ...] = (
    ("PIP_CACHE_DIR", ".cache/pip"),
    ("UV_CACHE_DIR", ".cache/uv"),
    ("npm_config_cache", ".npm"),
    ("YARN_CACHE_FOLDER", ".cache/yarn"),
    ("BUN_INSTALL_CACHE_DIR", ".bun/install/cache"),
    ("DENO_DIR", ".cache/deno"),
    ("GOMODCACHE", "go/pkg/mod"),
    ("GOCACHE", ".cache/go-build"),
    ("NUGET_PACKAGES", ".nuget/packages"),
    ("COMPOSER_CACHE_DIR", ".cache/composer"),
    ("COURSIER_CACHE", ".cache/coursier"),
    ("PUB_CACHE", ".pub-cache"),
    ("CCACHE_DIR", ".cache/ccache"),
    ("SCCACHE_DIR", ".cache/sccache"),
    ("HF_HUB_CACHE", ".cache/huggingface/hub"),
    ("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),
    ("", ".cargo/registry"),
    ("", ".cargo/git"),
)
"""The variable of each cache and where it lies below HOME; cargo's have no variable of their own.
Only what holds packages: tokens lie beside them (`.cargo/credentials.toml`, `huggingface/token`).
"""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One cache: the user's below, the worker's above, and where both are seen as one."""

    variable: str
    name: str
    lower: Path
    upper: Path
    work: Path

    @property
    def inside(self) -> Path:
        """The path at which the sandbox shows it."""
        return _PLACE / self.name.strip(".").replace("/", "-")


def layers(machine: MachineSupport, request: ConfineRequest) -> tuple[Layer, ...]:
    """The caches that the user has and that can be layered here."""
    is_possible = files_rung(machine) is Mechanism.BWRAP and machine.has(Mechanism.OVERLAY)
    return tuple(_layers(request)) if is_possible and request.cache_dir is not None else ()


def mounts(machine: MachineSupport, request: ConfineRequest) -> Iterator[str]:
    """The words of bubblewrap for them."""
    for layer in layers(machine, request):
        yield from ("--overlay-src", str(layer.lower))
        yield from ("--overlay", str(layer.upper), str(layer.work), str(layer.inside))


def without_layers(wrapper: tuple[str, ...]) -> tuple[str, ...]:
    """The words of bubblewrap without layers: one upper folder must not be mounted twice."""
    words = iter(wrapper)
    kept: list[str] = []
    lengths = {"--overlay-src": 1, "--overlay": 3}
    for word in words:
        if word == "--":
            return (*kept, word, *words)
        if word in lengths:
            for _ in range(lengths[word]):
                next(words)
        else:
            kept.append(word)
    return tuple(kept)


def variables(machine: MachineSupport, request: ConfineRequest) -> Iterator[tuple[str, str]]:
    """Return the variables by which programs find the caches."""
    for layer in layers(machine, request):
        if layer.variable:
            yield layer.variable, str(layer.inside)


def prepare(machine: MachineSupport, request: ConfineRequest) -> None:
    """Make the folders of the layers, and the links; take links away that would lead nowhere."""
    found = layers(machine, request)
    for layer in found:
        for folder in (layer.upper, layer.work):
            folder.mkdir(parents=True, exist_ok=True)
    linked = {layer.name: layer.inside for layer in found if not layer.variable}
    for variable, name in _CACHES:
        if variable:
            continue
        with contextlib.suppress(OSError):  # the worker's own folder is in the way, and stays
            if name in linked:
                make_link(request.home, Path(name), linked[name])
            else:
                unlink_inside(request.home, Path(name), _PLACE)


def _layers(request: ConfineRequest) -> Iterator[Layer]:
    for variable, name in _CACHES:
        lower = _lower(request.env, variable, name)
        if lower is not None and request.cache_dir is not None:
            own = request.cache_dir.resolve() / name.strip(".").replace("/", "-")
            yield Layer(
                variable=variable,
                name=name,
                lower=lower,
                upper=own / "upper",
                work=own / "work",
            )


def _lower(env: Mapping[str, str], variable: str, name: str) -> Path | None:
    path = Path(env.get(variable) or Path(env.get("HOME") or "/nonexistent", name))
    return path.resolve() if path.is_absolute() and is_open(path) else None
