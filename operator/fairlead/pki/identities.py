"""Identities: common names of certificates, and the labels and the namespace of the operator."""

import hashlib
from typing import Final

OPERATOR: Final = "fairlead:operator"
"""Common name of the operator as a client, which probes extender URLs and polls its replicas."""
SERVER: Final = "fairlead:webhook"
REPLICAS: Final = "app.kubernetes.io/name=fairlead,app.kubernetes.io/component=operator"
"""Label selector of the operator's Deployment and pods, as the chart has them by default."""
NAMESPACE: Final = "fairlead-system"
"""Namespace of the operator, as the documentation has it by default."""
AUTHORITY_SECRET: Final = "fairlead-ca"  # noqa: S105  a name
"""Secret of the operator's own authority."""
AUTHORITY_CONFIG_MAP: Final = AUTHORITY_SECRET
"""ConfigMap of the chart with that authority's certificates, for those who verify replicas."""
NO_POD: Final = "fairlead-asks."
"""Name of the pod in the operator's probes: no pod's name ends with a dot."""
_SCHEDULER: Final = "fairlead:scheduler:"
_LONGEST: Final = 64  # of a common name, by X.509
_DIGEST: Final = 16


def scheduler_identity(name: str) -> str:
    """Return the common name of a scheduler's certificate.

    A name that is too long is cut and gets a hash after `~`, which no scheduler's name contains.
    """
    whole = _SCHEDULER + name
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST - _DIGEST - 1]}~{hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]}"
