"""Calls a Python function as if it were an agent, and tells what it does in the line protocol.

A program of its own: it is copied to where agents run and imports nothing of the engine. What it
calls is named by reference; functions that have no name to be imported by were refused before.
"""

import functools
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Sink = Callable[[dict[str, Any]], object]
Asker = Callable[[dict[str, Any]], str]


class CallContext:
    """The second argument of a called function, if it takes one, for reports and questions.

    Attributes:
        prompt: The prompt, which is also the first argument.
        workspace: Its folder, which is the current folder if the function has its own process.
        worker: The worker it is, as `step/worker_1`.
        attempt: The number of this attempt, from 1.
        feedback: The feedback on the previous attempt.
        system: The persona's words and the hint about sub-agents.
        tools: Its functions by name; plait reports every call of one as a tool call.
    """

    def __init__(
        self,
        about: dict[str, Any],
        tell: Sink,
        ask: Asker,
        tools: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        self.prompt: str = about["prompt"]
        self.workspace: str = about["workspace"]
        self.worker: str = about["worker"]
        self.attempt: int = about["attempt"]
        self.feedback: str = about["feedback"]
        self.system: str = about["system"]
        self.tools = {tool.__name__: self._told(tool) for tool in tools}
        self._tell, self._ask = tell, ask
        self._count = 0
        self._spent = {"input_tokens": 0, "output_tokens": 0, "usd": 0.0}

    def say(self, text: str) -> None:
        """Write a message; the return value, or the last message, becomes the worker's output."""
        self._tell({"plait": "say", "text": text})

    def progress(self, fraction: float | None, note: str = "") -> None:
        """Report the progress, from 0 to 1."""
        self._tell({"plait": "progress", "fraction": fraction, "note": note})

    def tool(self, name: str, title: str = "") -> Callable[..., None]:
        """Report the start of a tool call; return a function that reports its end."""
        self._count += 1
        about = {"plait": "tool", "id": f"call-{self._count}", "name": name}
        self._tell({**about, "title": title, "state": "started"})

        def end(state: str = "done", output: str = "") -> None:
            self._tell({**about, "state": state, "output": output})

        return end

    def _told(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def use(*args: Any, **kwargs: Any) -> Any:
            end = self.tool(tool.__name__)
            try:
                made = tool(*args, **kwargs)
            except BaseException as error:
                end("failed", "".join(traceback.format_exception_only(error)).strip())
                raise
            end("done", str(made))
            return made

        return use

    def spend(self, *, input_tokens: int = 0, output_tokens: int = 0, usd: float = 0.0) -> None:
        """Add tokens and money to the usage of this attempt."""
        self._spent["input_tokens"] += input_tokens
        self._spent["output_tokens"] += output_tokens
        self._spent["usd"] += usd
        self._tell({"plait": "usage", **self._spent})

    def ask(self, text: str, choices: tuple[str, ...] = ()) -> str:
        """Ask a human and wait for the answer; it is `deny` if the engine has ended."""
        self._count += 1
        about = {"id": f"question-{self._count}", "text": text, "choices": list(choices)}
        return self._ask({"plait": "ask", **about})


def find(reference: str) -> Callable[..., Any]:
    """The function that `module:name` or `file.py:name` refers to."""
    place, _, name = reference.rpartition(":")
    module = _load(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{reference} is not callable")
    return found  # type: ignore[no-any-return]


def call(function: Callable[..., Any], context: CallContext) -> object:
    """Call it with the prompt, and with the context if it has a place for one."""
    takes = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    arguments = (context.prompt, context)[: len(takes)]
    if inspect.iscoroutinefunction(function):
        import anyio  # noqa: PLC0415 - only where the function is async

        return anyio.run(function, *arguments)
    return function(*arguments)


def result(value: object) -> dict[str, Any]:
    """The closing record for what was returned: text as it is, other values as JSON."""
    text = value if isinstance(value, str) else ""
    if value is not None and not isinstance(value, str):
        text = json.dumps(value, default=repr, ensure_ascii=False)
    return {"plait": "result", "ok": True, "text": text}


def failure(error: BaseException) -> dict[str, Any]:
    """The closing record for what was raised."""
    said = "".join(traceback.format_exception_only(error)).strip()
    return {"plait": "result", "ok": False, "error": said}


def _load(path: Path) -> ModuleType:
    # Under a name that is not `__main__`, so that a script's own main part does not run again.
    spec = importlib.util.spec_from_file_location("__plait_main__", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _write(record: dict[str, Any]) -> None:
    # The function may have printed half a line: a record begins on a line of its own.
    sys.stdout.flush()
    line = json.dumps(record, ensure_ascii=False, default=repr)
    os.write(1, b"\n" + line.encode("utf-8", "replace") + b"\n")


def _ask(record: dict[str, Any]) -> str:
    _write(record)
    for line in sys.stdin:
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and told.get("id") == record["id"]:
            return str(told.get("answer", ""))
    return "deny"


def main() -> int:
    """Call what the file named as the only argument asks for."""
    about = json.loads(Path(sys.argv[1]).read_bytes())
    sys.path[:0] = about["path"]
    try:
        tools = tuple(map(find, about["tools"]))
        value = call(find(about["call"]), CallContext(about, _write, _ask, tools))
    except Exception as error:  # noqa: BLE001 - whatever it raised is how this agent failed
        traceback.print_exc()
        _write(failure(error))
        return 1
    _write(result(value))
    return 0


if __name__ == "__main__":
    sys.exit(main())
