"""Context that a replica hands to its controller when it leads."""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.certificates.leader_certificates import OwnAuthority
from fairlead.control.decide.desired import Obj
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.status.lint_cache import Warnings
from fairlead.kube.http.client import Client
from fairlead.render.operator_settings import OperatorSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorService:
    """Service of the operator, with the pods behind it."""

    namespace: str
    name: str
    port: int
    """Port of the webhook, in the Service and in the pods."""
    admission_port: int
    """Port of the admission check."""
    publishes_authority: bool = False
    """True if the leader also writes its authority into the chart's ConfigMap, for scrapers of metrics."""
    selector: str
    """Label selector of the operator's pods."""
    url: str
    """URL at which schedulers call the operator."""

    @property
    def host(self) -> str:
        """Host name of the replicas' certificates."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderContext:
    """Context that a replica hands to its controller when it leads."""

    client: Callable[[], Client]
    """Makes a new client for each time that the replica leads."""
    model: type[SchedulerExtenderPolicy]
    settings: Callable[[], OperatorSettings]
    service: OperatorService
    instance: str
    """Name of this replica."""
    authority: OwnAuthority
    nodes: Callable[[], int | None]
    """Number of nodes; None while they are being listed."""
    is_leader: Callable[[], bool]
    warnings: Callable[[Obj, Callable[[], None]], Warnings | None]
    metrics: LeaderMetrics
