"""Who is who: what the certificates of our own authority are called, and by which labels the operator is found."""

import hashlib
from typing import Final

OPERATOR: Final = "fairlead:operator"
"""The operator, which calls what it has rendered and asks its replicas."""
SERVER: Final = "fairlead:webhook"
REPLICAS: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=operator"
"""The labels of the operator's Deployment and its pods, as its chart has them by default."""
NO_POD: Final = "fairlead-asks."
"""The name of the pod that the operator asks about, to see that it is answered: with a dot at its end there is none."""
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
