"""To be somebody else: a service account of the cluster."""

from pathlib import Path

import yaml

from fairlead.cluster.access import Access, from_kubeconfig
from testbed.fixtures import Cluster


def kubeconfig_of(cluster: Cluster, namespace: str, account: str, folder: Path) -> Path:
    """A kubeconfig of a service account."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    token = cluster.api.create(path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    file = folder / f"{namespace}-{account}.kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


def access_of(cluster: Cluster, namespace: str, account: str, folder: Path) -> Access:
    """As our own client asks."""
    return from_kubeconfig([kubeconfig_of(cluster, namespace, account, folder)])


def may(cluster: Cluster, namespace: str, account: str, asked: dict[str, str]) -> bool:
    """Whether the API server would do what a service account asks."""
    user = f"system:serviceaccount:{namespace}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {"spec": {"user": user, "groups": groups, "resourceAttributes": asked}}
    kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(cluster.api.create(path, kind | review)["status"]["allowed"])
