"""Ask the clients that can which models they know, and refuse one that they would not know.

No model is asked, and no server of a vendor's: a client's own program lists what it knows.
"""

import difflib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio

from engine.agents.contract import AgentLaunch, FoundAgent, LaunchRequest
from engine.agents.options import more_arguments
from engine.errors import AgentError
from engine.values import dataclass

_WITH_PROVIDER = re.compile(r"[\w.-]+(?:/[\w.:@-]+)+")
_LONGEST_ASK_S = 30.0
_MOST_NAMED = 5


def _of_codex(said: str) -> list[str]:
    return [str(model["slug"]) for model in json.loads(said)["models"]]


def _of_opencode(said: str) -> list[str]:
    return [word for line in said.splitlines() if _WITH_PROVIDER.fullmatch(word := line.strip())]


def _of_pi(said: str) -> list[str]:
    """Read a table: provider and model are its first two columns, behind a head."""
    rows = [line.split() for line in said.splitlines()]
    heads = [number for number, row in enumerate(rows) if row[:2] == ["provider", "model"]]
    return [f"{row[0]}/{row[1]}" for row in rows[heads[0] + 1 :] if len(row) > 1] if heads else []


def _unknown_to_opencode(model: str, known: tuple[str, ...], _request: LaunchRequest) -> bool:
    """Another provider may be described in the repository; what one of those here has is known."""
    provider = f"{model.partition('/')[0]}/"
    return model not in known and any(one.startswith(provider) for one in known)


def _unknown_to_pi(model: str, known: tuple[str, ...], request: LaunchRequest) -> bool:
    """It takes a part of a name, and any name of a provider that is said."""
    word = model.partition(":")[0].casefold()
    is_open = "/" in model or "--provider" in " ".join(more_arguments(request))
    return not is_open and not any(word in one.casefold() for one in known)


@dataclass(frozen=True)
class _Lister:
    """The way in which a client lists its models, and the rule by which it takes a name."""

    words: tuple[str, ...]
    read: Callable[[str], list[str]]
    is_unknown: Callable[[str, tuple[str, ...], LaunchRequest], bool] | None = None


_LISTERS = {
    # Codex takes models of its vendor's that its list does not have yet: none is refused.
    "codex": _Lister(("debug", "models"), _of_codex),
    "opencode": _Lister(("models",), _of_opencode, _unknown_to_opencode),
    "pi": _Lister(("--list-models",), _of_pi, _unknown_to_pi),
}


async def models_of(agent: FoundAgent, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the models that a client lists; none where it lists none."""
    lister = _LISTERS.get(agent.name)
    if lister is None or agent.path is None:
        return ()
    return await _listed(lister, agent.path, environment)


async def check_models(launches: Iterable[tuple[LaunchRequest, AgentLaunch]]) -> None:
    """Refuse a model that the client itself would not know.

    Raises:
        AgentError: Its client lists its models, and this one is not among them.
    """
    listed: dict[str, tuple[str, ...]] = {}
    for request, launch in launches:
        model, choice = request.choice.model, request.choice
        lister = _LISTERS.get(choice.adapter.removesuffix("-acp"))
        environment = {**request.environment, **launch.env}
        if not (model and lister and lister.is_unknown):
            continue
        program = await anyio.to_thread.run_sync(
            partial(shutil.which, launch.argv[0], path=environment.get("PATH"))
        )
        if program is None:
            continue
        if program not in listed:
            listed[program] = await _listed(lister, program, environment)
        if (known := listed[program]) and lister.is_unknown(model, known, request):
            raise AgentError(
                f"the agent {choice.name!r} cannot start: {unknown_model(model, known)}",
                hint=f"`{Path(program).name} {' '.join(lister.words)}` lists them.",
            )


def unknown_model(model: str, known: tuple[str, ...]) -> str:
    """Return the words for a model that a client does not know, with those nearest to it."""
    named = difflib.get_close_matches(model, known, n=_MOST_NAMED) or known[:_MOST_NAMED]
    words = ", ".join((*named, "…") if len(known) > len(named) else named)
    return f"its client does not know the model {model!r}{f': it knows {words}' if words else ''}"


async def _listed(lister: _Lister, program: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    with anyio.move_on_after(_LONGEST_ASK_S):
        try:
            # Not in a repository: the client would load the settings and plugins that lie there.
            said = await anyio.run_process(
                (program, *lister.words), check=False, env=environment, cwd="/"
            )
        except OSError:
            return ()
        for data in (said.stdout, said.stderr):  # pi writes its list to the latter
            with suppress(ValueError, LookupError, TypeError):
                if found := lister.read(data.decode("utf-8", "replace")):
                    return tuple(found)
    return ()
