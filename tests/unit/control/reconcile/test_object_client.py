"""Objects that somebody else forms, too: a webhook that changes each that is written."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from fairlead.control.reconcile.object_client import ObjectClient

if TYPE_CHECKING:
    from fairlead.kube.http.client import Client

WANTED: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "n", "labels": {"a": "b"}},
    "spec": {"replicas": 2, "selector": {}, "image": "registry.k8s.io/x"},
}


class _Forming:
    """In place of a client: whatever is applied has another image then."""

    def __init__(self) -> None:
        self.live: dict[str, Any] = {"metadata": {}, "spec": {"selector": {}}}
        self.applied = 0

    async def get(self, *_: Any) -> dict[str, Any]:
        return self.live

    async def apply(self, _at: Any, body: Mapping[str, Any], *_: Any, **__: Any) -> dict[str, Any]:
        self.applied += 1
        self.live = {**body, "spec": {**body["spec"], "image": "mirror.example/x"}}
        return self.live


def test_what_others_form_is_applied_once_and_again_when_somebody_edits_it() -> None:
    api = _Forming()
    objects = ObjectClient(cast("Client", api))

    def put() -> str:
        return asyncio.run(objects.apply_if_changed(dict(WANTED)))

    assert (put(), put(), api.applied) == ("changed", "", 1)
    metadata = api.live["metadata"]
    revision = {**metadata["annotations"], "deployment.kubernetes.io/revision": "2"}
    api.live = {
        **api.live,
        "metadata": {**metadata, "annotations": revision, "resourceVersion": "9"},
        "status": {"replicas": 1},
    }
    assert (put(), api.applied) == ("", 1)
    api.live = {**api.live, "spec": {**api.live["spec"], "replicas": 5}}
    assert (put(), put(), api.applied) == ("edited", "", 2)
