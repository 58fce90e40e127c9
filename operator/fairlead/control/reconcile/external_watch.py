"""Follows what schedulers have outside the operator's namespace, where kopf would follow everything that others have.

The API server picks by the label. Whatever happens to one, its scheduler is looked at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.control.reconcile.object_client import resource
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Key, PartialObject, partial_object
from fairlead.render.object_names import SCHEDULER_LABEL, scheduler_of_external

PLACES: Final = (("ClusterRoleBinding", ""), ("RoleBinding", "kube-system"))


def watch_external_objects(
    client: Client, namespace: str, due: Callable[[str], None]
) -> Sequence[Reflector[PartialObject]]:
    """`due` is told of the scheduler."""
    return [
        Reflector(
            client,
            ObjectRef(resource(kind), place),
            decode=partial_object.decode,
            sink=_ExternalObjectSink(namespace, due),
            query={"labelSelector": SCHEDULER_LABEL},
        )
        for kind, place in PLACES
    ]


@dataclass(frozen=True, slots=True)
class _ExternalObjectSink:
    namespace: str
    enqueue: Callable[[str], None]

    def begin(self) -> None:
        """A list begins."""

    def put(self, item: PartialObject) -> None:
        """One came or became different."""
        self._tell(item.metadata.name)

    def remove(self, key: Key) -> None:
        """One went."""
        self._tell(key[1])

    def end(self) -> None:
        """The list is complete."""

    def _tell(self, name: str) -> None:
        if scheduler := scheduler_of_external(name, self.namespace):
            self.enqueue(scheduler)
