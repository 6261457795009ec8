"""An MCP server on standard input and output with one tool, which tells a variable it was given."""

import json
import os
import sys

TOOL = {
    "name": "tell_weather",
    "description": "Tells the weather of plait.",
    "inputSchema": {"type": "object", "properties": {}},
}


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        about = {"name": "weather", "version": "1"}
        version = params.get("protocolVersion")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        told = f"rain {os.environ.get('PASSED')} {os.environ.get('UNNAMED')}"
        return {"content": [{"type": "text", "text": told}]}
    return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = answer(asked["method"], asked.get("params") or {})
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
        sys.stdout.flush()
