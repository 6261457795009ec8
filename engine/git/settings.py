"""The user's own git configuration, read once and carried as data.

Our git never reads the user's configuration while it works; plait passes it these values instead.
A value that names a program (signing, LFS) is taken only from the files that belong to the user
or the machine. It is never taken from the repository's own, which an agent may have written.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_OWN_SCOPES = frozenset({"system", "global"})
_REPOSITORY_SCOPES = frozenset({"local", "worktree"})
_CONVERSION = (
    *("core.autocrlf", "core.eol"),
    *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode"),
)
_NETWORK = re.compile(r"credential\.|http\.|url\.|core\.sshcommand$|core\.gitproxy$")
_SIGNERS = {"openpgp": "gpg", "ssh": "ssh-keygen", "x509": "gpgsm"}
_NOT_SHARED = frozenset({"umask", "false", "no", "off", "0"})
_LFS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}

Entries = tuple[tuple[str, str], ...]
"""Keys and values of a configuration, in order; a key without a value is `true`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """An author and a time: seconds since 1970, and the zone as `+0100`."""

    name: str
    email: str
    seconds: int
    zone: str = "+0000"

    @property
    def line(self) -> bytes:
        """As git writes it into a commit: what would break the line is left out."""
        name, email = (_plain(text) for text in (self.name, self.email))
        return f"{name} <{email}> {self.seconds} {self.zone}".encode(errors="surrogateescape")

    def environment(self, role: str) -> dict[str, str]:
        """The variables that make git write this signature as AUTHOR or COMMITTER."""
        return {
            f"GIT_{role}_NAME": _plain(self.name) or "unknown",
            f"GIT_{role}_EMAIL": _plain(self.email),
            f"GIT_{role}_DATE": f"@{self.seconds} {self.zone}",
        }


def _plain(text: str) -> str:
    return "".join(c for c in text if c not in "<>\n\0").strip()


@dataclass(frozen=True, kw_only=True)
class Signing:
    """The user's way to sign commits; `program` is the one for the format."""

    key: str = ""
    format: str = "openpgp"
    program: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The `-c` words that let git sign as the user would."""
        values = (
            ("gpg.format", self.format),
            ("user.signingkey", self.key),
            (f"gpg.{self.format}.program", self.program or _SIGNERS.get(self.format, "gpg")),
        )
        return tuple(word for key, value in values if value for word in ("-c", f"{key}={value}"))


@dataclass(frozen=True, kw_only=True)
class UserSettings:
    """The user's git, as data.

    Attributes:
        name: `user.name`; empty when the user has not said.
        conversion: Line ends, and what the file system can hold: `(key, value)`.
        excludes: The user's own list of what is never committed, as an absolute path.
        lfs: The LFS filter, only when it is the one that git-lfs itself installs.
        signing: How to sign, when the user signs commits.
        network: How the user reaches remotes: proxies, credential helpers, the ssh command.
        promisor: The remote that has what a partial clone lacks; None for a whole one.
        is_shared: Others write to the repository too, so git gives each file a mode of its own.
        environment: The few variables that such programs need to find their keys.
    """

    name: str = ""
    email: str = ""
    conversion: tuple[tuple[str, str], ...] = ()
    excludes: str | None = None
    lfs: tuple[tuple[str, str], ...] = ()
    signing: Signing | None = None
    network: tuple[tuple[str, str], ...] = ()
    promisor: str | None = None
    is_shared: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def flags(self) -> tuple[str, ...]:
        """The `-c` words that make our git convert and exclude as the user's does."""
        excludes = (("core.excludesfile", self.excludes),) if self.excludes else ()
        values = (*self.conversion, *excludes)
        return tuple(word for key, value in values for word in ("-c", f"{key}={value}"))

    @property
    def lfs_flags(self) -> tuple[str, ...]:
        """The `-c` words that let LFS filter, where the user has it."""
        return tuple(word for key, value in self.lfs for word in ("-c", f"{key}={value}"))

    @property
    def network_flags(self) -> tuple[str, ...]:
        """The `-c` words that let our git reach a remote as the user's does."""
        values = {"core.sshcommand": "ssh", "core.askpass": ""} | dict(self.network)
        single = ((k, v) for k, v in values.items() if k != "credential.helper")
        helpers = ((k, v) for k, v in self.network if k == "credential.helper")
        return tuple(w for key, value in (*single, *helpers) for w in ("-c", f"{key}={value}"))

    def sign(self, seconds: int, zone: str = "+0000") -> Signature:
        """The user's signature at a time; `plait` signs for a user who has not said a name."""
        return Signature(self.name or "plait", self.email or "plait@localhost", seconds, zone)


