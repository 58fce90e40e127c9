"""What is bound outside the operator's namespace belongs to it: the garbage collector takes it away when that goes.

A binding that stayed would give its rights to whoever makes a namespace of that name, and the account in it, again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import NotFoundError
from fairlead.kube.resources import NAMESPACES, ObjectRef
from fairlead.render.rbac import IN, ROLE
from fairlead.render.templates import Object

_KINDS: Final = ("ClusterRoleBinding", "RoleBinding")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class NamespaceOwner:
    """Of the operator in one namespace."""

    objects: ObjectClient
    namespace: str

    async def own(self) -> None:
        """Have the operator's own bindings, which came with it, belong to the namespace."""
        role = ROLE.format(namespace=self.namespace)
        found = [("ClusterRoleBinding", "", role)]
        found += [("RoleBinding", place, f"{role}{IN}{place}") for place in ("default", "kube-system")]
        there = [(kind, await self.objects.get(ObjectRef(resource(kind), place, name))) for kind, place, name in found]
        await self.have({**one, "kind": kind} for kind, one in there if one is not None)

    async def have(self, there: Iterable[Object]) -> None:
        """Have these belong to it, as far as they are outside of it and give rights. Raises ClusterError."""
        loose = [one for one in there if self._is_loose(one)]
        if not loose:
            return
        found = await self.objects.all(NAMESPACES, fieldSelector=f"metadata.name={self.namespace}")
        for owner in found:  # one, or none where it goes just now
            for one in loose:
                await self._give(one, owner["metadata"]["uid"])

    def _is_loose(self, obj: Object) -> bool:
        metadata = obj["metadata"]
        outside = obj["kind"] in _KINDS and metadata.get("namespace", "") != self.namespace
        return outside and not any(map(self._is_ours, metadata.get("ownerReferences") or ()))

    def _is_ours(self, reference: Mapping[str, Any]) -> bool:
        return (reference["kind"], reference["name"]) == ("Namespace", self.namespace)

    async def _give(self, obj: Object, uid: str) -> None:
        """Without blockOwnerDeletion: that takes a right on namespaces, and nothing has to wait for it."""
        metadata = obj["metadata"]
        place, name = metadata.get("namespace", ""), metadata["name"]
        at = ObjectRef(resource(obj["kind"]), place, name)
        reference = {"apiVersion": "v1", "kind": "Namespace", "name": self.namespace, "uid": uid}
        references = [*(metadata.get("ownerReferences") or ()), reference]
        body = {"metadata": {"ownerReferences": references, "resourceVersion": metadata["resourceVersion"]}}
        try:
            await self.objects.client.merge(at, body, _decode)
        except NotFoundError:
            return
