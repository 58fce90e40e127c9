"""A reconcile, where there is nothing."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from generate.crds import installed_policy

from fairlead.control.decide.desired import PolicyIndex
from fairlead.control.decide.drift import DriftLog
from fairlead.control.reconcile.apply import Applier
from fairlead.control.reconcile.binding_subjects import SchedulerBindings
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulers
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.reconciler import Reconciler
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.scheduler_bindings import KUBE_SYSTEM
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine

if TYPE_CHECKING:
    from fairlead.control.reconcile.facts_gatherer import FactsGatherer
    from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
    from fairlead.control.reconcile.object_client import ObjectClient
    from fairlead.control.reconcile.replicas import ReplicaClient
    from fairlead.kube.watch.secrets import Secrets


class _Nothing:
    """An API server without objects, to which nothing may be written."""

    async def get(self, *_: Any) -> None:
        return None

    async def any(self, *_: Any, **__: str) -> bool:
        return False

    async def all(self, *_: Any, **__: str) -> list[Any]:
        return []

    async def list_labelled(self, *_: Any) -> list[Any]:
        return []


class _Nobody:
    """No other scheduler, and no facts: a certificate would be made, and its coming and going be told without end."""

    states: Mapping[str, Any] = MappingProxyType({})

    async def conflict(self, *_: Any, **__: bool) -> str:
        return ""


def test_of_a_scheduler_that_has_gone_nothing_is_asked() -> None:
    objects = cast("ObjectClient", _Nothing())
    registry = SchedulerRegistry(
        policy_index=PolicyIndex(installed_policy()),
        managed=ManagedSchedulers(objects, "n"),
        settings=OperatorSettings,
        now=lambda: datetime.now(UTC),
    )
    drifts = DriftLog()
    bindings = SchedulerBindings(objects, NamespaceOwner(objects, "n", lambda: KUBE_SYSTEM), drifts)
    reconciler = Reconciler(
        registry=registry,
        objects=objects,
        secrets=cast("Secrets", _Nobody()),
        replicas=cast("ReplicaClient", _Nobody()),
        foreign=cast("ForeignSchedulers", _Nobody()),
        facts=cast("FactsGatherer", _Nobody()),
        applier=Applier(objects, bindings, drifts),
        drifts=drifts,
        namespace="n",
        engine=TemplateEngine(templates()),
        now=lambda: datetime.now(UTC),
    )
    assert asyncio.run(reconciler.reconcile("s")) == ReconcileResult(gone=True)