def parse_settings(listing: bytes, environment: Mapping[str, str]) -> UserSettings:
    """The settings in the output of `git config --list --show-scope -z`, later ones winning."""
    entries = list(_entries(listing))
    every = {key: value for _, key, value in entries}
    own = {key: value for scope, key, value in entries if scope in _OWN_SCOPES}
    is_lfs = all(own.get(key, "").replace(" --skip", "") == value for key, value in _LFS.items())
    return UserSettings(
        name=environment.get("GIT_AUTHOR_NAME") or every.get("user.name", ""),
        email=environment.get("GIT_AUTHOR_EMAIL") or every.get("user.email", ""),
        conversion=conversion_in(every),
        excludes=_excludes(every.get("core.excludesfile"), environment),
        lfs=tuple((key, own[key]) for key in _LFS) if is_lfs else (),
        signing=_signing(every, own),
        network=tuple((k, v) for s, k, v in entries if s in _OWN_SCOPES and _NETWORK.match(k)),
        promisor=_promisor(every),
        is_shared=every.get("core.sharedrepository", "umask").lower() not in _NOT_SHARED,
        environment={
            key: environment[key]
            for key in ("HOME", "GNUPGHOME", "GPG_TTY", "SSH_AUTH_SOCK", "PATH")
            if key in environment
        },
    )


def conversion_in(entries: Mapping[str, str]) -> Entries:
    """Return what of a configuration decides how git writes files."""
    return tuple((key, entries[key]) for key in _CONVERSION if key in entries)


def users_conversion(listing: bytes) -> Entries:
    """Return what decides it outside of the repository, of `config --list --show-scope -z`."""
    found = _entries(listing)
    return conversion_in({k: value for s, k, value in found if s not in _REPOSITORY_SCOPES})


def own_entries(listing: bytes) -> Entries:
    """Return what the repository itself sets, of `config --list --show-scope -z`."""
    found = _entries(listing)
    return tuple((key, value) for scope, key, value in found if scope in _REPOSITORY_SCOPES)


def includes(entries: Entries) -> bool:
    """Say if a configuration includes other files, which can change without it."""
    return any("include" in key.lower() for key, _ in entries)


def _entries(listing: bytes) -> Iterable[tuple[str, str, str]]:
    words = listing.decode(errors="surrogateescape").split("\0")
    for scope, entry in zip(words[::2], words[1::2], strict=False):
        key, newline, value = entry.partition("\n")
        yield scope, key, value if newline else "true"


def _excludes(said: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the path of the user's excludes; `~` is the user's home, unknown to our git."""
    home = environment.get("HOME", "")
    if said is None:
        folder = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
        return f"{folder}/git/ignore" if folder else None
    return f"{home}/{said[2:]}" if said.startswith("~/") else said or None


def _promisor(every: Mapping[str, str]) -> str | None:
    """The remote of a partial clone, by the old way of saying so or the new one."""
    said = (key for key, value in every.items() if key.endswith(".promisor") and value == "true")
    names = (key.removeprefix("remote.").removesuffix(".promisor") for key in said)
    return every.get("extensions.partialclone") or next(names, None)


def _signing(every: Mapping[str, str], own: Mapping[str, str]) -> Signing | None:
    if every.get("commit.gpgsign", "false").lower() not in {"true", "yes", "on", "1"}:
        return None
    chosen = every.get("gpg.format", "openpgp")
    is_default = chosen == "openpgp"
    program = own.get(f"gpg.{chosen}.program") or (own.get("gpg.program") if is_default else None)
    return Signing(key=every.get("user.signingkey", ""), format=chosen, program=program or "")
