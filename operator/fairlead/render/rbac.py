"""Permissions of the operator; as data, each rule with its reason.

The chart's roles are generated from this (`make crds`). Kubernetes lets a client create a Role or a binding, or change
the subjects of one, only if it has every permission in it, or may `bind` it by name. So nothing here is `escalate` or
`*`, no binding outside the operator's namespace is created, and neither pods nor nodes can be written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.api.names import GROUP, PLURAL, PUBLISHED_PLURAL

Place = Literal["cluster", "own", "kube-system", "claim", "default"]
"""Scope of permissions: the cluster, the operator's own namespace, or another one.

`claim` stands for claimNamespace if that is not kube-system; then nothing is granted in kube-system.
"""
CLAIM_PLACE: Final = "claim"
ADMISSION: Final = "fairlead.{namespace}"
"""Name of the operator's ValidatingWebhookConfiguration."""
NOTHING_TO_UNINSTALL: Final = "fairlead.{namespace}.nothing-to-uninstall"
"""Name of the chart's MutatingAdmissionPolicy, and of its binding, with which the uninstall's Jobs run no pod."""
PUBLISHED_AFFINITY: Final = "fairlead.{namespace}.published-affinity"
"""Name of the chart's MutatingAdmissionPolicy, and of its binding, that adds published node affinity to pods."""
ROLE: Final = "fairlead.{namespace}.operator"
"""Name of the operator's roles and bindings; in another namespace it is followed by `IN` and that namespace."""
IN: Final = "-in-"
BOUND_IN_CLUSTER: Final = ("fairlead.{namespace}.kube-scheduler", "fairlead.{namespace}.volume-scheduler")
"""Names of the chart's ClusterRoleBindings of schedulers."""
BOUND_IN_KUBE_SYSTEM: Final = "fairlead.{namespace}.authentication-reader"
"""Name of the chart's RoleBinding of schedulers."""
CLAIM: Final = f"{PLURAL}.{GROUP}"
"""The Lease in claimNamespace: the operator whose namespace holds it manages the policies."""
_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = "coordination.k8s.io"


@dataclass(frozen=True, slots=True)
class RbacRule:
    """Rule of a role."""

    why: str
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; `{namespace}` stands for the operator's own."""
    self_managed: bool = False
    """True if it is needed only while the operator has its own certificate authority."""
    claimed_elsewhere: bool = False
    """True if it is needed only with another claimNamespace than kube-system."""
    unlisted: bool = False
    """True if it is needed only while policies may name schedulers that are not listed."""
    secure_metrics: bool = False
    """True if it is needed only while callers must show a token to read metrics."""
    published_affinity: bool = False
    """True if it is needed only while node affinity is published."""


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """Rules of a role in one scope."""

    place: Place
    rules: tuple[RbacRule, ...]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """Request to the API server, as RBAC sees it."""

    verb: str
    group: str
    resource: str
    """Including the subresource, as in `pods/binding`."""
    place: Place
    name: str = ""


def allows(grants: Iterable[RoleGrant], request: ApiRequest) -> bool:
    """Return whether RBAC allows a request."""
    return any(
        _covers(rule, request) for grant in grants if grant.place in ("cluster", request.place) for rule in grant.rules
    )


def _covers(rule: RbacRule, request: ApiRequest) -> bool:
    if rule.names and request.name not in rule.names:
        return False
    return request.group == rule.group and request.resource in rule.resources and request.verb in rule.verbs


def named(grants: Iterable[RoleGrant], namespace: str) -> tuple[RoleGrant, ...]:
    """Return the permissions of an operator in a namespace."""
    return tuple(
        replace(
            grant,
            rules=tuple(
                replace(rule, names=tuple(name.replace("{namespace}", namespace) for name in rule.names))
                for rule in grant.rules
            ),
        )
        for grant in grants
    )


_APPLY: Final = ("get", "list", "create", "patch", "delete")
"""Verbs of objects that are kept in their desired state by server-side apply."""
_APPLY_AND_WATCH: Final = (*_APPLY, "watch")
_CREATE: Final = ("create",)
_UPDATE: Final = ("get", "patch")
_OWNED: Final = (*_UPDATE, "delete")
"""Verbs of objects that get an owner: some clusters let only those set one who may delete. Nothing is deleted."""
_SUBJECTS: Final = (*_OWNED, "list", "watch")
"""Verbs of the bindings whose subjects the operator applies."""

_CLAIMING: Final = (
    RbacRule("one operator manages the policies; RBAC cannot limit create to a name", _LEASES, ("leases",), _CREATE),
    RbacRule("...and the Lease that says which one", _LEASES, ("leases",), _UPDATE, (CLAIM,)),
)
"""Rules of the claim that one operator manages the policies."""
_SECURE_METRICS: Final = tuple(
    RbacRule(why, f"{api}.k8s.io", (kind,), _CREATE, secure_metrics=True)
    for why, api, kind in (
        ("to ask who shows a token to read metrics", "authentication", "tokenreviews"),
        ("...and whether that account may read them", "authorization", "subjectaccessreviews"),
    )
)

