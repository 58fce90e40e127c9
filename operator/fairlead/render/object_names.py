"""What the objects of a scheduler are called, and by which labels they are found.

A scheduler's name is a DNS label, as in policies: at most 63 characters, so that it is a label's value as it stands.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.api.names import GROUP

MANAGER: Final = "fairlead"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
SCHEDULER_LABEL: Final = f"{GROUP}/scheduler"
CONFIG_HASH: Final = f"{GROUP}/config-hash"
HASH_VERSION: Final = f"{GROUP}/config-hash-version"
CA_HASH: Final = f"{GROUP}/ca-hash"
CERTIFICATE: Final = f"{GROUP}/certificate-secret"
SERVER_SECRET: Final = "fairlead-webhook-tls"  # noqa: S105  a name
"""Of the certificate that replicas show, where others make certificates."""
OPERATOR_SECRET: Final = "fairlead-operator-tls"  # noqa: S105
"""Of the one that the leader shows to replicas, then."""

_PREFIX: Final = "kube-scheduler-"
_CHILD_MAX: Final = 46
"""A pod is called after its Deployment, with 17 characters more, and its host after the first 63 of that: by the name
of its host a scheduler holds its Lease."""
_HASH_LENGTH: Final = 12


@dataclass(frozen=True, slots=True)
class Names:
    """Of one scheduler, of the operator in one namespace."""

    scheduler: str
    namespace: str

    @property
    def object_name(self) -> str:
        """Whatever there is one of in our namespace; the operator's own objects begin otherwise."""
        name = _PREFIX + self.scheduler
        if len(name) < _CHILD_MAX:
            return name
        # All that are cut are this long, and no others: none can be taken for one that is not.
        return f"{name[: _CHILD_MAX - _HASH_LENGTH - 1]}-{digest(self.scheduler)}"

    @property
    def state(self) -> str:
        """The ConfigMap with what is remembered of it. Schedulers' names have no dots: it is no other's `child`."""
        return f"{self.object_name}.state"

    def configuration(self, config_hash: str) -> str:
        """The ConfigMap with one of its configurations. No hash is `state`."""
        return f"{self.object_name}.{config_hash}"

    @property
    def certificate(self) -> str:
        """The Secret with the client certificate."""
        return f"{self.object_name}-tls"

    def external_name(self, what: str) -> str:
        """Outside our namespace, where there may be another operator's. Neither part has a dot in it."""
        return f"{MANAGER}.{self.namespace}.{self.scheduler}.{what}"

    @property
    def labels(self) -> Mapping[str, str]:
        """On each object; nothing is copied from policies, whose labels belong to the tools that applied them."""
        return {
            "app.kubernetes.io/component": "scheduler",
            "app.kubernetes.io/instance": self.scheduler,
            MANAGED_BY: MANAGER,
            "app.kubernetes.io/name": "kube-scheduler",
            SCHEDULER_LABEL: self.scheduler,
        }

    @property
    def selector(self) -> Mapping[str, str]:
        """The labels that pods are found by; a Deployment's can never change."""
        return {"app.kubernetes.io/component": "scheduler", SCHEDULER_LABEL: self.scheduler}


def scheduler_of_external(name: str, namespace: str) -> str:
    """Whose object is called so outside our namespace; empty if it is none of ours."""
    parts = name.split(".")
    return parts[2] if len(parts) == 4 and parts[:2] == [MANAGER, namespace] else ""


def digest(*parts: str) -> str:
    """A short hash of texts; how they are divided counts."""
    made = hashlib.sha256()
    for part in parts:
        data = part.encode()
        made.update(len(data).to_bytes(8, "big") + data)
    return made.hexdigest()[:_HASH_LENGTH]
