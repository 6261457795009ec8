"""A model server on loopback that follows a script, in four vendors' ways of streaming.

It stands in for the vendors' services, so that real agent clients can be driven without any of
them. A script is a list of turns; each request that offers tools takes the next one, or,
where several agents ask at once, the one that its own conversation has come to.
"""

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
"""The names that vendors give to errors, by the status of their answer."""
_KINDS_OF_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
}
_SHELL = re.compile(
    r'"(?:bash|run_shell_command|run_commands|exec_command|shell(?:_command)?)"', re.IGNORECASE
)
"""The tools that run commands, as clients name them."""
PATIENCE_S = 120
"""Some clients take half a minute to ask on a busy machine."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer of the model.

    Attributes:
        text: What it says.
        runs: A command that it wants to run.
        uses: Another tool that it wants to use, with what it gives to it.
        status: An HTTP status to refuse with instead.
        refusal: The words of that refusal.
        headers: What goes with such a refusal.
        hangs: Begin the answer and never end it.
        waits: Give no answer before the gate is open.
        takes_s: How long the model thinks before it answers.
    """

    text: str = ""
    runs: str = ""
    uses: tuple[str, dict[str, Any]] | None = None
    status: int = 0
    refusal: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    waits: bool = False
    takes_s: float = 0.0


