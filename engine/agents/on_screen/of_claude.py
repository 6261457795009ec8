"""Prepare Claude Code for a terminal: its user's settings, no first questions, hooks that tell.

Its hooks say when its turn has ended, and when it asks: they hand Claude Code a notice, which it
writes to its terminal. All of that lies in the worker's HOME, and nothing in the workspace.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.agents.contract import AgentLaunch, LaunchFile, LaunchRequest
from engine.agents.options import folders_of
from engine.agents.permitting import is_allowed_unasked
from engine.agents.records import Record, read_record, table_of
from engine.agents.settings.claude import (
    base_url_of_claude,
    environment_of_claude,
    login_of_claude,
    settings_of_claude,
)
from engine.plan.model import AgentChoice
from engine.values import dataclass

PERMISSION = "plait permission"
"""The title of the notice by which a hook says that its agent asks for a permission."""


@dataclass(frozen=True, kw_only=True)
class Ways:
    """The keys that a program is known to take; none where nobody knows it.

    Attributes:
        allow: They give the permission that it asks for.
        deny: They refuse it.
        leave: They end the program, together with the end of its input.
    """

    allow: bytes = b""
    deny: bytes = b""
    leave: bytes = b""


ANY_PROGRAM = Ways()
CLAUDE = Ways(allow=b"1", deny=b"\x19", leave=b"\x04")
"""The first choice of its dialog, a key of our own, and the one that it wants twice to leave."""
_KEYS = [
    {"context": "Confirmation", "bindings": {"ctrl+y": "confirm:no"}},
    {"context": "Select", "bindings": {"ctrl+y": "select:cancel"}},
]
_SETTINGS, _STATE, _TELLS = ".claude/settings.json", ".claude.json", ".plait/tells.sh"
_EVENTS = ("Stop", "StopFailure", "Notification", "PermissionRequest")
_IDLE_MS = 2000
"""So long it waits before it says that it waits."""
_UNASKED = (
    *("Bash", "Read", "Edit", "Write", "NotebookEdit", "Glob", "Grep", "Task", "Agent"),
    *("WebFetch", "WebSearch", "Skill"),
)
CUT = "…"
"""Stands in a notice behind what was cut or changed: lines and odd characters cannot be shown."""
_SCRIPT = r"""#!/bin/sh
# Claude Code runs this as a hook of the event that $1 names. It answers with a notice, which plait
# reads on the terminal.
LC_ALL=C
export LC_ALL
asked=$(tr '\n' ' ')
# What stands behind this key is the agent's own text, so no name is read from there.
names=$(printf '%s' "$asked" | sed 's/"tool_input" *:.*//')
values() {
  printf '%s' "$1" | grep -aoE "\"$2\" *: *\"([^\"\\\\]|\\\\.)*\"" |
    sed -E 's/^"[^"]*" *: *"(.*)"$/\1/'
}
said() {
  all=$(values "$1" "$2")
  one=$(printf '%s\n' "$all" | sed -n 1p)
  back=$(printf '\001')
  raw=$(printf '%s' "$one" | sed -E "s/\\\\\\\\/$back/g")
  plain=$(printf '%s' "$raw" | sed -E 's/\\[nrtbf]/ /g; s/\\u[0-9a-fA-F]{4}/?/g')
  short=$(printf '%s' "$plain" | cut -c1-200)
  printf '%s' "$short" | sed -E "s/\\\\$//; s/$back/\\\\\\\\/g"
  [ "$all" = "$one" ] && [ "$short" = "$raw" ] || printf '@cut@'
}
case $1 in
Stop) notice='plait;done' ;;
StopFailure) notice="claude;its turn ended with an error: $(said "$names" error)" ;;
Notification)
  [ "$(said "$names" notification_type)" = permission_prompt ] && exit 0
  notice="claude;$(said "$names" message)"
  ;;
*)
  tool=$(said "$names" tool_name)
  case $tool in
  Bash) about=$(said "$asked" command) ;;
  Read | Edit | MultiEdit | Write) about=$(said "$asked" file_path) ;;
  NotebookEdit) about=$(said "$asked" notebook_path) ;;
  WebFetch) about=$(said "$asked" url) ;;
  WebSearch) about=$(said "$asked" query) ;;
  *) about='@cut@' ;;
  esac
  notice="@permission@;$tool($about)"
  ;;
esac
printf '{"terminalSequence":"\\u001b]777;notify;%s\\u0007"}' "$notice"
"""


def is_claude(choice: AgentChoice) -> bool:
    """Return True if the program on the terminal is Claude Code itself."""
    return bool(choice.argv) and Path(choice.argv[0]).name == "claude"


def with_claude(request: LaunchRequest, launch: AgentLaunch) -> AgentLaunch:
    """Return the launch with all that Claude Code is to find in its HOME and environment."""
    copy = settings_of_claude(request)
    files = {file.path: file for file in copy.files}
    _merge(files, _SETTINGS, _settings(request, _read(files, _SETTINGS)))
    env = {**environment_of_claude(request), **launch.env}
    _merge(files, _STATE, {**_read(files, _STATE), **_state(request, env)})
    script = _SCRIPT.replace("@permission@", PERMISSION).replace("@cut@", CUT)
    _merge(files, ".claude/keybindings.json", {"bindings": _KEYS})
    tells = LaunchFile(path=_TELLS, data=script.encode(), mode=0o500)
    return replace(
        launch,
        env=env,
        files=(*launch.files, *files.values(), tells),
        settings=copy.listed,
        hosts=("api.anthropic.com",),
        reads=(*launch.reads, *folders_of(request, request.choice.argv[0]), *copy.reads),
        login=login_of_claude(request),
        base_url=base_url_of_claude(request),
    )


def _read(files: Mapping[str, LaunchFile], path: str) -> Record:
    return (read_record(files[path].data) or {}) if path in files else {}


def _merge(files: dict[str, LaunchFile], path: str, value: Record) -> None:
    files[path] = LaunchFile(path=path, data=json.dumps(value).encode())


def _settings(request: LaunchRequest, users: Record) -> Record:
    """Return the user's settings with our hooks and with what needs no asking."""
    script = shlex.quote(f"{request.home}/{_TELLS}")
    hook = {"type": "command", "timeout": 10}
    ours = {e: [{"hooks": [{**hook, "command": f"sh {script} {e}"}]}] for e in _EVENTS}
    own = table_of(users.get("hooks"))
    hooks = {**own, **{event: [*own.get(event, []), *ours[event]] for event in ours}}
    permissions = table_of(users.get("permissions"))
    asked = request.permissions
    allow = _UNASKED if is_allowed_unasked(request) else asked.allow
    # By itself it would let its model decide what is asked, and offers that again and again.
    mode = "acceptEdits" if is_allowed_unasked(request) else "default"
    permissions = {**permissions, "defaultMode": mode, "disableAutoMode": "disable"}
    deny = [*permissions.get("deny", []), *asked.deny]
    return {
        **users,
        "hooks": hooks,
        "permissions": {**permissions, "allow": [*allow], "deny": deny},
    }


def _state(request: LaunchRequest, env: Mapping[str, str]) -> Record:
    """Return what spares it the questions that it asks a new user."""
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    key = env.get("ANTHROPIC_API_KEY", "")
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "messageIdleNotifThresholdMs": _IDLE_MS,
        "projects": {request.workspace: trusted},
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
    }
