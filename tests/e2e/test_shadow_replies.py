"""Rules in shadow beside a real scheduler: no reply changes, and counts are what enforcing them would change."""

import http.client
import json
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from extender import Answer, Recorder, Stage
from extender.replies import Reply
from fairlead.cli.main import main
from support.kube.crd import POLICIES, let_all_go, policies_served
from support.process.operating import Operating
from support.process.serving import MakeServing, Serving
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster, MakeNodes, StartScheduler
from testbed.layout import free_ports
from testbed.node_template import equal

_POOL: Final = "node.metadata.labels[?'pool'].orValue('') == pod.metadata.labels[?'pool'].orValue('a')"
_POINTS: Final = "double(node.metadata.labels[?'points'].orValue('0'))"
_NODES: Final = int(os.environ.get("FAIRLEAD_SHADOW_NODES", "30"))
_PODS: Final = int(os.environ.get("FAIRLEAD_SHADOW_PODS", "24"))
"""By default as few as keep the test short."""
_SUMS: Final = ("calls", "skipped", "unknown", "pods", "restricted", "unschedulable", "reordered")


def _rule(name: str, expression: str, **fields: Any) -> Object:
    return {"name": name, "expression": expression, **fields}


def _asks(one: Serving) -> Callable[[str, bytes], Answer]:
    """Return a function that passes a request of the scheduler on."""
    context = ssl.create_default_context(cafile=f"{one.certs}/ca.crt")
    context.load_cert_chain(f"{one.certs}/scheduler.crt", f"{one.certs}/scheduler.key")

    def ask(path: str, body: bytes) -> Answer:
        connection = http.client.HTTPSConnection("127.0.0.1", one.ports[0], context=context, timeout=30)
        with closing(connection):
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return Answer(answer.read(), answer.status)

    return ask


def test_replies_are_byte_for_byte_those_without_rules_in_shadow(
    stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes, tmp_path: Path
) -> None:
    for number, node in enumerate(kwok_nodes(6, equal(cpu="2", pods=10))):
        labels = {"pool": "ab"[number % 2], "points": str(10 * number)}
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})
    plain, shadowed = make_serving(), make_serving()
    filters, scores = [_rule("pool", _POOL)], [_rule("points", _POINTS)]
    protect = [_rule("kept", "'keep' in victim.metadata.labels")]
    for one in (plain, shadowed):
        rejects = [_rule("last", "node.metadata.labels[?'points'].orValue('') != '50'")]
        one.put("other", failurePolicy="Ignore", filters=rejects)
    plain.put("decides", filters=filters, scores=scores, preemption={"protect": protect})
    shadowed.put(
        "decides",
        filters=[_rule("first", "false", mode="Shadow"), *filters, _rule("raises", "1 / 0 == 1", mode="Shadow")],
        scores=[_rule("against", f"-({_POINTS})", mode="Shadow", weight=9), *scores],
        preemption={"protect": [_rule("all", "true", mode="Shadow"), *protect]},
    )
    shadowed.put(
        "shadow",
        mode="Shadow",
        priority=9,
        match={"conditions": [_rule("undecided", "pod.metadata.labels['none'] == ''")]},
        filters=[_rule("labels", "pod.metadata.labels['name'] == node.metadata.name")],
        scores=[_rule("own", "double(size(pod.metadata.name))")],
    )
    for one in (plain, shadowed):
        one.start()
    ask_plain, ask_shadowed = _asks(plain), _asks(shadowed)
    differing = list[str]()

    def passed_on(path: str) -> Reply:
        def reply(request: Object) -> Answer:
            body = json.dumps(request).encode()
            got, want = ask_shadowed(path, body), ask_plain(path, body)
            if (got.status, got.body) != (want.status, want.body):
                differing.append(f"{path}: {got} in place of {want}")
            return got

        return reply

    verbs = ("filter", "prioritize", "preempt")
    with Recorder(tmp_path / "keys") as recorder:
        for verb in verbs:
            recorder.replies[f"gate/{verb}"] = passed_on(f"/{verb}")
            recorder.replies[f"ignored/{verb}"] = passed_on(f"/ignore/{verb}")
        stage.start(recorder.entry("gate", *verbs), recorder.entry("ignored", "filter", "preempt", ignorable=True))
        for number in range(12):
            stage.make_pod(
                f"p{number}", cpu="900m", labels={"pool": "ab"[number % 2], **({"keep": ""} if number < 4 else {})}
            )
        wait_for("most pods to be placed", lambda: sum(map(bool, stage.places().values())) >= 8)
        stage.make_pod("urgent", cpu="1800m", urgent=True, labels={"pool": "a"})
        stage.placed("urgent")
        assert recorder.failures == []
        assert {call.path for call in recorder.calls} >= {
            "gate/filter",
            "gate/prioritize",
            "gate/preempt",
            "ignored/filter",
        }
    assert differing == []
    for policy in ("decides", "shadow"):
        wait_for(
            f"{policy} to be compared",
            lambda policy=policy: shadowed.metric("fairlead_shadow_calls_total", policy=policy, result="compared") > 0,  # type: ignore[misc]
        )


