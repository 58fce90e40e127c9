"""Each write of a scheduler's whole life fails once, in every way that there is: it all ends in the same state."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from support.faults import virtual
from support.faults.api import Object
from support.faults.cluster import NAMESPACE, FakeCluster
from support.faults.faults import FAULTS, Fault, Wire
from support.faults.leader import around, at_work, until
from support.faults.life import POLICY, STAGES, Stage, picture

BEFORE_S, AFTER_S, QUIET_S = 15.0, 60.0, 320.0
ADMISSION = ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "", f"fairlead.{NAMESPACE}")
NOTHING_TO_UNINSTALL = [
    ("admissionregistration.k8s.io", plural, "", f"fairlead.{NAMESPACE}.nothing-to-uninstall")
    for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies")
]
MADE = (
    "configmaps", "serviceaccounts", "deployments", "leases", "networkpolicies", "poddisruptionbudgets",
    "clusterrolebindings", "rolebindings", "roles",
)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What came of a stage."""

    cluster: FakeCluster
    writes: list[str]
    picture: Mapping[str, Object]
    said: frozenset[str]
    """All that was ever said of the policy."""


def empty() -> FakeCluster:
    """Where the chart has been, and nobody has applied anything."""
    cluster = FakeCluster()
    hook = {"name": "policies.fairlead.dev", "clientConfig": {}}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    cluster.api.put(ADMISSION, {**kind, "webhooks": [hook]})
    for key in NOTHING_TO_UNINSTALL:
        cluster.api.put(key, {})
    return cluster


async def live(cluster: FakeCluster, stage: Stage, *, fault: Fault | None, at: int, every: bool, last_s: float) -> Ran:
    wire = Wire(cluster.api, fault, at, every)
    async with at_work(cluster, wire):
        await asyncio.sleep(BEFORE_S)
        stage.act(cluster)
        await until("its end", lambda: stage.done(cluster))
        await asyncio.sleep(AFTER_S)
        shown, writes = picture(cluster), [*wire.writes]
        await asyncio.sleep(last_s)
        assert wire.writes == writes, "it goes on writing"
    cluster.epoch = cluster.now()
    said = {
        condition["message"]
        for one in cluster.api.history
        if one.key == POLICY
        for condition in one.obj.get("status", {}).get("conditions", ())
    }
    return Ran(cluster, writes, shown, frozenset(said))


def ran(
    begins: FakeCluster,
    stage: Stage,
    *,
    fault: Fault | None = None,
    at: int = -1,
    every: bool = False,
    last_s: float = 0,
) -> Ran:
    random.seed(1)
    cluster = begins.copy()
    with around(cluster):
        return virtual.run(live(cluster, stage, fault=fault, at=at, every=every, last_s=last_s))


@cache
def without_faults() -> Mapping[str, tuple[FakeCluster, Ran]]:
    """Each stage with how it began, and what it came to."""
    found, cluster = {}, empty()
    for name, stage in STAGES.items():
        found[name] = cluster, (done := ran(cluster, stage, last_s=QUIET_S))
        cluster = done.cluster
    return found


SAID = (403, 507)
"""Of a conflict nothing is said the first time, and when the API server is away nothing can be."""
REFUSED = [FAULTS[one] for one in ("forbidden", "disk-full", "conflict", "lost-before")]
"""Nothing is carried out: they take turns."""
ONCE = {"refused": REFUSED, **{one: [FAULTS[one]] for one in ("lost-after", "dead-before", "dead-after")}}


@pytest.mark.parametrize("how", ONCE)
@pytest.mark.parametrize("stage", STAGES)
def test_whichever_write_fails_it_ends_in_the_same_state_and_says_what_failed(stage: str, how: str) -> None:
    begins, good = without_faults()[stage]
    for at, what in enumerate(good.writes):
        faults = [one for one in ONCE[how] if one.status in SAID] if kind_of(what) in MADE else []
        fault = (faults or ONCE[how])[at % len(faults or ONCE[how])]
        done = ran(begins, STAGES[stage], fault=fault, at=at)
        assert done.picture == good.picture, f"{what}, the write number {at}"
        assert says(done, what, fault) or not any("/status" in one for one in good.writes[:at])  # to say it in


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("stage", STAGES)
def test_each_write_fails_once(stage: str, how: str) -> None:
    begins, good = without_faults()[stage]
    assert ran(begins, STAGES[stage], fault=FAULTS[how], every=True).picture == good.picture


def kind_of(what: str) -> str:
    return what.split()[1]


def says(done: Ran, what: str, fault: Fault) -> bool:
    """Whether the status has said what failed, where something of a scheduler could not be written."""
    verb, kind, name = what.split()
    if fault.status not in SAID or kind not in MADE or POLICY not in done.cluster.api.objects:
        return True
    where = name if verb != "create" else ""
    return any(f"{where}: {fault.status} {fault.reason}: on purpose" in said for said in done.said)


def test_all_stages_write_and_then_are_quiet() -> None:
    counts = {stage: len(done.writes) for stage, (_, done) in without_faults().items()}
    assert all(counts.values()), counts
    assert sum(counts.values()) > 60, counts


@pytest.mark.parametrize("how", ["forbidden", "lost-before", "lost-after", "dead-before"])
def test_from_the_first_leader_on_an_uninstall_runs_its_jobs(how: str) -> None:
    done = ran(empty(), STAGES["the first policy"], fault=FAULTS[how], at=0)
    assert done.writes[0] == "delete mutatingadmissionpolicybindings fairlead.fairlead-system.nothing-to-uninstall"
    assert [key for key in NOTHING_TO_UNINSTALL if key in done.cluster.api.objects] == []
