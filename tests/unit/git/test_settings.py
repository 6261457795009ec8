"""Test what is taken over from the user's configuration, and from whose files."""

from engine.git.composition import with_trailers
from engine.git.plumbing.hardening import disarm
from engine.git.settings import Signature, parse_settings


def listing(*entries: tuple[str, str]) -> bytes:
    return "".join(f"{scope}\0{entry}\0" for scope, entry in entries).encode()


def test_identity_comes_from_any_scope_the_nearest_winning():
    seen = parse_settings(
        listing(("global", "user.name\nAda"), ("local", "user.name\nAda at work")), {}
    )
    assert seen.sign(7).line == b"Ada at work <plait@localhost> 7 +0000"


def test_programs_come_only_from_the_users_own_files():
    local = listing(
        ("local", "commit.gpgsign\ntrue"),
        ("local", "gpg.program\n/evil"),
        ("local", "credential.helper\n!evil"),
        ("local", "core.sshcommand\nevil"),
    )
    seen = parse_settings(local, {})
    assert seen.signing is not None
    assert "gpg.openpgp.program=gpg" in seen.signing.flags
    assert seen.network == ()


def test_signing_follows_the_users_format_and_program():
    seen = parse_settings(
        listing(
            ("global", "commit.gpgsign"),
            ("global", "gpg.format\nssh"),
            ("global", "user.signingkey\n~/id"),
            ("system", "gpg.ssh.program\n/sign"),
        ),
        {},
    )
    assert seen.signing is not None
    assert seen.signing.flags == (
        "-c", "gpg.format=ssh", "-c", "user.signingkey=~/id", "-c", "gpg.ssh.program=/sign",
    )  # fmt: skip


def test_lfs_is_taken_over_only_when_it_is_the_well_known_filter():
    known = [
        ("global", "filter.lfs.clean\ngit-lfs clean -- %f"),
        ("global", "filter.lfs.smudge\ngit-lfs smudge -- %f"),
        ("global", "filter.lfs.process\ngit-lfs filter-process"),
        ("global", "filter.lfs.required\ntrue"),
    ]
    assert parse_settings(listing(*known), {}).lfs
    assert not parse_settings(listing(*known, ("global", "filter.lfs.clean\nevil")), {}).lfs
    assert not parse_settings(listing(*((("local", e)) for _, e in known)), {}).lfs


def test_a_signature_cannot_break_out_of_its_line():
    signature = Signature("A <x>\nparent 0", "e>\nx", 1)
    assert signature.line.count(b"\n") == 0
    assert signature.line.count(b"<") == 1


def test_every_named_driver_is_disarmed_by_its_own_name():
    names = [
        "core.bare",
        "filter.a.b=c.clean",
        "diff.X.textconv",
        "merge.m.driver",
        "filter.l.required",
    ]
    assert dict(disarm(names)) == {
        "filter.a.b=c.clean": "",
        "diff.X.textconv": "",
        "merge.m.driver": "false",
        "filter.l.required": "false",
    }


def test_trailers_form_the_last_paragraph():
    assert (
        with_trailers("Subject", [("A", "1"), ("B", "two\nlines")])
        == "Subject\n\nA: 1\nB: two lines\n"
    )
    assert with_trailers("S\n\nbody\n", [("A", "1")]) == "S\n\nbody\n\nA: 1\n"
    assert with_trailers("S\n\nX: y\n", [("A", "1")]) == "S\n\nX: y\nA: 1\n"
    assert with_trailers("S\n", []) == "S\n"
