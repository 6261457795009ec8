"""A vendor whose refresh tokens work once, and the program of an agent that logs in there.

Run as a program it is that agent: it renews its user's login when asked for a word, and works like
Claude Code in a worker, with nothing but the access token it is given.
"""

import json
import os
import stat
import sys
import threading
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class FakeVendor:
    """The vendor's service.

    Attributes:
        renewals: How often a refresh token was taken and another one given.
        is_revoked: Somebody used a refresh token twice, so that the login is good for nothing.
        seen: What each worker said of its surroundings.
        crowd: Nobody is given new tokens before so many have asked for them.
    """

    refresh: str = "refresh-0"
    access: str = "access-0"
    renewals: int = 0
    is_revoked: bool = False
    can_renew: bool = True
    seen: list[dict[str, Any]] = field(default_factory=list)
    crowd: int = 1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        vendor = self
        self._gate = threading.Barrier(self.crowd)

        class Handler(_Handler):
            service = vendor

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/token" and self.crowd > 1:
            self._gate.wait(timeout=50)
        return self.take(path, body)

    def take(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self._lock:
            if path == "/work":
                self.seen.append(body)
                return (200 if body["access"] == self.access else 401), {}
            if not self.can_renew:
                return 400, {}
            if body["refresh"] != self.refresh:
                self.is_revoked = True
                return 400, {}
            self.renewals += 1
            return 200, self.issue()

    def issue(self) -> dict[str, Any]:
        """New tokens; the ones before are good for nothing from now on."""
        number = int(self.refresh.split("-")[1]) + 1
        self.refresh, self.access = f"refresh-{number}", f"access-{number}"
        return {"accessToken": self.access, "refreshToken": self.refresh}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    service: FakeVendor

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, found = self.service.answer(self.path, body)
        data = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def log_in(home: Path, tokens: dict[str, Any], *, ends_at: float) -> None:
    """Keep a login as the program does."""
    file = home / ".claude/.credentials.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps({"claudeAiOauth": {**tokens, "expiresAt": ends_at * 1000}}))
    new.replace(file)


def kept(home: Path) -> dict[str, Any]:
    """The login as it is kept."""
    file = home / ".claude/.credentials.json"
    found: dict[str, Any] = json.loads(file.read_text())["claudeAiOauth"]
    return found


def install(folder: Path) -> Path:
    """The program, as something to be started."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "claude"
    program.write_text(f"#!/usr/bin/env python3\n{Path(__file__).read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def _ask(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    data = json.dumps(body).encode()
    asked = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + path, data)  # noqa: S310  loopback
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310  loopback
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}


def _renew(home: Path) -> int:
    status, tokens = _ask("/token", {"refresh": kept(home)["refreshToken"]})
    if status == 200:
        log_in(home, tokens, ends_at=4_000_000_000)
    return 0 if status == 200 else 1


def _work(home: Path) -> int:
    told = json.dumps([*sys.argv, *os.environ.values()]) + "".join(
        path.read_text(errors="replace") for path in home.rglob("*") if path.is_file()
    )
    access = os.environ.get("CLAUDE_CODE_OAUTH_TOKEN", "")
    status, _ = _ask("/work", {"access": access, "sees_refresh": "refresh-" in told})
    result = {"type": "result", "subtype": "success", "session_id": "s", "is_error": status != 200}
    result |= (
        {"result": "Done."} if status == 200 else {"result": "log in", "api_error_status": 401}
    )
    begun = {"type": "system", "subtype": "init", "session_id": "s"}
    sys.stdout.write(f"{json.dumps(begun)}\n{json.dumps(result)}\n")
    sys.stdout.flush()
    sys.stdin.read()
    return 0 if status == 200 else 1


if __name__ == "__main__":
    own = Path(os.environ["HOME"])
    sys.exit(_work(own) if "stream-json" in sys.argv else _renew(own))
