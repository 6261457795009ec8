"""An agent that tries to steer the engine it works for: prints how far it came, as one line.

Run inside a sandbox as `python -I door_attack.py CASE.json`, with the standard library alone. It
knows everything that could leak: where the engine listens, and the engine's key.
"""

import hashlib
import hmac
import json
import socket
import sys
from pathlib import Path
from typing import IO, Any

Case = dict[str, Any]


def mac(key: bytes, role: str, side: str, nonces: tuple[str, str]) -> str:
    own = hmac.digest(key, f"plait {role}".encode(), hashlib.sha256)
    return hmac.digest(own, "\n".join((side, *nonces)).encode(), hashlib.sha256).hex()


def ask(lines: IO[bytes], message: dict[str, Any]) -> dict[str, Any]:
    lines.write(json.dumps(message).encode() + b"\n")
    lines.flush()
    answer: dict[str, Any] = json.loads(lines.readline() or b'{"error": "nothing was answered"}')
    return answer


def attack(case: Case) -> str:
    key = bytes.fromhex(case["key"] or Path(case["key_file"]).read_text(encoding="ascii"))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(case["socket"])
        lines = client.makefile("rwb")
        hello = json.loads(lines.readline())
        if "error" in hello:
            return f"refused: {hello['error']}"
        role = case["role"]
        proof = mac(key, role, "client", (hello["nonce"], "n"))
        greeting = {"v": hello["v"], "role": role, "nonce": "n", "proof": proof}
        admitted = ask(lines, greeting)
        if "error" in admitted:
            return f"refused: {admitted['error']}"
        answer = ask(lines, {"id": 1, "do": "command", "command": case["command"]})
        return f"answered: {json.dumps(answer)}"


def main() -> None:
    case = json.loads(Path(sys.argv[1]).read_text())
    try:
        said = attack(case)
    except (OSError, ValueError) as error:
        said = f"failed: {error}"
    print(said)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
