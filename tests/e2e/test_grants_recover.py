"""With the real scheduler, no node stays closed: without a ledger, by what others wrote in it, by a denied Binding."""

from collections.abc import Iterator
from typing import Any

import pytest

from extender import Stage
from support.process.serving import Serving
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes
from testbed.node_template import equal

MEM, COUNT, LABEL = "example.org/gpu-mem", "example.org/gpu-count", "fairlead.dev/grants"
SHARE: dict[str, Any] = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}
_ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"


def policy(**share: Any) -> dict[str, Any]:
    return {"binding": {"deviceShare": [SHARE | share]}}


def make(stage: Stage, name: str, amount: int, *, on: str = "", **annotations: str) -> None:
    resources = {MEM: str(amount)}
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    spec = {
        "schedulerName": stage.name,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
        **({"nodeName": on} if on else {}),
    }
    stage.api.create(stage.path, {"metadata": {"name": name, "annotations": annotations}, "spec": spec})


def moved(stage: Stage, name: str, card: int, amount: int, node: str) -> None:
    """A pod that gpushare's extender has placed."""
    told = {"IDX": str(card), "POD": str(amount), "ASSIGNED": "true", "ASSUME_TIME": "1700000000000000000"}
    make(stage, name, amount, on=node, **{f"ALIYUN_COM_GPU_MEM_{key}": one for key, one in told.items()})


def ledger_of(stage: Stage, node: str) -> str:
    return f"/api/v1/namespaces/{stage.name}/configmaps/fairlead-grants-{node}"


def entries(stage: Stage, node: str) -> dict[str, str]:
    path = ledger_of(stage, node)
    found: dict[str, str] = (stage.api.get(path).get("data") or {}) if stage.api.exists(path) else {}
    return found


@pytest.mark.parametrize("cards", [2, 4, 8])
def test_a_node_that_another_extender_filled_takes_what_has_room(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, cards: int
) -> None:
    """Cards of 8, of which the first two have 3 and 4 left, and the others nothing."""
    (node,) = kwok_nodes(1, equal(extended={MEM: str(8 * cards), COUNT: str(cards)}))
    for card in range(cards):
        moved(stage, f"moved-{card}", card, {0: 5, 1: 4}.get(card, 8), node)
    serving.put("gpu", **policy(record="Gpushare"))
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    for number, (amount, on) in enumerate([(1, "0"), (4, "1"), (2, "0")]):
        make(stage, f"new-{number}", amount)
        assert stage.placed(f"new-{number}") == node
        assert stage.pod(f"new-{number}")["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == on
        stage.api.patch(
            f"{stage.path}/new-{number}", {"metadata": {"annotations": {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}}}
        )
    make(stage, "more", 1)
    said = stage.refusal("more")
    assert "Insufficient" in said or "no single device has room" in said
    assert serving.metric("fairlead_device_foreign_pods", resource=MEM) == 0
    assert len(entries(stage, node)) == cards + 3


def test_a_node_without_a_ledger_or_its_label_is_judged_by_annotations_until_the_next_bind(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    (node,) = kwok_nodes(1, equal(extended={MEM: "16", COUNT: "2"}))
    serving.put("gpu", **policy(choose="WorstFit"))
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    for name in ("a", "b"):
        make(stage, name, 4)
        assert stage.placed(name) == node
    stage.api.delete(ledger_of(stage, node))
    serving.says("[+] ledgers: 0")
    make(stage, "c", 3)
    assert stage.placed("c") == node
    assert len(entries(stage, node)) == 3
    serving.says("[+] ledgers: 1")
    stage.api.patch(ledger_of(stage, node), {"metadata": {"labels": {LABEL: None}}})
    serving.says("[+] ledgers: 0")
    make(stage, "d", 4)
    assert stage.placed("d") == node
    assert LABEL in stage.api.get(ledger_of(stage, node))["metadata"]["labels"]
    cards = {name: stage.pod(name)["metadata"]["annotations"]["fairlead.dev/devices.gpu"] for name in "abcd"}
    assert cards["a"] != cards["b"]
    assert cards["c"] != cards["d"]
    make(stage, "e", 2)
    assert "no single device has room" in stage.refusal("e") or "Insufficient" in stage.refusal("e")


NEWER, UNREADABLE = ('{"v":2,"pod":"%s","rv":"1"}', '{"v":2}'), ('{"v":1,"pod":"%s"}', "what?")


@pytest.mark.parametrize("text", [*NEWER, *UNREADABLE])
def test_an_entry_that_cannot_be_read_closes_its_node_no_longer_than_its_pod_lives(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, text: str
) -> None:
    """As after an upgrade that is rolled back."""
    (node,) = kwok_nodes(1, equal(extended={MEM: "16", COUNT: "2"}))
    serving.put("gpu", **policy())
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    make(stage, "old", 3)
    assert stage.placed("old") == node
    uid = stage.pod("old")["metadata"]["uid"]
    written = text.replace("%s", f"{stage.name}/old")
    stage.api.patch(ledger_of(stage, node), {"data": {uid: written}})
    wait_for(
        "it to be heard of", lambda: serving.metric("fairlead_ledger_unreadable_entries") == 1 or None, timeout_s=40
    )
    make(stage, "new", 8)
    said = stage.refusal("new")
    assert ("granted by a newer version" if text in NEWER else "no single device has room") in said
    stage.api.delete(f"{stage.path}/old")

    def placed() -> str | None:
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"looked-at": str(len(stage.events("new")))}}})
        return stage.places()["new"] or None

    assert wait_for("it to be placed", placed) == node
    assert entries(stage, node).keys() == {stage.pod("new")["metadata"]["uid"]}


@pytest.fixture
def denied(ground: Cluster, namespace: str) -> Iterator[str]:
    """The name of a pod that an admission policy lets nobody bind."""
    name = "denied"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    policies: dict[str, Object] = {
        "ies": {
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": f"object.metadata.name != '{name}'", "message": "not this one"}],
            },
        },
        "ybindings": {
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here},
        },
    }
    for kind, body in policies.items():
        made = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}, **body}
        ground.api.create(f"{_ADMISSION}{kind}", made)
    yield name
    for kind in policies:
        ground.api.delete(f"{_ADMISSION}{kind}/{namespace}")


def test_a_pod_whose_binding_is_always_denied_keeps_no_node(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, denied: str
) -> None:
    nodes = kwok_nodes(2, equal(extended={MEM: "8", COUNT: "1"}))
    serving.put("gpu", **policy())
    serving.start()
    stage.start(*serving.entries(), podInitialBackoffSeconds=1, podMaxBackoffSeconds=1)

    make(stage, denied, 8)
    wait_for("it to have tried both nodes", lambda: all(entries(stage, one) for one in nodes) or None, timeout_s=60)
    before = serving.metric("fairlead_device_binds_total", result="refused")
    wait_for(
        "it to have tried more often",
        lambda: serving.metric("fairlead_device_binds_total", result="refused") >= before + 4 or None,
        timeout_s=60,
    )
    make(stage, "next", 8)
    assert stage.placed("next") in nodes
    assert "not this one" in stage.refusal(denied, "SchedulerError")
