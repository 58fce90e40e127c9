"""Pods of the demo: their manifests, and where they are placed."""

from dataclasses import dataclass

from demo.nodes import CLASS, GPU, TENANT, TOLERATION
from testbed.api import Api, Object, wait_for

NAMESPACES = {"demo": {}, "red": {TENANT: "red"}}
"""Namespaces with their labels."""


@dataclass(frozen=True, slots=True)
class Pod:
    """Pod to create."""

    name: str
    namespace: str = "demo"
    gpu: str = ""
    """The requested class; "" means no GPU."""

    @property
    def asks(self) -> str:
        """Return what the pod requests, as text."""
        return f"a GPU of class {self.gpu}" if self.gpu else f"no GPU, in the namespace {self.namespace}"

    @property
    def path(self) -> str:
        """Return the pod's path in the API."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def manifest(self) -> Object:
        """Return the pod's manifest."""
        container: Object = {"name": "main", "image": "main"}
        if self.gpu:
            container |= {"resources": {"limits": {GPU: "1"}}}
        return {
            "metadata": {"name": self.name, "labels": {CLASS: self.gpu} if self.gpu else {}},
            "spec": {
                "schedulerName": "fairlead",
                "tolerations": [TOLERATION],
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
            },
        }


@dataclass(frozen=True, slots=True)
class Pods:
    """Client for the demo's pods."""

    api: Api

    def clear(self) -> None:
        """Create the namespaces, and delete pods that an earlier demo left."""
        for name, labels in NAMESPACES.items():
            self.api.apply(
                f"/api/v1/namespaces/{name}",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
            )
            pods = f"/api/v1/namespaces/{name}/pods"
            self.api.delete(pods, gracePeriodSeconds="0")
            wait_for(f"the pods of {name} to be gone", lambda pods=pods: not self.api.items(pods))  # type: ignore[misc]
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            wait_for(f"the account of {name}", lambda account=account: self.api.exists(account))  # type: ignore[misc]

    def make(self, pod: Pod) -> None:
        """Create a pod."""
        self.api.create(pod.path.rpartition("/")[0], pod.manifest())

    def placed(self, pod: Pod) -> str:
        """Wait until the pod is placed, and return its node."""

        def node() -> str | None:
            return self.api.get(pod.path)["spec"].get("nodeName") or None

        return wait_for(f"{pod.name} to be placed", node)

    def annotations(self, pod: Pod) -> dict[str, str]:
        """Return the pod's annotations."""
        found: dict[str, str] = self.api.get(pod.path)["metadata"].get("annotations") or {}
        return found

    def rejection(self, pod: Pod) -> str:
        """Wait until the pod is unschedulable, and return the scheduler's message."""

        def said() -> str | None:
            conditions = self.api.get(pod.path).get("status", {}).get("conditions", ())
            return next((str(one["message"]) for one in conditions if one.get("reason") == "Unschedulable"), None)

        return wait_for(f"{pod.name} to be rejected", said)
