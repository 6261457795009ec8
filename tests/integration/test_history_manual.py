"""A team's database as the manual has it: over TLS, with roles, restored from a backup."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from engine.errors import StoreError
from engine.history.postgres import PostgresHistory
from engine.history.seam import AttemptRecord, JournalPiece, Query, RunRecord
from engine.store.store import JournalEntry
from tests.support.postgres import NOBODY, Postgres, guarded, started

pytestmark = pytest.mark.needs("postgresql")

MANUAL = Path(__file__).parents[2] / "docs" / "history.md"
HUSH = "hush-hush"
RUN = RunRecord(
    uid="u1", run="a1b2c3", name="n", repository="r", person="p", host="h", began=1.0, seq=1
)
TRY = AttemptRecord(worker="a/worker_1", attempt=1, step="a", prompt="Fix it")
PIECE = JournalPiece(run=RUN, events=[JournalEntry(1, 1.0, "RunStarted", "{}")], attempts=[TRY])


def grants() -> str:
    """Return the roles as the manual makes them."""
    return MANUAL.read_text().partition("```sql\n")[2].partition("```")[0]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with started() as server:
        yield server


@pytest.fixture
def url(server: Postgres) -> Iterator[str]:
    """The address of a history whose roles are made."""
    url = server.database()
    with closing(PostgresHistory(url)) as owner:
        owner.up()
        server.execute(grants(), url)
        owner.push(PIECE)
    yield url
    for role in ("plait_writer", "plait_reader"):
        server.execute(f"DROP OWNED BY {role}; DROP ROLE {role}", url)


READ = ("SELECT * FROM plait.run", "SELECT * FROM plait.attempt", "SELECT * FROM plait.event")
WRITE = ("UPDATE plait.run SET name = 'x'", "UPDATE plait.attempt SET usd = 1")
DESTROY = (
    "DROP TABLE plait.attempt",
    "DROP SCHEMA plait CASCADE",
    "TRUNCATE plait.event",
    "DELETE FROM plait.event",
    "DELETE FROM plait.attempt",
    "ALTER TABLE plait.run ADD COLUMN x TEXT",
    "CREATE TABLE plait.mine (x TEXT)",
    "UPDATE plait.event SET json = '{}'",
    "UPDATE plait.version SET version = 99",
    "INSERT INTO plait.version VALUES (99)",
)


MAY = {"writer": (*READ, *WRITE), "reader": READ}
MAY_NOT = {"writer": DESTROY, "reader": (*WRITE, *DESTROY)}


@pytest.mark.parametrize("role", MAY)
def test_a_role_may_do_what_it_is_for_and_no_more(server: Postgres, url: str, role: str):
    own = url.replace("owner@", f"plait_{role}@")
    for statement in MAY[role]:
        server.execute(statement, own)
    for statement in MAY_NOT[role]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.execute(statement, own)
    with closing(PostgresHistory(own)) as history:
        assert history.search(Query(words="fix"))


@pytest.fixture
def guarded_by_tls(tmp_path: Path) -> Iterator[tuple[Postgres, str, Path]]:
    """A server that is reached over TLS and with a password alone, its address, its authority."""
    with socket.socket() as held, guarded() as folder:
        # Nobody else is given a port that is bound; the server may share it.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        port = str(held.getsockname()[1])
        made = Postgres(folder)
        key, certificate = signed(folder, tmp_path)
        doors = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        (folder / "hba").write_text(doors)
        made.settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "hba_file": str(folder / "hba"),
            "ssl": "on",
            "ssl_key_file": str(key),
            "ssl_cert_file": str(certificate),
        }
        made.start()
        local = f"{made.url()}&port={port}"
        made.execute(f"CREATE ROLE ada LOGIN SUPERUSER PASSWORD '{HUSH}'", local)
        words = f"hostaddr=127.0.0.1&port={port}"
        try:
            yield (
                made,
                f"postgresql://ada:{HUSH}@localhost/postgres?{words}",
                tmp_path / "ca.pem",
            )
        finally:
            made.stop()


def signed(folder: Path, authority: Path) -> tuple[Path, Path]:
    """Make an authority, and a server's key and certificate; only the server reads the key."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    days = ("-days", "2", "-nodes", "-newkey", "rsa:2048")
    for name in ("ca", "other"):
        pair = ("-keyout", str(authority / f"{name}.key"), "-out", str(authority / f"{name}.pem"))
        openssl("req", "-x509", *days, *pair, "-subj", f"/CN={name}")
    key, asked, certificate = folder / "key", authority / "asked", folder / "certificate"
    openssl(*("req", *days[2:], "-keyout", str(key), "-out", str(asked), "-subj", "/CN=localhost"))
    by = ("-CA", str(authority / "ca.pem"), "-CAkey", str(authority / "ca.key"))
    openssl(*("x509", "-req", "-in", str(asked), *by, "-CAcreateserial", "-out", str(certificate)))
    key.chmod(0o600)
    if not os.getuid():
        os.chown(key, NOBODY, NOBODY)
    return key, certificate


@pytest.mark.needs("openssl")
def test_a_history_is_kept_over_tls_and_a_server_that_is_another_is_refused(
    guarded_by_tls: tuple[Postgres, str, Path],
):
    _, url, authority = guarded_by_tls
    with closing(PostgresHistory(f"{url}&sslmode=verify-full&sslrootcert={authority}")) as history:
        history.up()
        assert history.push(PIECE) == 1
        assert len(history.search(Query())) == 1
    refused = {
        f"{url}&sslmode=verify-full&sslrootcert={authority.with_name('other.pem')}": "certificate",
        f"{url}&sslmode=disable": "no encryption",
        f"{url.replace(HUSH, 'wrong-one')}&sslmode=require": "password",
        f"{url.replace('localhost', 'elsewhere')}&sslmode=verify-full&sslrootcert={authority}": (
            "elsewhere"
        ),
    }
    for address, word in refused.items():
        history = PostgresHistory(address)
        with closing(history), pytest.raises(StoreError, match=word) as told:
            history.push(PIECE)
        said = f"{told.value} {told.value.hint}"
        assert HUSH not in said
        assert "wrong-one" not in said
