"""What the leader does, put together: it is told of what happens, and looks at what there is.

kopf only tells of what happened. Everything is done from what is there, again and again; nothing depends on an event.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.api.names import API_VERSION, KIND
from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.loop.poller import LOOKING, STAYING, ReplicaPoller
from fairlead.control.loop.queue import SchedulerQueue
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.resources import POLICIES, ObjectRef
from fairlead.render.object_names import SCHEDULER_LABEL


@dataclass(slots=True, eq=False, kw_only=True)
class Controller:
    """While this replica leads. All of it runs in one loop, which is not the one that serves."""

    policy_index: PolicyIndex
    objects: ObjectClient
    namespace: str
    owner: NamespaceOwner
    queue: SchedulerQueue
    poller: ReplicaPoller
    missing_permissions: MissingPermissions
    background: Sequence[Callable[[], Awaitable[None]]] = ()
    """What else goes on."""

    def on_policy_event(self, kind: str | None, policy: Obj) -> None:
        """Something happened to a policy."""
        before = self.policy_index.policies.get(policy["metadata"]["name"])
        scheduler = self.policy_index.apply_event(kind, policy)
        if before is None or kind == "DELETED" or _asked(before) != _asked(policy):
            self.enqueue(scheduler)
            self.poller.poll_now()

    def enqueue(self, scheduler: str) -> None:
        """Something happened to what a scheduler is made of."""
        self.queue.enqueue(scheduler)

    async def resync(self) -> None:
        """See all that there is, whatever was told: nobody tells what happened while nobody watched.

        It comes before anything else: a scheduler of which only half of the policies is known would be rolled.
        """
        before = dict(self.policy_index.policies)
        listed = await self.objects.all(POLICIES)
        found: dict[str, Obj] = {
            one["metadata"]["name"]: {**one, "apiVersion": API_VERSION, "kind": KIND} for one in listed
        }
        for name in before.keys() | found.keys():
            if self.policy_index.policies.get(name) is not before.get(name):
                continue  # something was told meanwhile, which is newer
            self.on_policy_event(None, found[name]) if name in found else self.on_policy_event("DELETED", before[name])
        kept = ObjectRef(resource("ConfigMap"), self.namespace)
        try:
            for one in await self.objects.all(kept, labelSelector=SCHEDULER_LABEL):
                self.enqueue(one["metadata"]["labels"][SCHEDULER_LABEL])
        except ForbiddenError as error:  # those that have policies are looked at, and theirs say what is missing
            self.missing_permissions.record(LOOKING, error)
        else:
            self.missing_permissions.clear(LOOKING)
        try:
            await self.owner.own()
        except ClusterError as error:
            self.missing_permissions.record(STAYING, error)
        else:
            self.missing_permissions.clear(STAYING)

    async def run(self) -> None:
        """Until it is cancelled; the schedulers that settings list are there without any policy."""
        for one in self.poller.settings().schedulers:
            self.enqueue(one.name)
        tasks = [asyncio.ensure_future(work()) for work in (self.poller.run, *self.background)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.queue.end()


def _asked(policy: Obj) -> Mapping[str, Any]:
    """What somebody wrote, and whether it goes."""
    metadata = policy["metadata"]
    kept = {key: metadata.get(key) for key in ("uid", "generation", "annotations", "deletionTimestamp")}
    return {**kept, "spec": policy.get("spec")}
