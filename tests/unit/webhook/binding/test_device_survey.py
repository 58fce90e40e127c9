"""Metrics of devices: what a survey finds, and what is counted."""

import json
from typing import Any

import pytest

from fairlead.grants.ledger import Ledger, decode_ledger
from fairlead.metrics import Metrics
from fairlead.mirror import decode
from fairlead.mirror.device_report import node_report
from fairlead.mirror.mirror import Mirror
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.binding import device_survey
from fairlead.webhook.binding.api_calls import Conflicting, Failed
from fairlead.webhook.binding.device_survey import DeviceSurvey, GrantCounters
from fairlead.webhook.binding.mirror_views import MirrorViews
from policies.good import device_share
from scripted.loop import in_loop
from support.policy import policy
from support.simulation.snapshot import node, pod, written

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
SHARES = policy(binding={"deviceShare": [device_share()]})


def entry(name: str, device: str, amount: int) -> str:
    return json.dumps({"v": 1, "pod": f"ml/{name}", "rv": "5", "by": "p", "g": {"gpu": [{"id": device, MEM: amount}]}})


def ledger(**data: str) -> Ledger:
    metadata = {"name": "fairlead-grants-n1", "uid": "l", "resourceVersion": "9"}
    return decode_ledger({"metadata": metadata, "data": {uid.replace("_", "-"): one for uid, one in data.items()}})


def survey(*, shares: bool = True, capacity: str = "16") -> tuple[DeviceSurvey, Metrics]:
    mirror = Mirror(lambda: 0, {"fairlead"})
    policies = [SHARES] if shares else []
    views = MirrorViews(mirror, lambda: policies)
    there: Any = node("n1", room={MEM: "16", COUNT: "2"})
    there["status"]["capacity"] = there["status"]["allocatable"] | {MEM: capacity}
    mirror.node_sink.put(decode.node(written(there)))
    placed = decode.PlacedDecoder(SHARES.pod_annotations)
    for name, amount in (("a", 5), ("stray", 1)):
        mirror.placed_sink.put(placed(written(pod(name, on="n1", asks={MEM: str(amount)}))))
    found = ledger(u_a=entry("a", "0", 5), broken="{}")
    views.ledgers["n1"] = found
    mirror.devices.put_ledger("n1", found.all.items())
    metrics = Metrics()
    made = DeviceSurvey(mirror, views, lambda: policies)
    made.register(metrics)
    return made, metrics


def lines(metrics: Metrics) -> set[str]:
    return {line for line in metrics.exposition().decode().splitlines() if not line.startswith("#")}


@in_loop
async def test_a_survey_tells_what_is_granted_and_what_is_wrong() -> None:
    made, metrics = survey()
    assert lines(metrics) == set()
    await made.take()
    of = f'{{resource="{MEM}"}}'
    assert lines(metrics) == {
        f"fairlead_device_capacity{of} 16.0",
        f"fairlead_device_granted{of} 5.0",
        f"fairlead_device_free{of} 9.0",  # the next bind looks for the pod of the entry that cannot be read
        f"fairlead_device_largest_free{of} 7.0",
        f"fairlead_device_foreign_pods{of} 1.0",
        "fairlead_device_differing_annotations 1.0",  # the pod has none
        "fairlead_ledger_unreadable_entries 1.0",
    }


@in_loop
async def test_a_survey_reads_a_node_with_an_endless_capacity(caplog: pytest.LogCaptureFixture) -> None:
    """Quantities in a node's status have no upper bound; 1e309 is infinite as a float."""
    made, metrics = survey(capacity="1e309")
    await made.take()
    assert "fairlead_device_differing_annotations 1.0" in lines(metrics)
    assert caplog.records == []


@in_loop
async def test_what_is_wrong_with_a_node_does_not_end_a_survey(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = survey()

    def broken(*_: object) -> None:
        raise RuntimeError("n1 is broken")

    monkeypatch.setattr(device_survey, "node_report", broken)
    await made.take()
    assert [(one.message, one.nodes) for one in caplog.records] == [("devices.fault", ["n1"])]  # type: ignore[attr-defined]


@in_loop
async def test_only_nodes_that_changed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, metrics = survey()
    looked_at: list[str] = []

    def counted(view: NodeView, *rest: Any) -> Any:
        looked_at.append(view.name)
        return node_report(view, *rest)

    monkeypatch.setattr(device_survey, "node_report", counted)
    await made.take()
    await made.take()
    assert looked_at == ["n1"]
    made._mirror.placed_sink.remove(("ml", "stray"))
    await made.take()
    assert looked_at == ["n1", "n1"]
    assert f'fairlead_device_foreign_pods{{resource="{MEM}"}} 0.0' in lines(metrics)


@in_loop
async def test_a_page_tells_what_the_survey_found_or_what_one_node_has_now() -> None:
    made, _ = survey()
    assert made.page("") == {"nodes": [], "totals": []}
    await made.take()
    every, one = made.page(""), made.page("n1")
    assert every is not None
    assert one is not None
    (total,) = every["totals"]
    assert (total["granted"], total["grantedPercent"]) == (5, 31.2)
    assert [node["node"] for node in every["nodes"]] == ["n1"]
    assert [(row["pod"], row["device"]) for row in one["nodes"][0]["pods"]] == [("ml/a", "0")]
    assert made.page("unknown") is None


@in_loop
async def test_without_shares_there_is_nothing_to_survey() -> None:
    made, metrics = survey(shares=False)
    await made.take()
    assert lines(metrics) == set()


def test_binds_and_writes_are_counted() -> None:
    metrics = Metrics()
    counters = GrantCounters()
    counters.register(metrics)
    for granted in (True, True, False):
        counters.count_bind(granted)
    for outcome in (ledger(), Conflicting(), Failed("no")):
        counters.wrote(outcome)
    assert lines(metrics) == {
        'fairlead_device_binds_total{result="granted"} 2.0',
        'fairlead_device_binds_total{result="refused"} 1.0',
        "fairlead_ledger_writes_total 1.0",
        "fairlead_ledger_conflicts_total 1.0",
    }
