"""Drive Python functions: in a process of their own, or in a thread of the caller's.

A function is named by reference, `module:name`; one that cannot be found again by its name (a
lambda, a function within a function) is refused with that reason.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from engine.agents.call_program import find
from engine.agents.contract import (
    NO_VENDOR,
    AgentLaunch,
    Capabilities,
    FoundAgent,
    HintChannel,
    LaunchFile,
    LaunchRequest,
    LoginTraces,
)
from engine.agents.own_stream import OwnStream
from engine.agents.prompting import system_text, user_text
from engine.errors import AgentError
from engine.values import dataclass

_PROGRAM = Path(__file__).with_name("call_program.py")
_PROGRAM_FILE = ".plait/call_program.py"
_CALL_FILE = ".plait/call.json"


def reference_of(function: Callable[..., Any]) -> str:
    """The name by which another process finds this function again."""
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", "") or ""
    if _named(module, name) is not function:
        shown = name or repr(function)
        raise AgentError(
            f"{shown} cannot be called in another process: it has no importable name",
            hint="Define it with `def` at the top of a module, or run it in a thread.",
        )
    if module != "__main__":
        return f"{module}:{name}"
    file = getattr(sys.modules["__main__"], "__file__", None)
    if file is None:
        raise AgentError(
            f"{name} was typed at a prompt, so another process cannot find it",
            hint="Put it into a file, or run it in a thread.",
        )
    return f"{Path(file).resolve()}:{name}"


_HERE = "this-process:"
_numbers = count(1)
_known_here: "WeakValueDictionary[str, Callable[..., Any]]" = WeakValueDictionary()


def in_this_process(function: Callable[..., Any]) -> str:
    """A name for a function that only a thread of this process can call, as long as it lives."""
    reference = f"{_HERE}{next(_numbers)}"
    try:
        _known_here[reference] = function
    except TypeError as error:
        raise AgentError(
            f"{function!r} cannot be registered", hint="Wrap it in a function of your own."
        ) from error
    return reference


def function_of(reference: str) -> Callable[..., Any]:
    """The function that a thread is to call.

    Raises:
        AgentError: It cannot be found: the process that knew it is gone, or the import fails.
    """
    if not reference.startswith(_HERE):
        try:
            return find(reference)
        except Exception as error:  # the import runs the user's own module: anything may come
            raise AgentError(f"{reference} cannot be imported: {error}") from error
    function = _known_here.get(reference)
    if function is None:
        raise AgentError(
            "the function no longer exists: it was in another process, or nothing kept a "
            "reference to it",
            hint="Use a new agent; the work of this one is kept.",
        )
    return function


def _named(module: str, name: str) -> object:
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@dataclass(frozen=True, kw_only=True)
class CallableAdapter:
    """A Python function as an agent: the option `call` names it, `path` where it is imported from.

    The function takes the prompt and, if it wants, a `CallContext`; what it returns is its result,
    what it raises its failure. It may be `async`.
    """

    name: str = "callable"
    install_hint: str = "any Python function: set `call`"
    login: LoginTraces = NO_VENDOR
    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(
            hint=HintChannel.SYSTEM_PROMPT, usage=True, cost=True, two_way=True
        )
    )

    def launch(self, request: LaunchRequest) -> AgentLaunch:
        """This interpreter, with the caller's import path."""
        reference = request.choice.options.get("call", "")
        if ":" not in reference:
            raise AgentError(
                f"the agent {request.choice.name!r} names no function",
                hint="Name one: `call: package.module:function`.",
            )
        if reference.startswith(_HERE):
            raise AgentError(
                "another process cannot call a function of this one",
                hint='Define it with `def` at the top of a module, or set execution_mode="thread".',
            )
        path = _path(request)
        tools = request.choice.options.get("tools", "").split()
        about = {**about_call(request), "call": reference, "path": path, "tools": tools}
        return AgentLaunch(
            argv=(
                *(sys.executable, "-I"),
                *(f"{request.home}/{file}" for file in (_PROGRAM_FILE, _CALL_FILE)),
            ),
            env=dict(request.choice.env),
            files=(
                LaunchFile(path=_PROGRAM_FILE, data=_PROGRAM.read_bytes()),
                LaunchFile(path=_CALL_FILE, data=json.dumps(about).encode()),
            ),
            keeps_stdin=True,
            reads=(sys.prefix, sys.base_prefix, *path),
        )

    def parser(self, request: LaunchRequest) -> OwnStream:
        """Our own protocol, which the program speaks."""
        return OwnStream(request, speaks=True)

    async def find(self, environment: Mapping[str, str]) -> FoundAgent:
        """Always there."""
        del environment
        return FoundAgent(
            name=self.name,
            path=sys.executable,
            login="needs none",
            driven="a process of its own, or a thread",
            capabilities=self.capabilities,
            install_hint=self.install_hint,
        )


def about_call(request: LaunchRequest) -> dict[str, Any]:
    """Return the fields that a `CallContext` is made from."""
    return {
        "prompt": user_text(request, is_resumed=False),
        "workspace": request.workspace,
        "worker": request.worker,
        "attempt": request.attempt,
        "feedback": request.feedback,
        "system": system_text(request),
    }


def _path(request: LaunchRequest) -> list[str]:
    """Return the import path: the manifest's folder and what is named, else the caller's own."""
    named = request.choice.options.get("path")
    if named is not None:
        return [str(Path(request.folder, part)) for part in named.split(":")]
    own = [str(Path(part).resolve()) for part in sys.path if not part.endswith(".zip")]
    return [*([request.folder] if request.folder else []), *own]
