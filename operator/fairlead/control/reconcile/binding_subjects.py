"""Subjects of the chart's bindings of schedulers: the accounts of all schedulers that exist, in each binding."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.control.decide.drift import Drift, DriftLog
from fairlead.control.reconcile.object_client import ObjectClient, ref_of, resource
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.kube.errors import ClusterError, ForbiddenError, NotFoundError, may_not_bind
from fairlead.kube.resources import ObjectRef, decode_object
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import EventSink, Key, PartialObject, partial_object
from fairlead.render.object_names import MANAGED_BY, MANAGER, SCHEDULER_LABEL, Object, ObjectNames
from fairlead.render.scheduler_bindings import KUBE_SYSTEM, SchedulerBinding, scheduler_bindings, subjects

_ACCOUNTS: Final = f"{MANAGED_BY}={MANAGER},{SCHEDULER_LABEL}"
_RESTORE: Final = "the chart creates it, and the operator may not: run helm upgrade, or apply the chart again"


@dataclass(slots=True, eq=False)
class SchedulerBindings:
    """Bindings of one operator's schedulers. The workers of all schedulers share them."""

    objects: ObjectClient
    owner: NamespaceOwner
    drifts: DriftLog
    _applied: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Subjects that were applied last, by the binding's name: others are an edit."""
    is_synced: bool = False
    """False if the bindings may have changed since the last sync."""
    _bound: frozenset[str] = frozenset()
    """Accounts that the last sync bound."""
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def sync(self) -> None:
        """Bind the accounts that exist, and no others. Raises ClusterError."""
        async with self._busy:  # of two that list and then apply, the one that listed first must apply first
            self.is_synced = True
            try:
                accounts = await self._accounts()
                for binding in scheduler_bindings(self.owner.claim_namespace()):
                    await self._apply(binding, subjects(self.namespace, accounts))
            except ClusterError:
                self.is_synced = False
                raise
            self._bound = frozenset(accounts)

    async def ensure(self, account: str) -> None:
        """Bind an account that exists, unless it is bound. Raises ClusterError."""
        if not (self.is_synced and account in self._bound):
            await self.sync()

    @property
    def namespace(self) -> str:
        """Namespace of the operator."""
        return self.owner.namespace

    async def _accounts(self) -> Sequence[str]:
        """Return the ServiceAccounts of schedulers. One whose name is not that of its scheduler is not ours."""
        found = await self.objects.all(ObjectRef(resource("ServiceAccount"), self.namespace), labelSelector=_ACCOUNTS)
        metadata = [one["metadata"] for one in found if "deletionTimestamp" not in one["metadata"]]
        return [
            one["name"]
            for one in metadata
            if one["name"] == ObjectNames(one["labels"][SCHEDULER_LABEL], self.namespace).object_name
        ]

    async def _apply(self, binding: SchedulerBinding, bound: Sequence[Mapping[str, Any]]) -> None:
        """Apply the subjects of a binding if they differ."""
        body = binding.body(self.namespace)
        at, name = ref_of(body), binding.name(self.namespace)
        live = await self.objects.get(at)
        if live is None:
            raise NotFoundError("get", at, f"there is no such binding; {_RESTORE}", status=404, reason="NotFound")
        found = [{key: one.get(key) for key in ("kind", "name", "namespace")} for one in live.get("subjects") or ()]
        edited = name in self._applied and found != self._applied[name]
        if found != bound:
            self._applied.pop(name, None)  # a request that fails may have been carried out
            try:
                live = await self.objects.client.apply(
                    at, {**body, "subjects": bound}, decode_object, manager=MANAGER, force=True
                )
            except ForbiddenError as error:
                raise may_not_bind(error, binding.role_kind, binding.role) from None
        self._applied[name] = bound
        if edited:
            self.drifts.record(Drift("", binding.kind, f"{binding.kind} {name} was edited"))
        await self.owner.adopt([{**live, "kind": binding.kind}])

    def watches(self, on_event: Callable[[], None]) -> Sequence[Reflector[PartialObject]]:
        """Return a watch of each binding; `on_event` is called when one changes."""
        return [
            Reflector(
                self.objects.client,
                ObjectRef(resource(one.kind), one.place),
                decode=partial_object.decode,
                sink=_BindingSink(on_event),
                query={"fieldSelector": f"metadata.name={one.name(self.namespace)}"},
            )
            for one in scheduler_bindings(self.owner.claim_namespace())
        ]


@dataclass(frozen=True, slots=True)
class _BindingSink(EventSink):
    on_event: Callable[[], None]

    def put(self, _: PartialObject) -> None:
        """Report a binding that was added or changed."""
        self.on_event()

    def remove(self, _: Key) -> None:
        """Report a binding that was deleted."""
        self.on_event()


async def bindings_of_earlier_versions(objects: ObjectClient, namespace: str) -> Sequence[Object]:
    """Return the bindings of single schedulers outside the namespace, which are not created any more."""
    found, ours = list[Object](), f"{MANAGER}.{namespace}."  # others may belong to another operator
    for kind, place in (("ClusterRoleBinding", ""), ("RoleBinding", KUBE_SYSTEM)):
        try:
            listed = await objects.all(ObjectRef(resource(kind), place), labelSelector=f"{MANAGED_BY}={MANAGER}")
        except ForbiddenError:
            if not place:
                raise
            continue  # with another claimNamespace there is no role in kube-system
        found += [{**one, "kind": kind} for one in listed if one["metadata"]["name"].startswith(ours)]
    return found
