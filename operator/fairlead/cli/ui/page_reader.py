"""Reading of what the page shows, with the rights of the user: what `explain` reads, and policies as stored."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.names import API_VERSION, KIND
from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.options import repeated
from fairlead.cli.inputs.checker import Checker
from fairlead.cli.inputs.cluster_access import ClusterAccess, PolicyOption, objects_are_live
from fairlead.cli.inputs.cluster_reader import read_published
from fairlead.cli.inputs.files import files
from fairlead.cli.inputs.replica_decisions import read_decisions
from fairlead.cli.inputs.simulated_cluster import SimulatedCluster, gather
from fairlead.cli.inputs.simulation_inputs import pods_of_schedulers
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.cli.installation.scheduling import Scheduling, scheduling_in_files, scheduling_of
from fairlead.cli.reports.explained_pods import ExplainedPods
from fairlead.cli.ui.decision_table import OF_FILES, ReadDecisions, decisions_of
from fairlead.cli.ui.page_view import PageInput
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.resources import POLICIES
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.simulation.snapshot import Key, Snapshot
from fairlead.yaml_output import to_yaml

_STARTER: Final = f"""apiVersion: {API_VERSION}
kind: {KIND}
metadata:
  name: new
spec:
  filters:
  - name: first
    expression: "true"
    reason: why the node is rejected
"""
NEW: Final = "(a new policy)"
_WITHIN_S: Final = 5.0
_WRITTEN_BY_OTHERS: Final = ("kubectl.kubernetes.io/last-applied-configuration",)


DecisionSource = Callable[[ClusterAccess], Awaitable[ReadDecisions]]
"""Reads the decisions of all replicas, or says why not."""


async def ask_replicas(access: ClusterAccess) -> ReadDecisions:
    """Return the decisions of all replicas, or why they are not read, such as a missing permission with its Role."""
    try:
        async with asyncio.timeout(_WITHIN_S):
            return decisions_of(await read_decisions(await access.client(), ""))
    except (ClusterError, CommandError) as error:
        return ReadDecisions(unread=str(error))
    except TimeoutError:
        return ReadDecisions(unread=f"the replicas of the operator did not answer within {_WITHIN_S:g} s")


@dataclass(slots=True)
class PageReader:
    """Reader of the cluster and the files of the options; each call reads again."""

    options: argparse.Namespace
    decisions: DecisionSource = ask_replicas

    async def read(self) -> PageInput:
        """Read everything. Raises CommandError, ClusterError and SnapshotError."""
        option = PolicyOption("--policies", self.options.policies)
        async with ClusterAccess(self.options) as access:
            cluster = await _gathered(access, option)
            stored: Sequence[Mapping[str, Any]] = ()
            if option.is_live:
                stored = await ObjectClient(await access.client()).all(POLICIES)
                if cluster.is_live:
                    cluster = cluster.publishing(await read_published(await access.client()))
            schedulers = await _schedulers(access, cluster, is_live=cluster.is_live and option.is_live)
            decisions = await self.decisions(access) if cluster.is_live else ReadDecisions(unread=OF_FILES)
        by_name = {str(policy["metadata"]["name"]): policy for policy in stored}
        texts = {name: _text(policy) for name, policy in sorted(by_name.items())}
        if not option.is_live:
            texts = _texts_of_files(option.names)
        return PageInput(
            ExplainedPods(cluster, schedulers),
            by_name,
            {**texts, NEW: _STARTER},
            decisions,
            repeated(self.options),
        )


async def _gathered(access: ClusterAccess, option: PolicyOption) -> SimulatedCluster:
    """Return the cluster; of a namespace only, if pods of all namespaces may not be listed."""
    try:
        return await gather(access, [option], _select)
    except CommandError as error:
        if not isinstance(error.__context__, ForbiddenError) or not objects_are_live(access.options):
            raise
    scope: Key = (access.login.namespace, "")
    return await gather(access, [option], _select, scope=scope)


async def _select(snapshot: Snapshot, _: str, policies: PolicySet) -> list[Any]:
    return pods_of_schedulers(snapshot, policies)


async def _schedulers(access: ClusterAccess, cluster: SimulatedCluster, *, is_live: bool) -> Mapping[str, Scheduling]:
    first = {pod.scheduler: pod for pod in reversed(cluster.pods)}
    if is_live:
        client = await access.client()
        live = cluster.live_policies
        return {name: await scheduling_of(client, pod.raw, name, live) for name, pod in first.items()}
    named = {policy.scheduler_name for policy in cluster.versions[0].policies.policies}
    return {name: scheduling_in_files(pod.raw, name, named) for name, pod in first.items()}


def _text(policy: Mapping[str, Any]) -> str:
    """Return a stored policy as its author would write it."""
    metadata = policy.get("metadata") or {}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _WRITTEN_BY_OTHERS
    }
    kept = {"name": metadata.get("name"), "labels": metadata.get("labels"), "annotations": annotations}
    written = {name: value for name, value in kept.items() if value}
    return to_yaml({"apiVersion": API_VERSION, "kind": KIND, "metadata": written, "spec": policy.get("spec") or {}})


def _texts_of_files(names: Sequence[str]) -> dict[str, str]:
    """Return the policies of files: as the file has it if it holds one, so that comments stay."""
    texts: dict[str, str] = {}
    for file in files(names):
        if file.empty or file.unreadable or file.too_large:
            continue
        checker = Checker(custom=custom_strategies(), errors_only=True)
        checker.check(file.name, file.data)
        for place, policy in checker.policies:
            whole = len(checker.policies) == 1 and not checker.report.ignored
            texts[place.name] = place.source.text if whole else to_yaml(policy)
    return texts