@pytest.fixture
def replicas(ground: Cluster, namespace: str, tmp_path: Path) -> Iterator[list[Operating]]:
    """Two replicas, of which one leads."""
    made = []
    with policies_served(ground.api):
        for number, name in enumerate(("first", "second")):
            folder = tmp_path / name
            folder.mkdir()
            one = Operating(ground, namespace, folder, host=f"127.0.0.{2 + number}")
            one.settings = f"schedulers: [{{name: {namespace}, management: ConfigOnly}}]"
            made.append(one)
        made[1].ports = made[0].ports  # each has an address of its own
        made[0].arguments = [f"--decisions=127.0.0.1:{free_ports(1)[0]}"]
        try:
            for one in made:
                one.start()
                one.show_pod()
            yield made
        finally:
            for one in made:
                one.kill()
            let_all_go(ground.api)


def _decisions(one: Operating) -> list[Object]:
    """Return the decisions that a replica keeps."""
    port = int(one.arguments[0].rpartition(":")[2])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/decisions")
        return [json.loads(line) for line in connection.getresponse().read().splitlines()[1:]]


def _shadow(cluster: Cluster, policy: str) -> Object:
    found: Object = cluster.api.get(f"{POLICIES}/{policy}").get("status", {}).get("shadow") or {}
    return found


def _sums(cluster: Cluster, policy: str) -> dict[str, int]:
    found = _shadow(cluster, policy)
    return {name: int(found.get(name, 0)) for name in _SUMS}


def test_counts_are_what_diff_says_and_survive_the_leader_and_all_replicas(
    replicas: list[Operating],
    ground: Cluster,
    namespace: str,
    kwok_nodes: MakeNodes,
    scheduler: StartScheduler,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = replicas
    for number, node in enumerate(kwok_nodes(_NODES, equal(cpu="64", pods=110))):
        ground.api.patch(
            f"/api/v1/nodes/{node}",
            {"metadata": {"labels": {"pool": "ab"[number % 2], "tier": "x" if number % 3 else "y"}}},
        )
    wants = "pod.metadata.labels[?'tier'].orValue('') in ['', node.metadata.labels[?'tier'].orValue('')]"
    spec = {"filters": [_rule("pool", _POOL), _rule("tier", wants, mode="Shadow")]}
    for one in replicas:
        one.put("tiers", **spec)
    scheduler(
        {"profiles": [{"schedulerName": namespace}], "extenders": first.entries(), "percentageOfNodesToScore": 100}
    )
    api, path = ground.api, f"/api/v1/namespaces/{namespace}/pods"
    tiers = ("", "x", "none")

    def make(number: int) -> Object:
        labels = {"pool": "ab"[number % 2], **({"tier": tiers[number % 3]} if tiers[number % 3] else {})}
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
        return {
            "metadata": {"name": f"p{number}", "labels": labels},
            "spec": {"schedulerName": namespace, "containers": [container]},
        }

    def are_placed() -> bool:
        return all(one["spec"].get("nodeName") for one in api.items(path, labelSelector="pool"))

    api.create_all(path, [make(number) for number in range(_PODS)])
    wait_for("all pods to be placed", are_placed)
    third = _PODS // 3
    want = {"pods": _PODS, "restricted": 2 * third, "unschedulable": third, "reordered": 0, "skipped": 0}

    def is_counted() -> bool:
        found = _sums(ground, "tiers")
        return {name: found[name] for name in want} == want

    wait_for("the counts", is_counted, timeout_s=120)
    edited = tmp_path / "enforced.yaml"
    whole = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "tiers"}}
    rules = [{key: value for key, value in rule.items() if key != "mode"} for rule in spec["filters"]]
    edited.write_text(json.dumps({**whole, "spec": {"schedulerName": namespace, "filters": rules}}))
    kubeconfig = str(ground.kubeconfig)
    capsys.readouterr()
    main(["diff", "--from", "live", "--to", str(edited), "--kubeconfig", kubeconfig, "-o", "json"])
    moves = json.loads(capsys.readouterr().out)["pods"]
    assert sum(bool(one["lost"]) for one in moves) == want["restricted"]
    assert sum(bool(one["lost"] and not one["preferred"]["to"]) for one in moves) == want["unschedulable"]
    assert main(["shadow", "tiers", "--kubeconfig", kubeconfig]) == 1
    effects = [effect for one in _decisions(first) for effect in one["effects"]]
    assert {"policy": "tiers", "effects": ["restricted", "unschedulable"], "rules": ["tier"]} in effects
    before = _shadow(ground, "tiers")

    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/fairlead"
    leader = first if api.get(lease)["spec"]["holderIdentity"].startswith(first.name) else second
    leader.kill()
    leader.start()
    for one in replicas:  # and then all of them
        one.kill()
    for one in replicas:
        one.start()
    api.create_all(path, [make(number) for number in range(_PODS, 2 * _PODS)])
    wait_for("all pods to be placed", are_placed)
    want |= {"pods": 2 * _PODS, "restricted": 4 * third, "unschedulable": 2 * third}
    wait_for("the counts of all processes", is_counted, timeout_s=180)
    assert _shadow(ground, "tiers")["since"] == before["since"]
