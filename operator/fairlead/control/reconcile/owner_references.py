"""Owner references of the chart's bindings outside the operator's namespace: they are deleted with the namespace.

A binding that remained would grant its permissions to anyone who creates that namespace and account again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import NotFoundError
from fairlead.kube.resources import NAMESPACES, ObjectRef, decode_object
from fairlead.render.object_names import Object
from fairlead.render.rbac import CLAIM_PLACE, IN, ROLE
from fairlead.render.scheduler_bindings import KUBE_SYSTEM


@dataclass(frozen=True, slots=True)
class NamespaceOwner:
    """Owner of the bindings of the operator in one namespace and of its schedulers."""

    objects: ObjectClient
    namespace: str
    claim_namespace: Callable[[], str]

    async def adopt_own(self) -> None:
        """Make the namespace the owner of the operator's own bindings, which the chart created. Raises ClusterError."""
        role = ROLE.format(namespace=self.namespace)
        found = [("ClusterRoleBinding", "", role)]
        claim = self.claim_namespace()
        at = KUBE_SYSTEM if claim == KUBE_SYSTEM else CLAIM_PLACE
        found += [("RoleBinding", "default", f"{role}{IN}default"), ("RoleBinding", claim, f"{role}{IN}{at}")]
        bindings = [
            (kind, await self.objects.get(ObjectRef(resource(kind), place, name))) for kind, place, name in found
        ]
        await self.adopt([{**one, "kind": kind} for kind, one in bindings if one is not None])

    async def adopt(self, bindings: Iterable[Object]) -> None:
        """Make the namespace the owner of bindings outside of it. Raises ClusterError."""
        loose = [one for one in bindings if self._is_loose(one)]
        if not loose:
            return
        found = await self.objects.all(NAMESPACES, fieldSelector=f"metadata.name={self.namespace}")
        for owner in found:  # one, or none while the namespace is being deleted
            for one in loose:
                await self._give(one, owner["metadata"]["uid"])

    def _is_loose(self, obj: Object) -> bool:
        return not any(map(self._is_ours, obj["metadata"].get("ownerReferences") or ()))

    def _is_ours(self, reference: Mapping[str, Any]) -> bool:
        return (reference["kind"], reference["name"]) == ("Namespace", self.namespace)

    async def _give(self, obj: Object, uid: str) -> None:
        """Add the owner, without blockOwnerDeletion: that needs a permission on namespaces, and nothing has to wait."""
        metadata = obj["metadata"]
        place, name = metadata.get("namespace", ""), metadata["name"]
        at = ObjectRef(resource(obj["kind"]), place, name)
        reference = {"apiVersion": "v1", "kind": "Namespace", "name": self.namespace, "uid": uid}
        references = [*(metadata.get("ownerReferences") or ()), reference]
        body = {"metadata": {"ownerReferences": references, "resourceVersion": metadata["resourceVersion"]}}
        try:
            await self.objects.client.merge(at, body, decode_object)
        except NotFoundError:
            return
