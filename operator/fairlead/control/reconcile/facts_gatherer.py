"""Gathering of the cluster facts for rendering, after the certificates are up to date."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from fairlead.control.certificates.leader_certificates import LeaderCertificates
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.kube.http.client import Client
from fairlead.kube.resources import VERSION
from fairlead.render.cluster_facts import ClusterFacts

_VERSIONS_FOR: Final = timedelta(minutes=10)
"""How long a version counts: while a control plane is upgraded, API servers of several versions answer."""


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815  as the API has it


_version: Final = msgspec.json.Decoder(_Version).decode


@dataclass(slots=True, eq=False, kw_only=True)
class FactsGatherer:
    """Gatherer of the facts while this replica leads."""

    client: Client
    namespace: str
    url: str
    """URL at which schedulers call the operator."""
    certificates: LeaderCertificates
    replicas: ReplicaClient
    nodes: Callable[[], int | None]
    pod_groups: Callable[[], bool]
    """Returns whether Kubernetes' own groups are served."""
    now: Callable[[], datetime]
    _versions: dict[str, datetime] = field(default_factory=dict)

    async def facts(self, scheduler: str, started_with: Mapping[str, str], paused: Collection[str]) -> ClusterFacts:
        """Return the facts for one scheduler, once its certificate is issued. Raises InvalidObjectError.

        `started_with` has all schedulers with the authorities that their pods were started with; `paused` names those
        that are not to start.
        """
        ca_bundle = await self.certificates.ensure(scheduler, started_with, paused, self.replicas.states)
        now = self.now()
        self._versions[(await self.client.get(VERSION, _version)).gitVersion] = now
        return ClusterFacts(
            namespace=self.namespace,
            url=self.url,
            ca_bundle=ca_bundle,
            server_versions=tuple(sorted(one for one, seen in self._versions.items() if now - seen < _VERSIONS_FOR)),
            pod_groups=self.pod_groups(),
            nodes=self.nodes(),
        )
