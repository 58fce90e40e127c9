"""A leader in virtual time, over a wire that may fail; one that dies is followed by another."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest.mock import patch

from generate.crds import installed_policy

from fairlead.control.certificates.leader_certificates import OwnAuthority
from fairlead.control.loop.controller import LeaderController, leader_controller
from fairlead.control.loop.kopf_runtime import CHILDREN
from fairlead.control.loop.leader_context import LeaderContext, OperatorService
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.metrics import Metrics
from fairlead.pki import authority as authorities
from fairlead.pki.identities import AUTHORITY_SECRET
from fairlead.pki.issuing import Pair
from fairlead.render.object_names import SCHEDULER_LABEL
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.plan import Plan, plan
from fairlead.render.scheduler_settings import SchedulerSettings
from fairlead.render.shipped_templates import templates
from fairlead.render.templates import TemplateEngine
from support.faults.api import Happened
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import Wire, telling

MODEL, SETTINGS = installed_policy(), OperatorSettings()
ENGINE = TemplateEngine(templates())
"""It takes a while to read them, and there are many leaders."""
_KINDS = {(group, plural) for group, _, plural in CHILDREN}
_PAIRS: list[Pair] = []
_PLANS: dict[tuple[str, str], Plan] = {}
_AFTER_S = 20.0


def _operator(cluster: FakeCluster, wire: Wire) -> LeaderContext:
    return LeaderContext(
        client=wire.client,
        model=MODEL,
        settings=lambda: SETTINGS,
        service=OperatorService(
            namespace=NAMESPACE,
            name="fairlead",
            port=8443,
            admission_port=9443,
            selector="none=none",
            url="https://fairlead:8443",
        ),
        instance="test",
        authority=OwnAuthority(
            read=lambda: cluster.authority,
            is_rotation_requested=lambda: cluster.material is not None and cluster.material.requested,
            context=ssl.create_default_context,
        ),
        nodes=lambda: 1,
        is_leader=lambda: True,
        warnings=lambda *_: [],
        metrics=LeaderMetrics(Metrics()),
    )


def _planned(engine: TemplateEngine, settings: SchedulerSettings, *others: Any) -> Plan:
    """Planned state, kept: it is a function of its arguments, and takes longest of a pass."""
    asked = settings.model_dump_json(), repr(others)
    if asked not in _PLANS:
        _PLANS[asked] = plan(engine, settings, *others)
    return _PLANS[asked]


@contextmanager
def around(cluster: FakeCluster) -> Iterator[None]:
    """Answers to a leader from others than the API server, with the same authorities and chance each time."""

    async def ask(replicas: ReplicaClient) -> object:
        await asyncio.sleep(0)
        replicas.states = cluster.state()
        return replicas.states

    async def answered(*_: object) -> str:
        await asyncio.sleep(0)
        return ""

    def new(_: object) -> Pair:
        there = ("", "secrets", NAMESPACE, AUTHORITY_SECRET) in cluster.api.objects
        return _PAIRS[there]

    if not _PAIRS:
        _PAIRS.extend(authorities.new(cluster.now()) for _ in range(2))
    with (
        patch.object(ReplicaClient, "poll", ask),
        patch("fairlead.control.reconcile.reconciler.probe_extender_urls", answered),
        patch("fairlead.control.decide.decide.plan", _planned),
        patch("fairlead.control.loop.controller.TemplateEngine", lambda _: ENGINE),
        patch("fairlead.control.decide.retention.SCHEDULER_S", 60.0),
        patch("fairlead.control.loop.controller.now", cluster.now),
        patch("fairlead.pki.authority.new", new),
    ):
        yield


@asynccontextmanager
async def at_work(cluster: FakeCluster, wire: Wire) -> AsyncIterator[None]:
    """Leaders, one after the other."""
    end, task = cluster.begin(), asyncio.ensure_future(_lead(cluster, wire))
    try:
        yield
    finally:
        end()
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _lead(cluster: FakeCluster, wire: Wire) -> None:
    while True:
        one = asyncio.ensure_future(_once(cluster, wire))
        died = asyncio.ensure_future(wire.died.wait())
        try:
            await asyncio.wait((one, died), return_when=asyncio.FIRST_COMPLETED)
            if one.done():
                one.result()
        finally:
            one.cancel()
            died.cancel()
            await asyncio.gather(one, died, return_exceptions=True)
        wire.died.clear()
        await asyncio.sleep(_AFTER_S)


async def _once(cluster: FakeCluster, wire: Wire) -> None:
    async with leader_controller(_operator(cluster, wire)) as controller:
        end = telling(cluster.api, lambda one: tell(controller, one))
        for key, obj in [*cluster.api.objects.items()]:
            tell(controller, Happened(0, "", key, obj))
        try:
            await controller.run()
        finally:
            end()


def tell(controller: LeaderController, one: Happened) -> None:
    """As kopf does."""
    if one.key[1] == "schedulerextenderpolicies":
        controller.on_policy_event(one.type or None, one.obj)
    labels = one.obj["metadata"].get("labels", {})
    if one.key[:2] in _KINDS and one.key[2] == NAMESPACE and SCHEDULER_LABEL in labels:
        controller.enqueue(labels[SCHEDULER_LABEL])


async def until(what: str, holds: Callable[[], bool], seconds: float = 3000) -> None:
    """Let time pass."""
    time = asyncio.get_running_loop().time
    end = time() + seconds
    while not holds():
        assert time() < end, f"it never came to that: {what}"
        await asyncio.sleep(0.5)
