"""Reasons why handshakes fail, in a few words: labels of a metric."""

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
    """Return the reason why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _FAULTS.get(error.verify_code, "unknown authority")
    if isinstance(error, ssl.SSLError):
        return _REASONS.get(error.reason or "", "other")
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection lost"
