"""Pods of one namespace, which is also the name of their scheduler, and what becomes of them.

A pod counts as placed when it names a node, and a deleted one is gone at once, because it is given no time to end.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from testbed.api import Api, Object, wait_for

URGENT = "urgent"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@dataclass(slots=True, kw_only=True)
class Stage:
    """Pods, and a real scheduler for them."""

    api: Api
    name: str
    start_scheduler: Callable[[Object], Callable[[], str]]
    """Starts a scheduler and gives what reads its log."""
    log: Callable[[], str] = str

    def open(self) -> None:
        """Have what pods need before the first one is made."""
        account = f"/api/v1/namespaces/{self.name}/serviceaccounts/default"
        wait_for("the namespace's service account", lambda: self.api.exists(account))
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        self.api.apply(f"{_CLASSES}/{URGENT}", {**kind, "metadata": {"name": URGENT}, "value": 1000})

    def start(self, *entries: Object, **config: object) -> None:
        """Start the scheduler with these entries of `extenders`."""
        self.log = self.start_scheduler({"profiles": [{"schedulerName": self.name}], "extenders": [*entries]} | config)

    def make_pod(
        self,
        name: str,
        *,
        on: str = "",
        cpu: str = "0",
        urgent: bool = False,
        affinity: Object | None = None,
        selector: Object | None = None,
        grace_s: int = 0,
        **metadata: object,
    ) -> None:
        """A pod that waits for the scheduler, or that is `on` a node from the start; with these labels, annotations.

        `selector`: its `nodeSelector`. `grace_s`: where no kubelet is, one that is deleted stays until it is deleted
        at once.
        """
        pod = self._pod(name, on=on, cpu=cpu, urgent=urgent, metadata=metadata)
        more = {"terminationGracePeriodSeconds": grace_s, **({"affinity": affinity} if affinity else {})}
        more |= {"nodeSelector": selector} if selector else {}
        self.api.create(self.path, pod | {"spec": pod["spec"] | more})

    def make_pods(
        self,
        names: Iterable[str],
        *,
        on: str = "",
        cpu: str = "0",
        urgent: bool = False,
        scheduler: str = "",
        **metadata: object,
    ) -> None:
        """Equal pods; of another scheduler, if one is named."""
        self.api.create_all(
            self.path,
            [self._pod(name, on=on, cpu=cpu, urgent=urgent, metadata=metadata, scheduler=scheduler) for name in names],
        )

    def pod(self, name: str) -> Object:
        """The pod as it is now."""
        return self.api.get(f"{self.path}/{name}")

    def placed(self, name: str) -> str:
        """The node that the pod is placed on, once it is."""
        return wait_for(f"{name} to be placed", lambda: str(self.pod(name)["spec"].get("nodeName", "")) or None)

    def places(self) -> dict[str, str]:
        """Every pod with its node; with nothing while it has none."""
        return {str(pod["metadata"]["name"]): pod["spec"].get("nodeName", "") for pod in self.api.items(self.path)}

    def all_placed(self) -> list[str]:
        """The node of each pod, once all have one."""

        def nodes() -> list[str] | None:
            found = [*self.places().values()]
            return found if all(found) else None

        return wait_for("all pods to be placed", nodes)

    def refusal(self, name: str, reason: str = "Unschedulable") -> str:
        """Why the pod is not placed, once the scheduler says so for that reason."""

        def message() -> str | None:
            conditions = self.pod(name).get("status", {}).get("conditions", [])
            return next((str(one["message"]) for one in conditions if one.get("reason") == reason), None)

        return wait_for(f"{name} to be refused as {reason}", message)

    def events(self, name: str) -> set[tuple[str, str]]:
        """Reason and note of the pod's events, once there are any."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.name}/events"

        def notes() -> set[tuple[str, str]] | None:
            found = self.api.items(path, fieldSelector=f"regarding.name={name}")
            return {(str(one["reason"]), str(one["note"])) for one in found} or None

        return wait_for(f"an event about {name}", notes)

    def living(self) -> set[str]:
        """The pods that nobody deletes."""
        found = [pod["metadata"] for pod in self.api.items(self.path)]
        return {str(metadata["name"]) for metadata in found if "deletionTimestamp" not in metadata}

    @property
    def path(self) -> str:
        """Where the pods are."""
        return f"/api/v1/namespaces/{self.name}/pods"

    def _pod(
        self, name: str, *, on: str, cpu: str, urgent: bool, metadata: Mapping[str, object], scheduler: str = ""
    ) -> Object:
        spec = {
            "schedulerName": scheduler or self.name,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}],
            **({"nodeName": on} if on else {}),
            **({"priorityClassName": URGENT} if urgent else {}),
        }
        return {"metadata": {"name": name, **metadata}, "spec": spec}
