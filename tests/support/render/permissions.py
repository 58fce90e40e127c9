"""The operator's roles with a rule missing, and what has to be said then."""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fairlead.render.rbac import IN, OPERATOR, ROLE, Place, RbacRule, RoleGrant
from support.kube.service_account import give, kubeconfig_of, may, take
from testbed.api import wait_for
from testbed.fixtures import Cluster

ACCOUNT = "operator"


def own_binding(grant: RoleGrant) -> tuple[str, ...]:
    """Return the name of the operator's own binding there."""
    return (ROLE + ("" if grant.place == "cluster" else f"{IN}{grant.place}"),)


RULES = {
    f"{grant.place}: {', '.join(rule.resources)}{' of its own' if rule.names == own_binding(grant) else ''}": (
        grant.place,
        rule,
    )
    for grant in OPERATOR
    for rule in grant.rules
    if not (rule.claimed_elsewhere or rule.published_affinity)
}
_RULE = re.compile(r'lacks the rule \{apiGroups: \["(.*?)"\], resources: \[(.*?)\].*?, verbs: \[(.*?)\]\}')


@contextmanager
def an_account(cluster: Cluster, folder: Path) -> Iterator[tuple[str, Path]]:
    """A namespace, and who has the operator's rights there."""
    api, name = cluster.api, f"test-{uuid.uuid4().hex[:8]}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        api.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": ACCOUNT}})
        give(api, name, ACCOUNT, OPERATOR)
        wait_for("pods to be let in", lambda: api.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        yield name, kubeconfig_of(cluster, name, ACCOUNT, folder)
    finally:
        take(api, name, ACCOUNT, OPERATOR)
        api.delete(f"/api/v1/namespaces/{name}")


def without(rule: RbacRule) -> list[RoleGrant]:
    """All rights but that."""
    return [replace(grant, rules=tuple(one for one in grant.rules if one is not rule)) for grant in OPERATOR]


def set_rule(cluster: Cluster, namespace: str, missing: str, *, has: bool) -> None:
    """Have the account have it or not, and wait until the API server sees it so."""
    place, rule = RULES[missing]
    give(cluster.api, namespace, ACCOUNT, OPERATOR if has else without(rule))
    kind, _, sub = rule.resources[0].partition("/")
    asked = {"verb": rule.verbs[-1], "group": rule.group, "resource": kind, "subresource": sub}
    asked |= {"name": rule.names[0].replace("{namespace}", namespace)} if rule.names else {}
    asked |= {} if place == "cluster" else {"namespace": _where(place, namespace)}
    wait_for(f"{asked} to be so", lambda: may(cluster, namespace, ACCOUNT, asked) is has)


def says(text: str, missing: str, own: str) -> bool:
    """Return whether it names the missing verbs, resource, group, and where."""
    place, rule = RULES[missing]
    where = "a ClusterRole" if place == "cluster" else f"a Role in {_where(place, own)} or a ClusterRole"
    return f"{where} of that user lacks" in text and any(
        group == rule.group and resource in rule.resources and {*verbs.split(", ")} <= {*rule.verbs}
        for group, resource, verbs in _RULE.findall(text)
    )


def _where(place: Place, own: str) -> str:
    return own if place == "own" else place
