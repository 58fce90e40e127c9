"""Reasons of failed TLS handshakes, as values of a metric label."""

import ssl
from typing import Final

_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "HTTP_REQUEST": "plain HTTP",
    "HTTPS_PROXY_REQUEST": "plain HTTP",
    "WRONG_VERSION_NUMBER": "no TLS",
    "UNSUPPORTED_PROTOCOL": "old TLS",
}
_FAULTS: Final = {9: "not yet valid", 10: "expired", 26: "not for clients"}


def reason_of(error: Exception) -> str:
    """Return the reason of a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _FAULTS.get(error.verify_code, "unknown authority")
    if isinstance(error, ssl.SSLError):
        return _REASONS.get(error.reason or "", "other")
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection lost"