OPERATOR: Final = (
    RoleGrant(
        "cluster",
        (
            RbacRule("rules read nodes and namespaces", "", ("nodes", "namespaces"), ("list", "watch")),
            RbacRule("...and the usage of nodes, for nodeMetrics", "metrics.k8s.io", ("nodes",), ("list",)),
            RbacRule("...and pods; the bind verb reads the pod that it binds", "", ("pods",), ("get", "list", "watch")),
            RbacRule(
                "bind, for policies that write annotations; pods cannot be written",
                "",
                ("pods/binding",),
                ("create",),
            ),
            RbacRule("policies; only their status is ever written", GROUP, (PLURAL,), ("list", "watch")),
            RbacRule("the status of policies", GROUP, (f"{PLURAL}/status",), ("patch",)),
            RbacRule(
                "the chart's bindings of schedulers, whose subjects are the accounts of the schedulers that exist",
                _RBAC,
                ("clusterrolebindings",),
                _SUBJECTS,
                BOUND_IN_CLUSTER,
            ),
            RbacRule(
                "...to these roles and no others",
                _RBAC,
                ("clusterroles",),
                ("bind",),
                ("system:kube-scheduler", "system:volume-scheduler"),
            ),
            RbacRule(
                "its own binding; it and those get an owner, so that they are deleted with the operator's namespace",
                _RBAC,
                ("clusterrolebindings",),
                _OWNED,
                (ROLE,),
            ),
            RbacRule(
                "to detect a scheduler that others run under a new name: by Leases of that name",
                _LEASES,
                ("leases",),
                ("list",),
                unlisted=True,
            ),
            RbacRule(
                "...and by workloads that have the name in their arguments",
                "apps",
                ("deployments", "statefulsets", "daemonsets"),
                ("list",),
                unlisted=True,
            ),
            RbacRule(
                "to detect an operator that was told another claimNamespace",
                _LEASES,
                ("leases",),
                ("list",),
                (CLAIM,),
                claimed_elsewhere=True,
            ),
            RbacRule(
                "the CA bundle with which the API server verifies the admission check",
                "admissionregistration.k8s.io",
                ("validatingwebhookconfigurations",),
                ("get", "patch"),
                (ADMISSION,),
                self_managed=True,
            ),
            RbacRule(
                "the chart's admission policy that completes the uninstall's jobs while nothing is to be uninstalled",
                "admissionregistration.k8s.io",
                ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
                ("delete",),
                (NOTHING_TO_UNINSTALL,),
            ),
            RbacRule(
                "the node affinity that policies publish",
                GROUP,
                (PUBLISHED_PLURAL,),
                ("list", "watch", "create", "patch", "delete"),
                published_affinity=True,
            ),
            RbacRule(
                "whether the chart's admission policy is there that adds it to pods; it cannot be changed",
                "admissionregistration.k8s.io",
                ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
                ("get",),
                (PUBLISHED_AFFINITY,),
                published_affinity=True,
            ),
            *_SECURE_METRICS,
        ),
    ),
    RoleGrant(
        "own",
        (
            RbacRule(
                "configurations and persisted state of schedulers, values of nodes that policies name, learned state"
                " (updates check the resourceVersion)",
                "",
                ("configmaps",),
                (*_APPLY_AND_WATCH, "update"),
            ),
            RbacRule("the ServiceAccounts of schedulers", "", ("serviceaccounts",), _APPLY_AND_WATCH),
            RbacRule(
                "the operator's authority, and certificates of schedulers; updates check the resourceVersion",
                "",
                ("secrets",),
                ("get", "list", "watch", "create", "update", "delete"),
            ),
            RbacRule("errors that schedulers log after a rollout", "", ("pods/log",), ("get",)),
            RbacRule("the schedulers", "apps", ("deployments",), _APPLY_AND_WATCH),
            RbacRule(
                "the last good generation of each policy",
                "apps",
                ("controllerrevisions",),
                ("list", "create", "delete"),
            ),
            RbacRule("the NetworkPolicies of schedulers", "networking.k8s.io", ("networkpolicies",), _APPLY_AND_WATCH),
            RbacRule("the PodDisruptionBudgets of schedulers", "policy", ("poddisruptionbudgets",), _APPLY_AND_WATCH),
            RbacRule(
                "which replica leads, and the Leases of schedulers; update only because schedulers' roles grant it",
                _LEASES,
                ("leases",),
                (*_APPLY, "update"),
            ),
            RbacRule(
                "the permissions of schedulers in this namespace, for their Leases",
                _RBAC,
                ("roles", "rolebindings"),
                _APPLY_AND_WATCH,
            ),
            RbacRule(
                "one object that is updated to wake up rejected pods",
                "storage.k8s.io",
                ("csistoragecapacities",),
                ("create", "patch"),
            ),
        ),
    ),
    RoleGrant(
        "default",
        (
            RbacRule("events about policies, which have no namespace", "events.k8s.io", ("events",), ("create",)),
            RbacRule(
                "its own binding here gets an owner, so that it is deleted with the operator's namespace",
                _RBAC,
                ("rolebindings",),
                _OWNED,
                (f"{ROLE}{IN}default",),
            ),
        ),
    ),
    RoleGrant(
        "kube-system",
        (
            RbacRule(
                "the chart's binding of schedulers, which read here how to authenticate their callers",
                _RBAC,
                ("rolebindings",),
                _SUBJECTS,
                (BOUND_IN_KUBE_SYSTEM,),
            ),
            RbacRule(
                "...to this role and no other",
                _RBAC,
                ("roles",),
                ("bind",),
                ("extension-apiserver-authentication-reader",),
            ),
            RbacRule(
                "its own binding here; it and that one get an owner",
                _RBAC,
                ("rolebindings",),
                _OWNED,
                (f"{ROLE}{IN}kube-system",),
            ),
            *_CLAIMING,
        ),
    ),
)
OPERATOR_ELSEWHERE: Final = (
    RoleGrant(
        CLAIM_PLACE,
        (
            *_CLAIMING,
            RbacRule("its own binding here gets an owner", _RBAC, ("rolebindings",), _OWNED, (f"{ROLE}{IN}claim",)),
        ),
    ),
)
"""Permissions in another claimNamespace than kube-system, in the place of those in kube-system."""
