"""Where a command looks: at files, or at the cluster of the current kubeconfig, as its options say."""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.cli.failing import CommandError
from fairlead.cli.given import LIVE, Pod, nodes_of, pods_of, snapshot_of, waiting_pods
from fairlead.cli.live import HERE, WITHIN_S, Live, cluster, pods
from fairlead.cluster.access import find_access
from fairlead.cluster.client import Client
from fairlead.offline.blind import judgeable, selects_by_namespace
from fairlead.offline.snapshot import GET, Key, Snapshot
from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.select import PolicySet, policy_set

_UNREAD: Final = {
    "pods": "what runs on nodes is not known, and room is told as if they were empty",
    "namespace": "namespaces are not known",
}


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

    def notes(self) -> list[str]:
        """What somebody should know who believes what is said of it."""
        found = [f"{_UNREAD[kind]}: {why}" for kind, why in self.live.unread.items()]
        if not self.snapshot.pods and not self.live.unread:
            found.append(f"{self.where} holds no pods, so that its nodes are taken as empty: `{GET}` writes both")
        return found


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


def unknown_namespaces(policies: PolicySet, sight: Sight, pods: Sequence[Pod]) -> list[str]:
    """A note where policies ask for namespaces that the snapshot lacks."""
    if "namespace" in sight.live.unread or not any(map(_reads_namespaces, policies.policies)):
        return []
    lacking = sorted({pod.key[0] for pod in pods if ("", pod.key[0]) not in sight.snapshot.namespaces})
    if not lacking:
        return []
    which = f"the namespace{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}"
    return [f"policies ask for {which}, not in {sight.where}: `{GET}` writes namespaces, too"]


def _reads_namespaces(policy: CompiledPolicy) -> bool:
    return policy.enforced and (bool(policy.reads.namespace) or selects_by_namespace(policy))


async def _cluster(given: argparse.Namespace, *, policies: bool, pod: Key | None) -> Live:
    async with Client(find_access(given.kubeconfig, given.context), deadline_s=WITHIN_S) as client:
        return await cluster(client, policies=policies, pod=pod)


async def _pods(given: argparse.Namespace) -> Snapshot:
    async with Client(find_access(given.kubeconfig, given.context), deadline_s=WITHIN_S) as client:
        return await pods(client)
