"""The words and variables that keep git from running anybody's program, or reading anybody's file.

Everything git can be made to execute through configuration is switched off here, in one place.
Named drivers cannot be switched off as a class: their keys are found and overruled one by one.
"""

import os
import re
from collections.abc import Iterable, Mapping

_OFF = {
    "core.fsmonitor": "false",
    "core.ignoreStat": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "true",
    "core.sshCommand": "false",
    "core.askPass": "true",
    "core.attributesFile": os.devnull,
    "core.alternateRefsCommand": "true",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "advice.detachedHead": "false",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "merge.gpgSign": "false",
    "log.showSignature": "false",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.ssh.defaultKeyCommand": "false",
    "gpg.x509.program": "false",
    "credential.helper": "",
    "diff.external": "",
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "merge.conflictStyle": "merge",
    "protocol.allow": "never",
    "push.gpgSign": "false",
    "rerere.enabled": "false",
    "submodule.recurse": "false",
    "transfer.fsckObjects": "true",
}
FLAGS = tuple(word for key, value in _OFF.items() for word in ("-c", f"{key}={value}"))
"""Put between `git` and its command in every call."""

ENVIRONMENT = {
    "GIT_ASKPASS": "true",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # A replace ref would show other content under an approved id.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A `git status` of ours must not make the user's own git wait for a lock.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": os.devnull,
    # Messages are parsed, so they must not be translated.
    "LC_ALL": "C",
}
"""The whole environment of every call, but for PATH and what names the repository."""

_DRIVER = re.compile(
    r"(?P<kind>filter|diff|merge)\.(?P<name>.+)\."
    r"(?P<key>clean|smudge|process|required|command|textconv|driver)",
    re.DOTALL | re.IGNORECASE,
)


def disarm(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return settings that overrule every driver among the names of settings.

    A merge driver becomes one that always reports a conflict: emptied, git would die instead of
    naming the file that a human must look at.
    """
    found: dict[str, str] = {}
    for name in names:
        match = _DRIVER.fullmatch(name)
        if match is None:
            continue
        found[name] = {"driver": "false", "required": "false"}.get(match["key"].lower(), "")
    return tuple(found.items())


def driver_variables(pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The pairs as variables: a `-c` cannot carry a name that holds a `=`."""
    variables = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def base_environment(path: str, extra: Mapping[str, str]) -> dict[str, str]:
    """A call's environment from scratch: `path` is where programs are looked for."""
    return {**ENVIRONMENT, "PATH": path, **extra}
