"""What the certificates of our own authority are called: the one place where names become callers and back."""

import hashlib
from typing import Final

OPERATOR: Final = "fairlead:operator"
"""The operator, which calls what it has rendered and asks its replicas."""
SERVER: Final = "fairlead:webhook"
_SCHEDULER: Final = "fairlead:scheduler:"
_LONGEST: Final = 64  # of a common name, by X.509
_DIGEST: Final = 16


def scheduler_identity(name: str) -> str:
    """The common name of a scheduler's certificate.

    One that is too long is cut and followed by a hash; no scheduler can be called so, for names have no `~`.
    """
    whole = _SCHEDULER + name
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST - _DIGEST - 1]}~{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