@dataclass
class ModelServer:
    """A running server.

    Attributes:
        requests: The bodies that it got and that offered tools, at the `moments` beside them.
        logins: What came as authorization, one for each request.
        in_flight: How many requests are being answered now; `peak` is the most there ever were.
        gate: What turns that wait wait for.
        wanted_login: What must come as authorization, if anything must; all else is refused.
        wants_tools: Answer by the script only who offers a shell: others ask for titles, memories
            and the like.
        is_by_conversation: Take turns by what has come back from tools, not by arrival.
    """

    turns: list[Turn]
    is_by_conversation: bool = False
    wants_tools: bool = True
    requests: list[dict[str, Any]] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    wanted_login: str = ""
    in_flight: int = 0
    peak: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        server = self

        class Handler(_Handler):
            model = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._asked = threading.Condition()
        self._before = 0
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def follow(self, turns: list[Turn]) -> None:
        """Answer by another script from now on, request by request."""
        with self._asked:
            self.turns, self.is_by_conversation = turns, False
            self._before = len(self.requests)

    def next_turn(self, body: dict[str, Any]) -> Turn:
        """The next turn of the script; its last one forever after."""
        if self.wants_tools and not _SHELL.search(json.dumps(body.get("tools"))):
            return Turn(text="ok")
        with self._asked:
            self.requests.append(body)
            self.moments.append(time.time())
            self._asked.notify_all()
            arrived = len(self.requests) - self._before - 1
            number = _results_in(body) if self.is_by_conversation else arrived
            return self.turns[min(number, len(self.turns) - 1)]

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request while it is being answered."""
        with self._asked:
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
            self._asked.notify_all()
        try:
            yield
        finally:
            with self._asked:
                self.in_flight -= 1

    def wait_in_flight(self, count: int) -> None:
        """Wait until so many requests are being answered at once."""
        with self._asked:
            assert self._asked.wait_for(lambda: self.in_flight >= count, timeout=PATIENCE_S)

    def wait_requests(self, count: int) -> None:
        """Wait until so many requests have come."""
        with self._asked:
            assert self._asked.wait_for(lambda: len(self.requests) >= count, timeout=PATIENCE_S)

    def wait_login(self) -> None:
        """Wait until anything has been asked."""
        with self._asked:
            assert self._asked.wait_for(lambda: self.logins, timeout=PATIENCE_S)

    def heard(self, login: str | None) -> None:
        """Keep what came as authorization."""
        with self._asked:
            self.logins.append(login)
            self._asked.notify_all()

    def close(self) -> None:
        if self.is_over.is_set():
            return
        self.is_over.set()
        self.gate.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """A client that hangs up is no news: they are killed in these tests."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._json({"data": [], "models": []})

    def do_HEAD(self) -> None:
        self._json({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        if self.path.split("?")[0].endswith("count_tokens"):
            self._json({"input_tokens": 10})
            return
        login = self.headers.get("authorization")
        self.model.heard(login)
        if self.model.wanted_login not in {"", login}:
            self._answer(Turn(status=401), body)
            return
        with self.model.answering():
            self._answer(self.model.next_turn(body), body)

    def _answer(self, turn: Turn, body: dict[str, Any]) -> None:
        if turn.waits:
            self.model.gate.wait(60)
        self.model.is_over.wait(turn.takes_s)
        if turn.status:
            self._json(refusal(self.path, turn), turn.status, turn.headers)
        elif self.path.split("?")[0].endswith(":generateContent"):
            self._json(gemini_events(turn)[0])
        elif "chat/completions" in self.path and not body.get("stream") and not turn.hangs:
            self._json(chat_answer(turn, body))
        else:
            self._stream(_events(self.path, turn, body), turn)

    def _json(
        self, value: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[dict[str, Any]], turn: Turn) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in events[:-1][:4] if turn.hangs else events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if turn.hangs:
            self.model.is_over.wait()


def refusal(path: str, turn: Turn) -> dict[str, Any]:
    """Return what refuses, as the vendor words it whose path was asked."""
    message = turn.refusal or f"scripted failure {turn.status}"
    if "enerateContent" not in path:
        kind = _KINDS.get(turn.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    error: dict[str, Any] = {"code": turn.status, "message": message}
    error["status"] = _KINDS_OF_GOOGLE.get(turn.status, "UNAVAILABLE")
    if wait := turn.headers.get("retry-after"):
        kind = "type.googleapis.com/google.rpc.RetryInfo"
        error["details"] = [{"@type": kind, "retryDelay": f"{wait}s"}]
    return {"error": error}


def _results_in(body: dict[str, Any]) -> int:
    """Return how many results of tools a conversation holds, in any vendor's form."""
    text = json.dumps(body)
    forms = ('"type": "tool_result"', '"type": "function_call_output"', '"role": "tool"')
    return sum(map(text.count, (*forms, '"functionResponse": {')))


def _events(path: str, turn: Turn, body: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer in the form that the path asks for."""
    if "messages" in path:
        return anthropic_events(turn, body)
    if "chat/completions" in path:
        return chat_events(turn, body)
    return gemini_events(turn) if "enerateContent" in path else openai_events(turn, body)


_SHELLS = ("bash", "run_shell_command", "run_commands")


def chat_events(turn: Turn, body: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer as Chat Completions streams it."""
    head = {"id": "chat-fake", "object": "chat.completion.chunk", "created": 1, "model": "fake"}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": turn.text}]
    if turn.runs:
        offered = {tool["function"]["name"] for tool in body["tools"]}
        name = next(name for name in _SHELLS if name in offered)
        given: dict[str, Any] = {"command": turn.runs, "description": "as scripted"}
        if name == "run_shell_command":
            given["is_background"] = False
        if name == "run_commands":
            given = {"commands": [turn.runs]}
        function = {"name": name, "arguments": json.dumps(given)}
        call = {"index": 0, "id": f"call_{id(turn)}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    chunks = [{**head, "choices": [{"index": 0, "delta": d}]} for d in deltas]
    reason = "tool_calls" if turn.runs else "stop"
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
    return [*chunks, last, {**head, "choices": [], "usage": usage}]


def chat_answer(turn: Turn, body: dict[str, Any]) -> dict[str, Any]:
    """One answer as Chat Completions gives it whole."""
    *chunks, last, usage = chat_events(turn, body)
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    for chunk in chunks[1:]:
        message |= chunk["choices"][0]["delta"]
    reason = last["choices"][0]["finish_reason"]
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**usage, "object": "chat.completion", "choices": [choice]}


def gemini_events(turn: Turn) -> list[dict[str, Any]]:
    """One answer as Gemini streams it."""
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    if turn.runs:
        call = {"name": "run_shell_command", "args": {"command": turn.runs}}
        parts.append({"functionCall": call})
    content = {"role": "model", "parts": parts}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 50, "totalTokenCount": 1050}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}]


def anthropic_events(turn: Turn, _body: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer as Messages streams it."""
    usage = {"input_tokens": 1000, "output_tokens": 50}
    message: dict[str, Any] = {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": "fake",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn.text:
        said = {"type": "text_delta", "text": turn.text}
        blocks.append(({"type": "text", "text": ""}, said))
    uses = turn.uses
    if turn.runs:
        uses = "Bash", {"command": turn.runs, "description": "as scripted"}
    if uses:
        tool = {"type": "tool_use", "id": f"toolu_{id(turn)}", "name": uses[0], "input": {}}
        given = {"type": "input_json_delta", "partial_json": json.dumps(uses[1])}
        blocks.append((tool, given))
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if uses else "end_turn"
    end = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 50}})
    return [*events, {"type": "message_stop"}]


def openai_events(turn: Turn, body: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer as Responses streams it; the command goes to whichever shell tool is offered."""
    items: list[dict[str, Any]] = []
    if turn.text:
        said = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "id": "m1", "role": "assistant", "content": said})
    if turn.runs:
        name, given = _shell_call(body, turn.runs)
        call = {"call_id": f"call_{id(turn)}", "name": name, "arguments": json.dumps(given)}
        items.append({"type": "function_call", "id": "f1", **call})
    if turn.uses:
        space, _, name = turn.uses[0].rpartition(".")
        call = {"call_id": f"call_{id(turn)}", "name": name, "namespace": space}
        call["arguments"] = json.dumps(turn.uses[1])
        items.append({"type": "function_call", "id": "f1", **call})
    response: dict[str, Any] = {"id": "resp_fake", "object": "response", "output": []}
    usage = {"input_tokens": 1000, "output_tokens": 50, "total_tokens": 1050}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response}]
    for index, item in enumerate(items):
        events += [
            {"type": "response.output_item.added", "output_index": index, "item": item},
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    done = {**response, "status": "completed", "output": items, "usage": usage}
    return [*events, {"type": "response.completed", "response": done}]


def _shell_call(body: dict[str, Any], command: str) -> tuple[str, dict[str, Any]]:
    offered = {tool.get("name"): tool for tool in body["tools"]}
    if "exec_command" in offered:
        return "exec_command", {"cmd": command}
    if "shell_command" in offered:
        return "shell_command", {"command": command}
    return "shell", {"command": ["/bin/sh", "-c", command]}
