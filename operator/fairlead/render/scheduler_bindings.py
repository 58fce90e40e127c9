"""Bindings of managed schedulers to built-in roles. The chart creates them, and the operator applies the subjects.

Their names are fixed, so that the operator may write these bindings and no others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.render.object_names import MANAGER, Object

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
KUBE_SYSTEM: Final = "kube-system"


@dataclass(frozen=True, slots=True)
class SchedulerBinding:
    """Binding of all managed schedulers to one role."""

    kind: str
    place: str
    """Namespace; "" for the cluster."""
    what: str
    role: str

    @property
    def role_kind(self) -> str:
        """Kind of the role."""
        return self.kind.removesuffix("Binding")

    def name(self, namespace: str) -> str:
        """Return the name for the operator in a namespace."""
        return f"{MANAGER}.{namespace}.{self.what}"

    def body(self, namespace: str) -> Object:
        """Return what identifies the binding of the operator in a namespace."""
        metadata = {"name": self.name(namespace)} | ({"namespace": self.place} if self.place else {})
        return {"apiVersion": API_VERSION, "kind": self.kind, "metadata": metadata}


SCHEDULER_BINDINGS: Final = (
    SchedulerBinding("ClusterRoleBinding", "", "kube-scheduler", "system:kube-scheduler"),
    SchedulerBinding("ClusterRoleBinding", "", "volume-scheduler", "system:volume-scheduler"),
    SchedulerBinding("RoleBinding", KUBE_SYSTEM, "authentication-reader", "extension-apiserver-authentication-reader"),
)


def scheduler_bindings(claim_namespace: str) -> Sequence[SchedulerBinding]:
    """Return the bindings that the chart creates: with another claimNamespace, none in kube-system.

    Schedulers then do not know for whom an authenticating proxy may speak, and start all the same.
    """
    return [one for one in SCHEDULER_BINDINGS if claim_namespace == KUBE_SYSTEM or not one.place]


def subjects(namespace: str, accounts: Iterable[str]) -> list[Object]:
    """Return the subjects of each binding: these ServiceAccounts of the operator's namespace."""
    return [{"kind": "ServiceAccount", "name": name, "namespace": namespace} for name in sorted(accounts)]
