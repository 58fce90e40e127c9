"""A value of a fact is in no log, status, metric or answer to a probe, whatever a policy does with it."""

import io
import json
import logging
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead import logs
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import StatusInputs, build_status
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.replica_state import encode
from fairlead.webhook.serving.replica_report import ReportInputs, report
from scripted.loop import in_loop
from scripted.steps import answer
from support.process.standalone import Running, World, running

MARK = "hunter2"
LABEL = {"x": MARK, "number": f"7{MARK}"}
CONTAINER = {"name": MARK, "image": f"example.com/{MARK}:{MARK}", "ports": [{"name": MARK, "containerPort": 1}]}
COSTLY = ("cost", "patt", "repl", "twic")
ON_ENGINE = "now.getHours('Europe/Berlin') >= 0"

OF_POD = "pod.metadata.labels['x']"
FACTS = {
    "label": OF_POD,
    "annotation": "pod.metadata.annotations['x']",
    "image": "pod.spec.containers[0].image",
    "namespace": "namespaceObject.metadata.labels['x']",
    "node's-label": "node.metadata.labels['x']",
    "node's-annotation": "node.metadata.annotations['x']",
    "node's-image": "node.status.images[0].names[0]",
    "other-pod": "pods[0].metadata.labels['x']",
    "other-pod's-image": "pods[0].spec.containers[0].image",
    "other-node": "pods[0].metadata.name",
}
RAISING = {
    "key": "{{'a': 1}}[{0}] == 1",
    "key-of-facts": "node.metadata.labels[{0}] == ''",
    "key-of-dyn": "dyn(node.metadata.labels)[{0}] == 1",
    "int": "int({0}) == 1",
    "uint": "uint({0}) == 1u",
    "double": "double({0}) == 1.0",
    "bool": "bool({0})",
    "quantity": "quantity({0}).isGreaterThan(quantity('1'))",
    "time": "timestamp({0}) < now",
    "duration": "duration({0}) < duration('1s')",
    "zone": "now.getHours({0}) == 1",
    "pattern": "'a'.matches({0} + '(')",
    "replacement": "regex.replace({0}, '(.*)', {0} + r'\\9') == ''",
    "base64": "base64.decode({0} + '!') == b''",
    "index": "[1][{0}.size()] == 1",
    "character": "{0}.charAt(1000) == ''",
    "substring": "{0}.substring(1000) == ''",
    "format": "'%d'.format([{0}]) == ''",
    "twice": "{{{0}: 1, {0}: 2}}.size() == 1",
    "data": "data[{0}] == 1.0",
    "types": "dyn({0}) < 1",
    "field": "dyn({0}).{1} == 1",
    "cost": "lists.range({0}.size() * 1000000).size() == 1",
    "optional": "optional.none().orValue({0}) == optional.none().value()",
}


def expressions() -> Iterator[tuple[str, str]]:
    for number, (name, text) in enumerate(RAISING.items()):
        for at, (fact, read) in enumerate(FACTS.items()):
            if fact == "label" or ((number + at) % 7 == 0 and name != "format"):
                yield f"{name}-{fact}".replace("'", ""), text.format(read, "any")


def policies() -> Iterator[dict[str, Any]]:
    """Each expression wherever there is room for one."""
    for number, (name, text) in enumerate(expressions()):
        written = f"({text}) && {ON_ENGINE}" if number % 2 and "pods[" not in text and name[:4] not in COSTLY else text
        passes = {"name": "f", "expression": written, "onError": "Pass"}
        annotation = {"key": f"fairlead.dev/n{number}", "expression": f"string({written})", "onError": "Omit"}
        yield a_policy(
            name,
            data=[{"name": "load", "nodeLabel": {"key": "number"}}],
            variables=[{"name": "v", "expression": written}],
            filters=[passes, {"name": "g", "expression": "variables.v", "onError": "Pass"}],
            scores=[{"name": "s", "expression": f"({written}) ? 1.0 : 0.0"}],
            preemption={"protect": [{"name": "p", "expression": written}]},
            binding={"annotations": [annotation]},
        )
        if not any(one in text for one in ("node.", "node)", "pods[", "data[")):
            match = {"conditions": [{"name": "c", "expression": written}]}
            yield a_policy(f"c-{name}", match=match, filters=[{**passes, "expression": "true"}], failurePolicy="Ignore")


def a_policy(name: str, **spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"u-{name}", "resourceVersion": "1", "labels": LABEL, "annotations": LABEL, **more}


