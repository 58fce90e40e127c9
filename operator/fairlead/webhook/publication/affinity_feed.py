"""Feed of the affinity that is published for each scheduler, and of what was published before."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.kube.http.client import Client
from fairlead.kube.resources import PUBLISHED_AFFINITIES
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key
from fairlead.policy.affinity.published_policies import POLICIES_MAX, AffinityOfScheduler, PublishedPolicy
from fairlead.time_units import SECOND_NS


class CurrentAffinity(msgspec.Struct, frozen=True):
    """Affinity that pods of a scheduler get now."""

    affinity: AffinityOfScheduler
    since_s: float
    """Time of day since which they get it, on the clock of the API server."""
    before: Mapping[str, PublishedPolicy] = {}
    """Parts of policies, by name, that were published until they changed or went; known since this process started."""


class FieldsEntry(msgspec.Struct, frozen=True):
    """Entry of who wrote an object, and when."""

    time: datetime | None = None


class AffinityMeta(msgspec.Struct, frozen=True):
    """Metadata of an object with published affinity, named as in the API."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    creationTimestamp: datetime | None = None  # noqa: N815
    managedFields: tuple[FieldsEntry, ...] = ()  # noqa: N815

    @property
    def written_s(self) -> float:
        """Time at which it was written last; 0 if it does not say."""
        times = (self.creationTimestamp, *(one.time for one in self.managedFields))
        return max((one.timestamp() for one in times if one is not None), default=0.0)


class ListedAffinity(msgspec.Struct, frozen=True):
    """An object with published affinity; the API server has checked what is in it."""

    metadata: AffinityMeta
    spec: dict[str, Any]


class AffinitySink(EventSink):
    """Sink of published affinity."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now` is the time of day in nanoseconds."""
        self.current: Final[dict[str, CurrentAffinity]] = {}
        """Affinity by scheduler, also of those that have none any more."""
        self._now = now

    def put(self, item: ListedAffinity, /) -> None:
        """Add or update the affinity of a scheduler."""
        spec = item.spec
        affinity: AffinityOfScheduler = {
            "schedulerName": spec["schedulerName"],
            "hash": spec["hash"],
            "policies": spec.get("policies") or [],
        }
        self._set(item.metadata.name, affinity, item.metadata.written_s)

    def remove(self, key: Key, /) -> None:
        """Remove the affinity of a scheduler: its pods get none any more."""
        if key[1] in self.current:
            self._set(key[1], {"schedulerName": key[1], "hash": "", "policies": []}, self._now() / SECOND_NS)

    def _set(self, scheduler: str, affinity: AffinityOfScheduler, since_s: float) -> None:
        known = self.current.get(scheduler)
        if known is None:
            self.current[scheduler] = CurrentAffinity(affinity, since_s)
            return
        if known.affinity["hash"] == affinity["hash"]:
            self.current[scheduler] = CurrentAffinity(affinity, known.since_s, known.before)
            return
        parts = {one["name"]: _meaning(one) for one in affinity["policies"]}
        changed = {one["name"]: one for one in known.affinity["policies"] if parts.get(one["name"]) != _meaning(one)}
        before = {**{name: one for name, one in known.before.items() if name not in changed}, **changed}
        kept = [*before.items()][-POLICIES_MAX:]
        self.current[scheduler] = CurrentAffinity(affinity, since_s, dict(kept))


def _meaning(policy: PublishedPolicy) -> object:
    return policy["when"], policy["terms"]


class AffinityFeed:
    """Watch of published affinity, while a policy publishes some."""

    def __init__(self, client: Client, now: Callable[[], int]) -> None:
        self.sink: Final = AffinitySink(now)
        self._client = client
        self._watches = ReflectorSet()

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch by its name, if it is wanted."""
        return self._watches.reflectors

    @property
    def is_listed(self) -> bool:
        """Return whether what is published is known."""
        return any(one.state.synced for one in self._watches.reflectors.values())

    def want(self, *, wanted: bool) -> None:
        """Watch from now on, or no more."""
        if not wanted:
            self.sink.current.clear()
        self._watches.want({"published affinity": self._reflector} if wanted else {})

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watches.run()

    def _reflector(self) -> Reflector[ListedAffinity]:
        return Reflector(
            self._client, PUBLISHED_AFFINITIES, decode=msgspec.json.Decoder(ListedAffinity).decode, sink=self.sink
        )
