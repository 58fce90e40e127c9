"""Files that cannot be used are named, and what is used goes on."""

import dataclasses
import ssl
from pathlib import Path

import pytest

from fairlead.pki.issuing import create_authority
from fairlead.webhook.https.peer import common_name
from fairlead.webhook.https.tls import InMemory, Tls, TlsError, reason_of
from support.webhook.tls import NOW, YEAR, Ground


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ca.crt", None, "ca.crt cannot be read: No such file or directory"),
        ("ca.crt", b"", "ca.crt holds no certificate in PEM"),
        ("ca.crt", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.crt holds no certificate"),
        ("server.crt", b"nonsense", "server.crt holds no certificate"),
        ("server.key", b"nonsense", "cannot be used together"),
        ("server.key", create_authority("x", NOW, YEAR).key, "cannot be used together"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    files = Ground(tmp_path).files
    used = Tls(files)
    context = used.context
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TlsError, match=message):
        Tls(files)
    with pytest.raises(TlsError):
        used.reload()
    assert used.context is context


def test_what_stands_between_certificates_may_be_in_any_alphabet(tmp_path: Path) -> None:
    files = Ground(tmp_path).files
    used = Tls(files)
    for name in ("Főtanúsítvány", "証明書"):
        files.client_ca.write_bytes(f"# {name}\n".encode() + files.client_ca.read_bytes())
        assert used.reload()


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ({}, None),
        ({"subject": ((("commonName", "a"),),)}, "a"),
        ({"subject": ((("organizationName", "o"),), (("commonName", "a"),))}, "a"),
        ({"subject": ((("commonName", "a"),), (("commonName", "b"),))}, None),
    ],
)
def test_the_name_of_a_caller(peer: dict[str, object], name: str | None) -> None:
    assert common_name(peer) == name


@pytest.mark.parametrize(
    ("alert", "reason"),
    [
        ("SSLV3_ALERT_BAD_CERTIFICATE", "distrusted"),
        ("TLSV1_ALERT_UNKNOWN_CA", "distrusted"),
        ("TLSV1_ALERT_INTERNAL_ERROR", "other"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "no certificate"),
        (None, "other"),
    ],
)
def test_why_a_handshake_failed(alert: str | None, reason: str) -> None:
    error = ssl.SSLError()
    error.reason = alert  # type: ignore[assignment]
    assert reason_of(error) == reason


def test_certificates_in_memory(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    contents = ground.files.read()
    source = InMemory("the authority")
    with pytest.raises(TlsError, match="no certificates from the authority yet"):
        Tls(source)
    source.contents = contents
    used = Tls(source)
    context = used.context
    assert not used.reload()
    source.contents = dataclasses.replace(contents, key=create_authority("x", NOW, YEAR).key)
    with pytest.raises(TlsError, match=r"^the certificate of the authority and its key cannot be used together"):
        used.reload()
    source.contents = dataclasses.replace(contents, client_ca=b"")
    with pytest.raises(TlsError, match=r"^the authority of callers of the authority holds no certificate"):
        used.reload()
    assert used.context is context
