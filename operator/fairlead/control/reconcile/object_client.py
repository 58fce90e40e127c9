"""Client for the objects of schedulers: reads them, writes them only if they differ, and deletes them."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.control.decide.drift import compare, includes, must_recreate, to_apply
from fairlead.kube.errors import ConflictError, ForbiddenError, NotFoundError, may_not_bind
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Page, Resource, decode_object
from fairlead.render.object_names import MANAGER, Object, digest

LOG: Final = logging.getLogger(__name__)
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "ConfigMap": ("v1", "configmaps"),
    "Secret": ("v1", "secrets"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Deployment": ("apps/v1", "deployments"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
}
"""Kinds of the objects of schedulers, with their API version and plural."""
NAMESPACED: Final = tuple(kind for kind in KINDS if not kind.startswith("Cluster"))
_page: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode


def resource(kind: str) -> Resource:
    """Return the API resource of a kind."""
    version, plural = KINDS[kind]
    group, _, version = version.rpartition("/")
    return Resource(group, version, plural)


def ref_of(obj: Mapping[str, Any]) -> ObjectRef:
    """Return the reference of an object."""
    metadata = obj["metadata"]
    return ObjectRef(resource(obj["kind"]), metadata.get("namespace", ""), metadata["name"])


@dataclass(slots=True, eq=False)
class ObjectClient:
    """Client for objects of any of these kinds, with the operator's field manager."""

    client: Client
    _mutated_by_others: dict[ObjectRef, str] = field(default_factory=dict)
    """Fingerprints of objects that others, such as admission webhooks, change whenever they are applied."""

    async def get(self, at: ObjectRef) -> Object | None:
        """Return one object; None if it does not exist."""
        try:
            return await self.client.get(at, decode_object)
        except NotFoundError:
            return None

    async def all(self, at: ObjectRef, **query: str) -> list[Object]:
        """Return all objects of a query."""
        found: list[Object] = []
        async for page in self.client.pages(at, _page, query=query):
            found += page.items or []
        return found

    async def any(self, at: ObjectRef, **query: str) -> bool:
        """Return whether a query finds any object."""
        async for page in self.client.pages(at, _page, query=query, limit=1):
            if page.items:
                return True
        return False

    async def list_labelled(self, namespace: str, selector: str) -> list[Object]:
        """Return the objects of all kinds in a namespace, with the kind, which items of lists lack."""
        found: list[Object] = []
        for kind in NAMESPACED:
            items = await self.all(ObjectRef(resource(kind), namespace), labelSelector=selector)
            found += [{**one, "kind": kind} for one in items]
        return found

    async def apply_if_changed(self, desired: Object) -> str:
        """Apply an object unless it is up to date; return its state before, as `drift.compare` does."""
        at = ref_of(desired)
        live = await self.get(at)
        state, applied = compare(desired, live), to_apply(desired)
        if not state or (
            state == "edited" and live is not None and self._mutated_by_others.get(at) == _fingerprint(applied, live)
        ):
            return ""
        if live is not None and must_recreate(desired, live):
            state = "edited"
            await self.remove(live)
        try:
            made = await self.client.apply(at, applied, decode_object, manager=MANAGER, force=True)
        except ForbiddenError as error:
            role = desired.get("roleRef")
            raise may_not_bind(error, role["kind"], role["name"]) if role else error from None
        if not includes(applied, made):
            LOG.info("object.mutated_by_others", extra={"object": str(at)})
            self._mutated_by_others[at] = _fingerprint(applied, made)
        return state

    async def remove(self, obj: Mapping[str, Any]) -> None:
        """Delete an object, if it is still the one with that UID."""
        try:
            await self.client.delete(ref_of(obj), uid=obj["metadata"].get("uid", ""))
        except (NotFoundError, ConflictError):
            return


def _fingerprint(applied: Mapping[str, Any], live: Mapping[str, Any]) -> str:
    """Return a hash of an object without its status and others' annotations, which change all the time."""
    metadata = live["metadata"]
    annotations = {key: metadata.get("annotations", {}).get(key) for key in applied["metadata"]["annotations"]}
    rest = {key: one for key, one in live.items() if key not in ("metadata", "status")}
    return digest(msgspec.json.encode([metadata.get("labels"), annotations, rest], order="sorted").decode())
