"""The operator may do what it does, and nothing else; and it may grant what it grants."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairlead.api.names import GROUP, PLURAL, PUBLISHED_PLURAL
from fairlead.control.loop.kopf_runtime import CHILDREN
from fairlead.control.reconcile.foreign_owner import WORKLOADS
from fairlead.control.reconcile.object_client import KINDS, NAMESPACED
from fairlead.render.rbac import CLAIM, OPERATOR, OPERATOR_ELSEWHERE, ApiRequest, Place, RoleGrant, allows, named
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS
from fairlead.render.uninstall_rbac import UNINSTALL, UNINSTALL_ELSEWHERE
from support.render.schedulers import SCENES, planned

RBAC = "rbac.authorization.k8s.io"
STATUS = f"{PLURAL}/status"
BOUND: list[tuple[str, Place, str]] = [
    (f"{one.kind.lower()}s", "kube-system" if one.place else "cluster", one.name("system"))
    for one in SCHEDULER_BINDINGS
]
"""The bindings of schedulers, which the chart creates."""
OWN: list[tuple[str, Place, str]] = [
    ("clusterrolebindings", "cluster", "fairlead.system.operator"),
    ("rolebindings", "kube-system", "fairlead.system.operator-in-kube-system"),
    ("rolebindings", "default", "fairlead.system.operator-in-default"),
]
OF_EARLIER_VERSIONS: list[tuple[str, Place]] = [("clusterrolebindings", "cluster"), ("rolebindings", "kube-system")]


def of_objects() -> Iterator[ApiRequest]:
    """What `control.objects` asks, to have all that schedulers are made of."""
    for kind in NAMESPACED:
        version, plural = KINDS[kind]
        group = version.rpartition("/")[0]
        verbs = ("get", "list", "create", "patch", "delete")
        # certificates are written elsewhere
        yield from (ApiRequest(v, group, plural, "own") for v in verbs if (kind, v) != ("Secret", "patch"))


REQUESTS: dict[str, list[ApiRequest]] = {
    "webhook/serving/mirror_feed": [
        ApiRequest(verb, "", kind, "cluster") for kind in ("pods", "nodes", "namespaces") for verb in ("list", "watch")
    ],
    "webhook/learning/state_feed": [ApiRequest(verb, "", "configmaps", "own") for verb in ("list", "watch")],
    "webhook/learning/publisher": [ApiRequest(verb, "", "configmaps", "own") for verb in ("get", "create", "update")],
    "webhook/data_sources/node_metrics": [ApiRequest("list", "metrics.k8s.io", "nodes", "cluster")],
    "webhook/data_sources/config_map_source": [
        ApiRequest(verb, "", "configmaps", "own", "node-prices") for verb in ("list", "watch")
    ],
    "webhook/binding/bind_client": [
        ApiRequest("get", "", "pods", "cluster"),
        ApiRequest("create", "", "pods/binding", "cluster"),
    ],
    "webhook/readers/delegated_access": [
        ApiRequest("create", "authentication.k8s.io", "tokenreviews", "cluster"),
        ApiRequest("create", "authorization.k8s.io", "subjectaccessreviews", "cluster"),
    ],
    "webhook/serving/last_good": [
        ApiRequest(verb, "apps", "controllerrevisions", "own") for verb in ("list", "create", "delete")
    ],
    "kube/leader_election/elector": [
        ApiRequest(verb, "coordination.k8s.io", "leases", "own") for verb in ("get", "create", "update")
    ],
    "process/cluster_claim": [
        ApiRequest("create", "coordination.k8s.io", "leases", "kube-system"),
        *(ApiRequest(verb, "coordination.k8s.io", "leases", "kube-system", CLAIM) for verb in ("get", "patch")),
    ],
    # where owner references are guarded, who sets one must hold delete
    "control/reconcile/owner_references": [
        ApiRequest(verb, RBAC, plural, place, name)
        for plural, place, name in (*OWN, *BOUND)
        for verb in ("get", "patch", "delete")
    ],
    "kube/watch/secrets": [
        ApiRequest(verb, "", "secrets", "own") for verb in ("get", "list", "watch", "create", "update")
    ],
    "control/reconcile/object_client": [*of_objects()],
    "kube/http/document_writer": [ApiRequest(verb, "", "configmaps", "own") for verb in ("get", "create", "patch")],
    "control/reconcile/verify_rollout": [ApiRequest("get", "", "pods/log", "own")],
    "control/loop/kopf_runtime": [
        *(ApiRequest(verb, GROUP, PLURAL, "cluster") for verb in ("list", "watch")),
        *(ApiRequest(verb, group, plural, "own") for group, _, plural in CHILDREN for verb in ("list", "watch")),
    ],
    "control/reconcile/binding_subjects": [
        ApiRequest(verb, RBAC, plural, place, name)
        for plural, place, name in BOUND
        for verb in ("get", "list", "watch", "patch")
    ],
    "control/status/writer": [ApiRequest("patch", GROUP, STATUS, "cluster")],
    "control/status/events": [ApiRequest("create", "events.k8s.io", "events", "default")],
    "control/reconcile/foreign_owner": [
        ApiRequest("list", "coordination.k8s.io", "leases", "cluster"),
        *(ApiRequest("list", one.group, one.plural, "cluster") for one in WORKLOADS.values()),
    ],
    "process/cluster_claim, elsewhere": [ApiRequest("list", "coordination.k8s.io", "leases", "cluster", CLAIM)],
    "wake-ups": [ApiRequest(verb, "storage.k8s.io", "csistoragecapacities", "own") for verb in ("create", "patch")],
    "webhook/admission": [
        ApiRequest(
            verb, "admissionregistration.k8s.io", "validatingwebhookconfigurations", "cluster", "fairlead.system"
        )
        for verb in ("get", "patch")
    ],
    "control/loop/uninstall_hook": [
        ApiRequest("delete", "admissionregistration.k8s.io", plural, "cluster", "fairlead.system.nothing-to-uninstall")
        for plural in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
    ],
    "webhook/publication/affinity_feed": [
        ApiRequest(verb, GROUP, PUBLISHED_PLURAL, "cluster") for verb in ("list", "watch")
    ],
    "control/publication/affinity_publisher": [
        *(ApiRequest(verb, GROUP, PUBLISHED_PLURAL, "cluster") for verb in ("list", "create", "patch", "delete")),
        *(
            ApiRequest("get", "admissionregistration.k8s.io", plural, "cluster", "fairlead.system.published-affinity")
            for plural in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
        ),
    ],
    "what is bound": [
        ApiRequest("bind", RBAC, "clusterroles", "cluster", "system:kube-scheduler"),
        ApiRequest("bind", RBAC, "clusterroles", "cluster", "system:volume-scheduler"),
        ApiRequest("bind", RBAC, "roles", "kube-system", "extension-apiserver-authentication-reader"),
    ],
}
ENDS: list[ApiRequest] = [
    ApiRequest("list", GROUP, PLURAL, "cluster"),
    ApiRequest("patch", GROUP, PLURAL, "cluster"),
    ApiRequest("patch", GROUP, f"{PLURAL}/status", "cluster"),
    ApiRequest("create", "events.k8s.io", "events", "default"),
    ApiRequest("list", "", "pods", "cluster"),
    *(one for one in of_objects() if one.verb in ("list", "delete")),
    *(ApiRequest(verb, RBAC, plural, place) for plural, place in OF_EARLIER_VERSIONS for verb in ("list", "delete")),
    *(ApiRequest(verb, "coordination.k8s.io", "leases", "own") for verb in ("get", "update")),
    ApiRequest("list", "coordination.k8s.io", "leases", "cluster", CLAIM),
    ApiRequest("delete", "coordination.k8s.io", "leases", "kube-system", CLAIM),
    *(ApiRequest(verb, GROUP, PUBLISHED_PLURAL, "cluster") for verb in ("list", "delete")),
    *(ApiRequest(verb, "apps", "controllerrevisions", "own") for verb in ("list", "delete")),
    *(ApiRequest(verb, "storage.k8s.io", "csistoragecapacities", "own") for verb in ("list", "delete")),
]
GRANTS = named(OPERATOR, "system")


@pytest.mark.parametrize("who", REQUESTS)
def test_what_the_operator_asks_is_allowed(who: str) -> None:
    assert [one for one in REQUESTS[who] if not allows(GRANTS, one)] == []


def test_all_that_schedulers_are_made_of_is_followed_but_for_their_leases() -> None:
    own = {plural for _, _, plural in CHILDREN}
    assert {KINDS[kind][1] for kind in NAMESPACED} - own == {"leases"}


def test_what_the_end_asks_is_allowed() -> None:
    assert [one for one in ENDS if not allows(UNINSTALL, one)] == []


def test_where_the_claim_is_elsewhere_nothing_is_allowed_but_what_the_claim_takes() -> None:
    claim = [one for one in _each(named(OPERATOR_ELSEWHERE, "system")) if one.resource == "leases"]
    assert claim == [replace(one, place="claim") for one in REQUESTS["process/cluster_claim"]]
    own = [one for one in _each(named(OPERATOR_ELSEWHERE, "system")) if one not in claim]
    assert own == [
        ApiRequest(verb, RBAC, "rolebindings", "claim", "fairlead.system.operator-in-claim")
        for verb in ("get", "patch", "delete")
    ]
    assert [*_each(UNINSTALL_ELSEWHERE)] == [ApiRequest("delete", "coordination.k8s.io", "leases", "claim", CLAIM)]


@pytest.mark.parametrize(
    ("grants", "asked"),
    [(GRANTS, [one for all_of_them in REQUESTS.values() for one in all_of_them]), (UNINSTALL, ENDS)],
    ids=["operator", "uninstall"],
)
def test_nothing_is_allowed_that_nobody_asks(grants: tuple[RoleGrant, ...], asked: list[ApiRequest]) -> None:
    assert [one for one in _each(grants) if one not in asked] == []


@pytest.mark.parametrize("grants", [OPERATOR, UNINSTALL], ids=["operator", "uninstall"])
def test_nothing_is_wide(grants: tuple[RoleGrant, ...]) -> None:
    for one in _each(grants):
        assert "*" not in (one.verb, one.group, one.resource)
        assert one.verb not in ("escalate", "impersonate", "deletecollection")
        if one.verb == "bind":
            assert one.name
        elif one.verb not in ("get", "list", "watch"):
            assert one.resource not in ("pods", "nodes", "namespaces", "clusterroles")
        if one.resource == "secrets":
            assert one.place == "own"


def test_what_schedulers_are_granted_the_operator_has_or_may_bind() -> None:
    for made in (*SCENES.values(), planned()):
        own: dict[str, list[Any]] = {
            one["metadata"]["name"]: one["rules"] for one in made.objects if one["kind"] == "Role"
        }
        for rules in own.values():
            for rule in rules:
                for verb in rule["verbs"]:
                    for resource in rule["resources"]:
                        (group,) = rule["apiGroups"]
                        assert allows(GRANTS, ApiRequest(verb, group, resource, "own"))
        for one in made.objects:
            if one["kind"].endswith("Binding"):
                assert one["roleRef"]["name"] in own
    for binding in SCHEDULER_BINDINGS:
        place: Place = "kube-system" if binding.place else "cluster"
        assert allows(GRANTS, ApiRequest("bind", RBAC, f"{binding.role_kind.lower()}s", place, binding.role))


def test_no_binding_outside_the_namespace_is_created_and_none_is_written_but_those_that_the_chart_names() -> None:
    named_ones = {*OWN, *BOUND}
    for one in _each(GRANTS):
        if one.resource in ("clusterrolebindings", "rolebindings") and one.place != "own":
            assert one.verb != "create"
            assert (one.resource, one.place, one.name) in named_ones


def _each(grants: tuple[RoleGrant, ...]) -> Iterator[ApiRequest]:
    for grant in grants:
        for rule in grant.rules:
            for resource in rule.resources:
                for verb in rule.verbs:
                    yield from (
                        ApiRequest(verb, rule.group, resource, grant.place, name) for name in rule.names or ("",)
                    )
