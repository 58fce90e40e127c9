"""To be somebody else: a service account of the cluster."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from fairlead.kube.access.login import Login, from_kubeconfig
from fairlead.render.rbac import RoleGrant, named
from testbed.api import Api
from testbed.fixtures import Cluster

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def token_of(cluster: Cluster, namespace: str, account: str, *audiences: str) -> str:
    """A token of a service account, for the API server or for others."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    spec = {"expirationSeconds": 600, "audiences": [*audiences]}
    made: str = cluster.api.create(path, {"spec": spec})["status"]["token"]
    return made


def kubeconfig_of(cluster: Cluster, namespace: str, account: str, folder: Path) -> Path:
    """A kubeconfig of a service account."""
    token = token_of(cluster, namespace, account)
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    file = folder / f"{namespace}-{account}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def access_of(cluster: Cluster, namespace: str, account: str, folder: Path) -> Login:
    """As our own client asks."""
    return from_kubeconfig([kubeconfig_of(cluster, namespace, account, folder)])


def give(api: Api, namespace: str, account: str, grants: Iterable[RoleGrant]) -> None:
    """Have a service account have these rights, and no others that it was given so."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    for grant in named(grants, namespace):
        kind = "ClusterRole" if grant.place == "cluster" else "Role"
        within = "" if grant.place == "cluster" else f"/namespaces/{_namespace(grant, namespace)}"
        rules = [
            {"apiGroups": [rule.group], "resources": [*rule.resources], "verbs": [*rule.verbs]}
            | ({"resourceNames": [*rule.names]} if rule.names else {})
            for rule in grant.rules
        ]
        name, version = f"{namespace}.{account}", "rbac.authorization.k8s.io/v1"
        role = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "rules": rules}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        binding = {"apiVersion": version, "kind": f"{kind}Binding", "metadata": {"name": name}, "roleRef": reference}
        api.apply(f"{_RBAC}{within}/{kind.lower()}s/{name}", role)
        api.apply(f"{_RBAC}{within}/{kind.lower()}bindings/{name}", {**binding, "subjects": [subject]})


def take(api: Api, namespace: str, account: str, grants: Iterable[RoleGrant]) -> None:
    """Have it have none of them."""
    for grant in grants:
        kind = "clusterrole" if grant.place == "cluster" else "role"
        within = "" if grant.place == "cluster" else f"/namespaces/{_namespace(grant, namespace)}"
        for plural in (f"{kind}bindings", f"{kind}s"):
            api.delete(f"{_RBAC}{within}/{plural}/{namespace}.{account}")


def _namespace(grant: RoleGrant, own: str) -> str:
    return own if grant.place == "own" else grant.place


def may(cluster: Cluster, namespace: str, account: str, asked: dict[str, str]) -> bool:
    """Return whether the API server would do this for a service account."""
    user = f"system:serviceaccount:{namespace}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {"spec": {"user": user, "groups": groups, "resourceAttributes": asked}}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(cluster.api.create(path, kind | review)["status"]["allowed"])
