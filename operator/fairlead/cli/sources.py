"""Where a command looks: at files, or at the cluster of the current kubeconfig, as its options say."""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fairlead.cli import caveats
from fairlead.cli.failing import CommandError
from fairlead.cli.given import LIVE, Pod, nodes_of, pods_of, snapshot_of, waiting_pods
from fairlead.cli.live import HERE, WITHIN_S, Live, cluster, pods, reach
from fairlead.cluster.access import find_access
from fairlead.cluster.client import Client
from fairlead.offline.blind import judgeable
from fairlead.offline.snapshot import Key, Snapshot
from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.select import PolicySet, policy_set


@dataclass(slots=True)
class Sight:
    """A cluster, as far as it can be seen."""

    where: str
    live: Live = field(default_factory=Live)
    is_live: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """What there is."""
        return self.live.snapshot

    def notes(
        self, policies: Iterable[CompiledPolicy], pods: Sequence[Pod], given: argparse.Namespace
    ) -> Iterator[str]:
        """What somebody should know who believes what is said of pods."""
        yield from caveats.of_snapshot(self.snapshot, self.live.unread, self.where)
        if "namespace" not in self.live.unread:
            keys = [one.key for one in pods]
            is_now = self.is_live or given.now is not None
            yield from caveats.of_policies(policies, self.snapshot, keys, self.where, is_now=is_now)


def look(given: argparse.Namespace, *, policies: bool = False, pod: Key | None = None) -> Sight:
    """The cluster that is meant; of one that is live also its policies. Raises CommandError and others."""
    names: list[str] = given.cluster
    if LIVE not in names:
        sight = Sight(", ".join(names), Live(snapshot_of(names)))
    elif names != [LIVE]:
        raise CommandError(f"--cluster {' '.join(names)}: give files, or {LIVE}")
    else:
        sight = Sight(HERE, asyncio.run(_cluster(given, policies=policies, pod=pod)), is_live=True)
    nodes_of(sight.snapshot, sight.where)
    return sight


def asked(given: argparse.Namespace, sight: Sight, policies: PolicySet) -> list[Pod]:
    """The pods that are meant. Raises CommandError and others."""
    names: list[str] = given.pods
    if LIVE not in names:
        return pods_of(snapshot_of(names), ", ".join(names))
    if names != [LIVE]:
        raise CommandError(f"--pods {' '.join(names)}: give files, or {LIVE}")
    there = sight.snapshot if sight.is_live else asyncio.run(_pods(given))
    return waiting_pods(there, policies)


def seen(policies: PolicySet, sight: Sight) -> tuple[PolicySet, list[str]]:
    """The policies as far as they can be judged from what may be read, and what cannot."""
    if not sight.live.unread:
        return policies, []
    found, left_out = judgeable(policies.policies, [*sight.live.unread])
    return policy_set(found), [f"not judged, {one}" for one in left_out]


async def _cluster(given: argparse.Namespace, *, policies: bool, pod: Key | None) -> Live:
    access = find_access(given.kubeconfig, given.context)
    await reach(access)
    async with Client(access, deadline_s=WITHIN_S) as client:
        return await cluster(client, policies=policies, pod=pod)


async def _pods(given: argparse.Namespace) -> Snapshot:
    access = find_access(given.kubeconfig, given.context)
    await reach(access)
    async with Client(access, deadline_s=WITHIN_S) as client:
        return await pods(client)
