"""Contexts of clients and servers, which are to mean the same on every Python."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from fairlead.pki.issuing import Pair
from fairlead.pki.tls_context import client_context, load_pair
from support.pki.authorities import shake_hands
from testbed.certs import Authority


def test_an_authority_without_a_key_identifier_is_trusted_on_every_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go's clients trust it, too. Since 3.13 Python's default contexts are strict, and do not."""
    default = ssl.create_default_context

    def strict(*args: Any, **options: Any) -> ssl.SSLContext:
        context = default(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    authority = Authority(tmp_path)
    trusted = authority.certificate.read_bytes()
    server, client = (
        Pair(made.certificate.read_bytes(), made.key.read_bytes())
        for made in (authority.issue("server", "server", hosts=["here"]), authority.issue("client", "client"))
    )
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.verify_mode = ssl.CERT_REQUIRED
    ours.load_verify_locations(cadata=trusted.decode())
    load_pair(ours, server.certificate, server.key)
    monkeypatch.setattr(ssl, "create_default_context", strict)
    shake_hands(ours, client_context(trusted, client.certificate, client.key), "here")
    unchanged = strict(cadata=trusted.decode())
    load_pair(unchanged, client.certificate, client.key)
    with pytest.raises(ssl.SSLCertVerificationError, match="Missing Authority Key Identifier"):
        shake_hands(ours, unchanged, "here")
