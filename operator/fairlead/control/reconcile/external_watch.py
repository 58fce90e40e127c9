"""Watches of the ClusterRoleBindings of schedulers, and of their RoleBindings in kube-system, by label.

Not through kopf: it watches every namespace that it is given for all kinds, and may not list kube-system's Secrets. Any
event enqueues the scheduler of the object.
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
    client: Client, namespace: str, enqueue: Callable[[str], None]
) -> Sequence[Reflector[PartialObject]]:
    """Return the watches; `enqueue` is called with the scheduler of each event."""
    return [
        Reflector(
            client,
            ObjectRef(resource(kind), place),
            decode=partial_object.decode,
            sink=_ExternalObjectSink(namespace, enqueue),
            query={"labelSelector": SCHEDULER_LABEL},
        )
        for kind, place in PLACES
    ]


@dataclass(frozen=True, slots=True)
class _ExternalObjectSink:
    namespace: str
    enqueue: Callable[[str], None]

    def begin(self) -> None:
        """Ignore the start of a list."""

    def put(self, item: PartialObject) -> None:
        """Enqueue the scheduler of an object that was added or changed."""
        self._notify(item.metadata.name)

    def remove(self, key: Key) -> None:
        """Enqueue the scheduler of an object that was deleted."""
        self._notify(key[1])

    def end(self) -> None:
        """Ignore the end of a list."""

    def _notify(self, name: str) -> None:
        if scheduler := scheduler_of_external(name, self.namespace):
            self.enqueue(scheduler)
