"""The cluster that a command simulates, as its options say: the only place that turns options into a cluster.

Everything that is live is read with one client, and everything is judged at one time.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.console.output import with_progress
from fairlead.cli.inputs import caveats
from fairlead.cli.inputs.cluster_access import ClusterAccess, PolicyOption, is_live, live_parts, objects_are_live
from fairlead.cli.inputs.cluster_reader import (
    HERE,
    LiveObjects,
    read_objects,
    read_pods,
    read_policies,
    read_turns,
    read_unhealthy,
)
from fairlead.cli.inputs.created_pods import CreatedPods, as_far_as_known
from fairlead.cli.inputs.data_file import MeasuredInput, file_values, read_data_file
from fairlead.cli.inputs.learned_file import read_learned
from fairlead.cli.inputs.live_policies import LivePolicy, compiled_of
from fairlead.cli.inputs.live_values import add_live_values, nodes_of_snapshot
from fairlead.cli.inputs.policy_versions import (
    KnownInputs,
    PolicySetVersion,
    ShadowVersion,
    policies_of_option,
    shadow_alone,
    version_of_option,
)
from fairlead.cli.inputs.shadow_simulation import ShadowSimulation
from fairlead.cli.inputs.simulated_time import time_of
from fairlead.cli.inputs.simulation_inputs import (
    Pod,
    nodes_of,
    pods_of,
    pods_of_schedulers,
    policies_of,
    schedulers_of,
    snapshot_of,
    waiting_pods,
)
from fairlead.policy.affinity.published_parts import AffinityByScheduler
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced, shares_in_force
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Key, Snapshot, SnapshotObject
from fairlead.simulation.visibility import SkippedRule

if TYPE_CHECKING:
    from fairlead.render.prometheus_settings import PrometheusServer

_MINUTE: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """Objects, versions of policies, measured values and pods, at one time."""

    where: str
    is_live: bool
    now: int
    live: LiveObjects
    versions: Sequence[PolicySetVersion]
    pods: Sequence[Pod]
    concerned: Sequence[CompiledPolicy]
    """The policies that can matter to the pods."""
    data: MeasuredInput = field(default_factory=MeasuredInput)
    knows_time: bool = True
    """True if the time is that of the objects, as far as that is known."""

    @property
    def snapshot(self) -> Snapshot:
        """The objects."""
        return self.live.snapshot

    @property
    def live_policies(self) -> Sequence[LivePolicy]:
        """The policies of the cluster, if they were read."""
        return self.live.policies

    def schedulers(self) -> Iterator[str]:
        """Return the scheduler of each pod; if there is none to simulate, of each pod of the snapshot."""
        return (pod.scheduler for pod in self.pods) if self.pods else schedulers_of(self.snapshot)

    def simulation(self, version: int = 0) -> Simulation:
        """Return the simulation of a version."""
        found = self.versions[version]
        return self._simulation(found.judgeable, found.skipped, found.published)

    def shadow(self, version: int = 0) -> ShadowSimulation | None:
        """Return the simulation of a version as if all in shadow were enforced; None if nothing of it is in shadow."""
        return self._shadow(self.versions[version].shadow, version)

    def shadow_alone(self, policy: str) -> ShadowSimulation | None:
        """Return the simulation as if only what one policy has in shadow were enforced; None if that is nothing."""
        return self._shadow(shadow_alone(self.versions[0], policy), 0)

    def _shadow(self, of: ShadowVersion | None, version: int) -> ShadowSimulation | None:
        if of is None:
            return None
        published = self.versions[version].published
        return ShadowSimulation(of, lambda: self._simulation(of.judgeable, of.skipped, published))

    def _simulation(
        self, policies: PolicySet, skipped: Sequence[SkippedRule], published: AffinityByScheduler
    ) -> Simulation:
        made = Simulation(
            policies,
            self.snapshot,
            self.now,
            readings=self.data.readings,
            skipped=skipped,
            published=published,
            each=with_progress,
        )
        made.groups.are_known = "pods" not in self.live.unread
        for pod in self.pods:
            made.groups.add_waiting(pod.key, SnapshotObject(pod.raw, pod.file))
        return made

    def publishing(self, published: AffinityByScheduler | None) -> "SimulatedCluster":
        """Return the cluster with what is published in it, by scheduler; None: as its policies say."""
        if published is None:
            return self
        known = as_far_as_known(published, knows_namespaces="namespace" not in self.live.unread)
        return replace(self, versions=[replace(one, published=known) for one in self.versions])

    def with_created(self, is_new: Callable[[Pod], bool]) -> "SimulatedCluster":
        """Return the cluster with the pods that do not exist yet as they would be created."""
        created = CreatedPods(self.snapshot, self.versions[0].published)
        return replace(self, pods=[created.as_created(one) if is_new(one) else one for one in self.pods])

    def without_policies(self) -> "SimulatedCluster":
        """Return the cluster as it is to a scheduler that goes on without policies."""
        nothing = PolicySetVersion(PolicySet(), PolicySet(), published=self.versions[0].published)
        return replace(self, versions=(nothing,), concerned=(), data=MeasuredInput())

    def notes_on_ledgers(self) -> Iterator[str]:
        """Yield notes if what is granted of devices may not be read, or is kept in several namespaces."""
        if shares_in_force(self.concerned):
            if self.live.unread_ledgers:
                yield f"ledgers of devices are unknown, and annotations of pods are used: {self.live.unread_ledgers}"
            yield from caveats.notes_on_ledgers(self.snapshot)

    def notes(self) -> Iterator[str]:
        """Yield notes on the limits of results about the pods."""
        yield from caveats.notes_on_snapshot(self.snapshot, self.live.unread, self.where)
        yield from self.notes_on_ledgers()
        if self.live.unread_turns:
            yield f"the turns of groups are unknown: {self.live.unread_turns}"
        if self.live.unread_domains:
            yield f"the domains of groups are unknown: {self.live.unread_domains}"
        if "namespace" not in self.live.unread:
            keys = [one.key for one in self.pods]
            yield from caveats.notes_on_policies(
                self.concerned, self.snapshot, keys, self.where, is_now=self.knows_time
            )
        yield from dict.fromkeys(self.data.notes)
        in_shadow = (each for one in self.versions if one.shadow is not None for each in one.shadow.unevaluated)
        yield from dict.fromkeys(caveats.notes_on_skipped(in_shadow, "in shadow, "))


SelectPods = Callable[[Snapshot, str, PolicySet], Awaitable[Sequence[Pod]]]
"""Selection of pods from the objects, which are called by the text, that have the policies."""


Matters = Callable[[Sequence[CompiledPolicy], Sequence[Pod], Snapshot, int], Sequence[CompiledPolicy]]
"""Selection of the policies that matter for pods, in a snapshot at a time."""


async def no_pods(_: Snapshot, __: str, ___: PolicySet) -> Sequence[Pod]:
    """Select no pods, for a command that shows nodes."""
    return ()


async def gather(
    access: ClusterAccess,
    options: Sequence[PolicyOption],
    select: SelectPods,
    *,
    scope: Key | None = None,
    matters: Matters = lambda policies, *_: policies,
) -> SimulatedCluster:
    """Return the cluster of the options. Raises CommandError and others.

    `options` name one version of policies each. `scope` is what is needed at least if not everything may be read.
    Only what `matters` says is measured.
    """
    arguments = access.options
    servers: Sequence[PrometheusServer] = ()
    if arguments.prometheus:
        from fairlead.cli.inputs.prometheus_values import servers_of

        servers = servers_of(arguments.prometheus)
    objects_live, policies_live = live_parts(arguments, options)
    in_files = [_in_files(one) for one in options]
    live, where = LiveObjects(), HERE
    if objects_live:
        client = await access.client()
        reads = [read_objects(client, live, scope), *([read_policies(client, live)] if policies_live else [])]
        for failed in await asyncio.gather(*reads, return_exceptions=True):
            if failed is not None:
                raise failed
    else:
        live.snapshot, where = snapshot_of(arguments.snapshot), ", ".join(arguments.snapshot)
        live.unread_learned = "" if live.snapshot.learned else "the snapshot has no such ConfigMaps"
        if policies_live:
            await read_policies(await access.client(), live)
    nodes_of(live.snapshot, where)
    sets = [policies_of_option(one, files, live.policies) for one, files in zip(options, in_files, strict=True)]
    every = PolicySet(tuple({id(policy): policy for one in sets for policy in one.policies}.values()))
    pods = await select(live.snapshot, where, every)
    values = file_values(arguments.data, every.policies)
    is_current = objects_live or policies_live or bool(servers)
    now, from_snapshot = time_of(arguments.now, None if is_current else live.snapshot, values)
    concerned = matters(every.policies, pods, live.snapshot, now)
    data = read_data_file(values, [name for _, name in live.snapshot.nodes], now, noted=concerned)
    if from_snapshot and time.time_ns() - now > _MINUTE and concerned:
        said = f"judged at {timestamp_to_string(now)}, the newest time in {where}; --now gives another"
        data.notes.append(said)
    nodes = nodes_of_snapshot(live.snapshot, now)
    learned = read_learned(arguments.learned, every.policies, nodes, now, where)
    live.given_learned = learned.put_into(live.snapshot)
    data.notes += learned.notes
    if servers or arguments.prometheus_token is not None:
        from fairlead.cli.inputs.prometheus_values import add_prometheus

        await add_prometheus(data, servers, arguments.prometheus_token, every.policies, nodes, wanted=concerned)
    if objects_live:
        client = await access.client()
        await read_unhealthy(client, live.snapshot, concerned)
        await read_turns(client, live, map(as_enforced, concerned))
        await add_live_values(data, client, concerned, nodes)
    if policies_live:  # an entry of a file may measure something else under its name
        named = {one.name for one in concerned}
        of_cluster = [one for one in compiled_of(live.policies) if one.name in named]
        if any(one.data for one in of_cluster):
            from fairlead.cli.inputs.replica_values import add_replica_values

            await add_replica_values(data, await access.client(), of_cluster)
    known = KnownInputs(live.unread_kinds, data.readings, live.given_learned)
    versions = [
        version_of_option(policies, option, files, live.policies, known)
        for policies, option, files in zip(sets, options, in_files, strict=True)
    ]
    knows_time = objects_live or arguments.now is not None or from_snapshot
    return SimulatedCluster(where, objects_live, now, live, versions, pods, concerned, data, knows_time)


def read_cluster(
    access: ClusterAccess,
    options: Sequence[PolicyOption],
    select: Callable[[ClusterAccess], SelectPods],
    matters: Matters = lambda policies, *_: policies,
) -> SimulatedCluster:
    """Return the cluster of the options, for a command that reads nothing else. Raises CommandError and others."""

    async def read() -> SimulatedCluster:
        async with access:
            return await gather(access, options, select(access), matters=matters)

    return asyncio.run(read())


def pods_to_check(names: Sequence[str]) -> Callable[[ClusterAccess], SelectPods]:
    """Return the selection of `--pods`; without it that of all pods whose schedulers the policies name."""

    def of(access: ClusterAccess) -> SelectPods:
        async def select(snapshot: Snapshot, _: str, policies: PolicySet) -> Sequence[Pod]:
            if not names:
                return pods_of_schedulers(snapshot, policies)
            if not is_live("--pods", names):
                return pods_of(snapshot_of(names), ", ".join(names))
            read = snapshot if objects_are_live(access.options) else await read_pods(await access.client())
            return waiting_pods(read, policies)

        return select

    return of


def _in_files(option: PolicyOption) -> PolicySet | None:
    """Return the policies of the files of an option; None if it names none."""
    return None if not option.names or is_live(option.option, option.names) else policies_of(option.names)
