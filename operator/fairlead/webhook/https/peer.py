"""Identity of a client, as its TLS handshake has shown it, and until when it is valid.

A handshake asks for the certificate once. The certificate expires, and its authority may lose its trust, while the
connection is open.
"""

import ssl
from asyncio import BaseTransport
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.pki import parsing
from fairlead.time_units import SECOND_NS

_NEVER: Final = 1 << 63


@dataclass(slots=True, eq=False)
class Peer:
    """Client of one connection."""

    name: str | None
    """Common name of its certificate; None if it has none, or several."""
    leaf: str
    """Fingerprint of its certificate."""
    address: str
    valid_until: int
    """When its certificate is no longer valid, in nanoseconds of the clock that requests are timed by."""
    invalid_reason: str = "expired"
    """The reason: one of a few fixed texts, a metric label."""


def peer_of(transport: BaseTransport, now: int, time: int) -> Peer:
    """Return the client of a connection; `time` is the time of day, in nanoseconds since 1970, at `now`."""
    certificate: Mapping[str, Any] = transport.get_extra_info("peercert") or {}
    end = certificate.get("notAfter")
    return Peer(
        name=common_name(certificate),
        leaf=parsing.fingerprint(_leaf(transport)),
        address=str((transport.get_extra_info("peername") or ("?",))[0]),
        valid_until=_NEVER if end is None else now + int(ssl.cert_time_to_seconds(end)) * SECOND_NS - time,
    )


def common_name(certificate: Mapping[str, Any]) -> str | None:
    """Return the common name of a certificate as Python presents it; None if it has none, or several."""
    subject: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else None


def chain(transport: BaseTransport) -> tuple[bytes, ...]:
    """Return the certificate chain of the client, its own certificate first, in DER."""
    tls: Any = transport.get_extra_info("ssl_object")
    if tls is None:
        return ()
    if hasattr(tls, "get_unverified_chain"):  # from Python 3.13 on
        return tuple(tls.get_unverified_chain() or ())
    found = tls._sslobj.get_unverified_chain() or ()  # noqa: SLF001  present from 3.10 on
    return tuple(ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in found)


def _leaf(transport: BaseTransport) -> bytes:
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return (tls.getpeercert(binary_form=True) or b"") if tls is not None else b""