def a_pod(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    spec = {"schedulerName": "fairlead", "containers": [CONTAINER], **spec} | ({"nodeName": node} if node else {})
    return {"metadata": metadata(name, namespace="ml"), "spec": spec, "status": {"phase": MARK}}


def a_node(name: str, **status: Any) -> dict[str, Any]:
    images = [{"names": [f"example.com/{MARK}"], "sizeBytes": 7}]
    taints = [{"key": "x", "value": MARK, "effect": "NoSchedule"}]
    return {"metadata": metadata(name), "spec": {"taints": taints}, "status": {"images": images, **status}}


NEVER = {"requests": {"cpu": MARK}}


@dataclass
class Planted(World):
    """Everything that a rule may read has the mark in it; some of it cannot be read at all."""

    placed: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if "nodeName!=" in request.query.get("fieldSelector", "") and "watch" not in request.query:
            return await answer({"metadata": {"resourceVersion": "1", "continue": ""}, "items": self.placed})(request)
        return await super().serve(request)


def planted() -> Planted:
    return Planted(
        {
            "nodes": [a_node("a"), a_node("b"), a_node("bad", allocatable={"cpu": MARK})],
            "namespaces": [{"metadata": metadata("ml")}],
            "pods": [a_pod("x"), a_pod("odd", priority=MARK)],
        },
        placed=[
            a_pod("placed", "a"),
            a_pod(f"p-{MARK}", "b"),
            a_pod("odd1", "a", containers=[{**CONTAINER, "resources": NEVER}]),
            a_pod("odd2", "a", containers=MARK),
        ],
    )


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    stream, root, own = io.StringIO(), logging.getLogger(), logging.getLogger("fairlead")
    before, levels = [*root.handlers], (root.level, own.level)
    logs.set_up("INFO", "json", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def asked(subject: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"Pod": subject, "Nodes": None, "NodeNames": ["a", "b"], **more}, separators=(",", ":")).encode()


BIND = json.dumps({"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "a"}).encode()


async def told(one: Running) -> str:
    """Whatever people see, but for the log."""
    core = one.core
    core.add_rule_errors()
    known = ReportInputs(
        states=core.policies.states,
        serving=core.reloader.state.policies if core.reloader.state else None,
        rule_errors=core.rule_errors,
        open_circuits=core.reloader.circuit_breaker.open_circuits(0),
    )
    state = report(known)
    found = [encode(state).decode()]
    for name, compiled in core.policies.states.items():
        policy = {"metadata": {"name": name, "uid": compiled.uid, "generation": 1}, "spec": {}}
        about = StatusInputs(policy=policy, states={"one": state}, result=ReconcileResult(), paused=False)
        found.append(json.dumps(build_status(about, datetime(2026, 1, 1, tzinfo=UTC))))
    return "\n".join([*found, *[(await one.probe(path))[1] for path in ("/readyz", "/livez", "/metrics")]])


async def called(one: Running, sent: dict[str, bytes]) -> dict[str, str]:
    connection, found = await one.connect(), dict[str, str]()
    for what, body in sent.items():
        reply = await connection.call(f"/{what.partition(',')[0]}", body)
        found[what] = reply.body.decode()
    return found


@in_loop
async def test_no_value_of_a_fact_is_told(tmp_path: Path, logged: io.StringIO) -> None:
    (tmp_path / "policies").mkdir()
    for policy in policies():
        (tmp_path / "policies" / f"{policy['metadata']['name']}.yaml").write_text(json.dumps(policy))
    async with running(tmp_path, planted()) as one:
        await one.ready()
        await one.until(lambda: len(one.core.policies.states) == len([*policies()]))
        whole, odd = a_pod("x"), a_pod("x", containers=[{**CONTAINER, "resources": NEVER}])
        victims = {"a": {"Pods": [{"UID": "u-placed"}], "NumPDBViolations": 0}}
        brought = {"Nodes": {"metadata": {}, "items": [a_node("a", allocatable={"cpu": MARK})]}, "NodeNames": None}
        untyped = {**deepcopy(whole), "spec": {**whole["spec"], "priority": MARK}}
        said = await called(
            one,
            {
                "filter": asked(whole),
                "prioritize": asked(whole),
                "preempt": json.dumps({"Pod": whole, "NodeNameToMetaVictims": victims}).encode(),
                "bind": BIND,
                "filter, an amount that is none": asked(odd),
                "filter, a node with one": asked(whole, **brought),
                "filter, a type that is none": asked(untyped),
                "prioritize, a type that is none": asked(untyped),
            },
        )
        assert not {what: text for what, text in said.items() if MARK in text and not what.startswith("filter, a node")}
        refused = [str(state) for state in one.core.policies.states.values() if state.reason != "Compiled"]
        assert len(refused) < 8, refused  # of the many, some cost too much on the engine: base64 and dyn over pods
        seen = await told(one)
        assert seen.count("last_error") > 100
        assert MARK not in seen
    assert "rule.error" in logged.getvalue()
    assert "reflector.unreadable" in logged.getvalue()
    assert "call.failed" in logged.getvalue()
    assert MARK not in logged.getvalue()


@in_loop
async def test_nor_where_fairlead_is_at_fault(
    tmp_path: Path, logged: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of rules: whatever is raised there, its words are not ours."""

    def fails(*_: Any, **__: Any) -> Any:
        try:
            raise dict[str, Exception]()[MARK]
        except KeyError as error:
            raise ValueError(f"no {MARK}") from error

    policy = next(policies())
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "p.yaml").write_text(json.dumps(policy))
    monkeypatch.setattr(Evaluator, "filter", fails)
    monkeypatch.setattr(Evaluator, "precompute", fails)
    async with running(tmp_path, planted()) as one:
        await one.ready()
        assert MARK not in (await called(one, {"filter": asked(a_pod("x"))}))["filter"]
        await one.until(lambda: "precompute.fault" in logged.getvalue())
        assert MARK not in await told(one)
    assert "request.fault" in logged.getvalue()
    assert "ValueError; its message is left out" in logged.getvalue()
    faults = [line for line in logged.getvalue().splitlines() if "exception" in line]
    assert faults
    assert not [line for line in faults if MARK in line]
