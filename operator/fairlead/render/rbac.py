"""What the operator may do, and the job that takes everything away; as data, each rule with its reason.

The chart's roles are made of this (`make crds`). Who makes a Role or a binding must hold what is in it, or may `bind`
it by name: nothing here is `escalate`, nothing is `*`, and neither pods nor nodes can be written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from fairlead.api.names import GROUP, PLURAL

Place = Literal["cluster", "own", "kube-system", "default"]
"""Where rights hold: everywhere, in the operator's own namespace, in another one."""
ADMISSION: Final = "fairlead.{namespace}"
"""What the ValidatingWebhookConfiguration of the operator in a namespace is called."""
ROLE: Final = "fairlead.{namespace}.operator"
"""What the operator's roles and their bindings are called, those in another namespace with `IN` and its name."""
IN: Final = "-in-"
CLAIM: Final = f"{PLURAL}.{GROUP}"
"""The Lease in kube-system: the operator whose namespace holds it manages the policies."""
_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = "coordination.k8s.io"


@dataclass(frozen=True, slots=True)
class RbacRule:
    """One rule of a role."""

    why: str
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only these; in them `{namespace}` is the operator's own."""
    self_managed: bool = False
    """Whether it is needed only where certificates are of the operator's own authority."""
    unlisted: bool = False
    """Whether it is needed only where policies may name schedulers that are not listed."""


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role in one place."""

    place: Place
    rules: tuple[RbacRule, ...]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """Something that is asked of the API server."""

    verb: str
    group: str
    resource: str
    """With its subresource, as in `pods/binding`."""
    place: Place
    name: str = ""


def allowed(grants: Iterable[RoleGrant], asked: ApiRequest) -> bool:
    """Whether it would be done."""
    return any(
        _covers(rule, asked) for grant in grants if grant.place in ("cluster", asked.place) for rule in grant.rules
    )


def _covers(rule: RbacRule, asked: ApiRequest) -> bool:
    if rule.names and asked.name not in rule.names:
        return False
    return asked.group == rule.group and asked.resource in rule.resources and asked.verb in rule.verbs


def named(grants: Iterable[RoleGrant], namespace: str) -> tuple[RoleGrant, ...]:
    """As they are for an operator in a namespace."""
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


_MADE: Final = ("get", "list", "create", "patch", "delete")
"""What it takes to have something as it is meant to be, by server-side apply."""
_FOLLOWED: Final = (*_MADE, "watch")
_MAKE: Final = ("create",)
_HELD: Final = ("get", "patch")

OPERATOR: Final = (
    RoleGrant(
        "cluster",
        (
            RbacRule("policies are decided by nodes and namespaces", "", ("nodes", "namespaces"), ("list", "watch")),
            RbacRule(
                "...and by pods; bind looks at the pod that it is told of", "", ("pods",), ("get", "list", "watch")
            ),
            RbacRule(
                "bind, for policies that write annotations; pods cannot be written", "", ("pods/binding",), ("create",)
            ),
            RbacRule("policies, of which only the status is ever written", GROUP, (PLURAL,), ("list", "watch")),
            RbacRule("what is said of policies", GROUP, (f"{PLURAL}/status",), ("patch",)),
            RbacRule(
                "a scheduler is bound to built-in roles; how its bindings are called is not known beforehand",
                _RBAC,
                ("clusterrolebindings",),
                _FOLLOWED,
            ),
            RbacRule(
                "...to these and no others; what is in them nobody has by this, but whoever may bind may bind himself",
                _RBAC,
                ("clusterroles",),
                ("bind",),
                ("system:kube-scheduler", "system:volume-scheduler"),
            ),
            RbacRule(
                "whether a scheduler that is new is somebody else's: by Leases of its name",
                _LEASES,
                ("leases",),
                ("list",),
                unlisted=True,
            ),
            RbacRule(
                "...and by what is told its name in arguments",
                "apps",
                ("deployments", "statefulsets", "daemonsets"),
                ("list",),
                unlisted=True,
            ),
            RbacRule(
                "the authority by which the API server knows who answers for our kind",
                "admissionregistration.k8s.io",
                ("validatingwebhookconfigurations",),
                ("get", "patch"),
                (ADMISSION,),
                self_managed=True,
            ),
        ),
    ),
    RoleGrant(
        "own",
        (
            RbacRule("configurations, and what is remembered of each scheduler", "", ("configmaps",), _FOLLOWED),
            RbacRule("who schedulers are", "", ("serviceaccounts",), _FOLLOWED),
            RbacRule(
                "our authority and the certificates of schedulers, replaced only as they were seen",
                "",
                ("secrets",),
                ("get", "list", "watch", "create", "update", "delete"),
            ),
            RbacRule("what a scheduler that was rolled complains of", "", ("pods/log",), ("get",)),
            RbacRule("the schedulers", "apps", ("deployments",), _FOLLOWED),
            RbacRule(
                "the last good generation of each policy",
                "apps",
                ("controllerrevisions",),
                ("list", "create", "delete"),
            ),
            RbacRule("what schedulers may be called by", "networking.k8s.io", ("networkpolicies",), _FOLLOWED),
            RbacRule("how many of their pods may be away", "policy", ("poddisruptionbudgets",), _FOLLOWED),
            RbacRule(
                "which replica leads, and the Leases of schedulers; update is held to be given to them, for theirs",
                _LEASES,
                ("leases",),
                (*_MADE, "update"),
            ),
            RbacRule("what schedulers may do here: about their Lease", _RBAC, ("roles", "rolebindings"), _FOLLOWED),
            RbacRule(
                "one object that is touched to wake up pods that were refused",
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
                "its own binding here belongs to its namespace, and goes with it",
                _RBAC,
                ("rolebindings",),
                ("get", "patch", "delete"),
                (f"{ROLE}{IN}default",),
            ),
        ),
    ),
    RoleGrant(
        "kube-system",
        (
            RbacRule(
                "a scheduler reads here who may ask it",
                _RBAC,
                ("rolebindings",),
                _FOLLOWED,
            ),
            RbacRule(
                "...by this role and no other",
                _RBAC,
                ("roles",),
                ("bind",),
                ("extension-apiserver-authentication-reader",),
            ),
            RbacRule("one operator manages the policies; RBAC cannot name what is to be", _LEASES, ("leases",), _MAKE),
            RbacRule("...but the Lease that it holds then", _LEASES, ("leases",), _HELD, (CLAIM,)),
        ),
    ),
)

UNINSTALL: Final = (
    RoleGrant(
        "cluster",
        (
            RbacRule("a finalizer of versions before is taken from each policy", GROUP, (PLURAL,), ("list", "patch")),
            RbacRule("which pods go on naming a scheduler that is gone", "", ("pods",), ("list",)),
            RbacRule("what schedulers were allowed", _RBAC, ("clusterrolebindings",), ("list", "delete")),
        ),
    ),
    RoleGrant(
        "own",
        (
            RbacRule("the schedulers, and then the operator", "apps", ("deployments",), ("list", "delete")),
            RbacRule(
                "the operator stops writing when another has its Lease",
                _LEASES,
                ("leases",),
                ("get", "list", "update", "delete"),
            ),
            RbacRule(
                "what schedulers are made of", "", ("configmaps", "secrets", "serviceaccounts"), ("list", "delete")
            ),
            RbacRule("...and", "networking.k8s.io", ("networkpolicies",), ("list", "delete")),
            RbacRule("...and", "policy", ("poddisruptionbudgets",), ("list", "delete")),
            RbacRule("...and", _RBAC, ("roles", "rolebindings"), ("list", "delete")),
            RbacRule("what was kept of policies", "apps", ("controllerrevisions",), ("list", "delete")),
            RbacRule("what woke pods up", "storage.k8s.io", ("csistoragecapacities",), ("list", "delete")),
        ),
    ),
    RoleGrant(
        "kube-system",
        (
            RbacRule("what schedulers read here", _RBAC, ("rolebindings",), ("list", "delete")),
            RbacRule("another operator may manage the policies", _LEASES, ("leases",), ("get", "delete"), (CLAIM,)),
        ),
    ),
)
