"""Permissions of the uninstall job, whose roles exist only while it runs; as data, as those of the operator."""

from typing import Final

from fairlead.api.names import GROUP, PLURAL, PUBLISHED_PLURAL
from fairlead.render.rbac import CLAIM, CLAIM_PLACE, RbacRule, RoleGrant

_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = "coordination.k8s.io"
_RELEASING: Final = RbacRule(
    "the Lease is released, so that another operator can manage the policies",
    _LEASES,
    ("leases",),
    ("delete",),
    (CLAIM,),
)

UNINSTALL: Final = (
    RoleGrant(
        "cluster",
        (
            RbacRule("a finalizer of earlier versions is removed from policies", GROUP, (PLURAL,), ("list", "patch")),
            RbacRule("their status says that nothing enforces them", GROUP, (f"{PLURAL}/status",), ("patch",)),
            RbacRule("pods that still name a deleted scheduler are reported", "", ("pods",), ("list",)),
            RbacRule("the Lease, in whichever namespace it is", _LEASES, ("leases",), ("list",), (CLAIM,)),
            RbacRule("bindings that earlier versions created", _RBAC, ("clusterrolebindings",), ("list", "delete")),
            RbacRule(
                "published node affinity", GROUP, (PUBLISHED_PLURAL,), ("list", "delete"), published_affinity=True
            ),
        ),
    ),
    RoleGrant(
        "own",
        (
            RbacRule("the schedulers, and then the operator", "apps", ("deployments",), ("list", "delete")),
            RbacRule(
                "the operator stops writing when its Lease is taken",
                _LEASES,
                ("leases",),
                ("get", "list", "update", "delete"),
            ),
            RbacRule("the objects of schedulers", "", ("configmaps", "secrets", "serviceaccounts"), ("list", "delete")),
            RbacRule("...their NetworkPolicies", "networking.k8s.io", ("networkpolicies",), ("list", "delete")),
            RbacRule("...their PodDisruptionBudgets", "policy", ("poddisruptionbudgets",), ("list", "delete")),
            RbacRule("...their permissions", _RBAC, ("roles", "rolebindings"), ("list", "delete")),
            RbacRule("the last good generations of policies", "apps", ("controllerrevisions",), ("list", "delete")),
            RbacRule("the object that woke up pods", "storage.k8s.io", ("csistoragecapacities",), ("list", "delete")),
        ),
    ),
    RoleGrant(
        "default",
        (RbacRule("an event of each policy", "events.k8s.io", ("events",), ("create",)),),
    ),
    RoleGrant(
        "kube-system",
        (
            RbacRule("bindings that earlier versions created here", _RBAC, ("rolebindings",), ("list", "delete")),
            _RELEASING,
        ),
    ),
)
UNINSTALL_ELSEWHERE: Final = (RoleGrant(CLAIM_PLACE, (_RELEASING,)),)
"""Permissions in another claimNamespace than kube-system, in the place of those in kube-system."""
