"""Objects of a scheduler: their names and labels.

A scheduler's name is a DNS label of at most 63 characters, so it can be the value of a label unchanged.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.names import GROUP

Object = dict[str, Any]
"""Object of the API as plain data."""
MANAGER: Final = "fairlead"
STATUS_MANAGER: Final = "fairlead-status"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
SCHEDULER_LABEL: Final = f"{GROUP}/scheduler"
OPERATOR_NAMESPACE: Final = f"{GROUP}/operator-namespace"
"""Label of objects outside of namespaces: the namespace of the operator that wrote them."""
CONFIG_HASH: Final = f"{GROUP}/config-hash"
HASH_VERSION: Final = f"{GROUP}/config-hash-version"
CA_HASH: Final = f"{GROUP}/ca-hash"
SERVER_SECRET: Final = "fairlead-webhook-tls"  # noqa: S105  a name
"""Secret of the replicas' provided server certificate."""
OPERATOR_SECRET: Final = "fairlead-operator-tls"  # noqa: S105
"""Secret of the provided client certificate with which the leader calls replicas."""
PREVIOUS_SECRET: Final = "fairlead-certificates-before"  # noqa: S105
"""Secret of the provided certificates that were presented before the current ones."""
LEASE: Final = "fairlead"
"""Lease of the operator's leader."""

_PREFIX: Final = "kube-scheduler-"
_CHILD_MAX: Final = 46
"""A pod's name is that of its Deployment plus 17 characters, and its host name is cut to 63, by which a scheduler holds
its Lease."""
_HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class ObjectNames:
    """Names of one scheduler's objects, for the operator in one namespace."""

    scheduler: str
    namespace: str

    @property
    def object_name(self) -> str:
        """Name of the objects of which there is one in our namespace; the operator's own have another prefix."""
        name = _PREFIX + self.scheduler
        if len(name) < _CHILD_MAX:
            return name
        # Exactly the names that are cut have this length, so that they never collide with others.
        return f"{name[: _CHILD_MAX - _HASH_LENGTH - 1]}-{digest(self.scheduler)}"

    @property
    def state(self) -> str:
        """Name of the ConfigMap of the persisted state. Names of schedulers have no dots, so it is unique."""
        return f"{self.object_name}.state"

    def configuration(self, config_hash: str) -> str:
        """Return the name of the ConfigMap of one configuration. No hash is `state`."""
        return f"{self.object_name}.{config_hash}"

    @property
    def certificate(self) -> str:
        """Name of the Secret of the client certificate."""
        return f"{self.object_name}-tls"

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of every object. None are copied from policies, whose labels belong to the tools that applied them."""
        return {
            "app.kubernetes.io/component": "scheduler",
            "app.kubernetes.io/instance": self.scheduler,
            MANAGED_BY: MANAGER,
            "app.kubernetes.io/name": "kube-scheduler",
            SCHEDULER_LABEL: self.scheduler,
        }

    @property
    def selector(self) -> Mapping[str, str]:
        """Labels that select the pods; those of a Deployment can never change."""
        return {"app.kubernetes.io/component": "scheduler", SCHEDULER_LABEL: self.scheduler}


def digest(*parts: str) -> str:
    """Return a short hash of texts, which depends on where one text ends and the next begins."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode()
        made.update(len(data).to_bytes(8, "big") + data)
    return made.hexdigest()[:_HASH_LENGTH]
