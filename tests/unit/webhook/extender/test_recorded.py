"""The recorded bytes of all versions: what is decoded is what is written there, in whatever case the keys are."""

import json
from typing import Any

import pytest

from extender import wire
from fairlead.cel.values.structs import from_json
from fairlead.webhook.extender import requests
from support.policy import node, policy
from support.webhook import Asking, go
from support.webhook.forms import forms
from testbed.versions import KUBERNETES

ASKED = ["filter-names", "filter-nodes", "filter-nominated-names", "filter-nominated-nodes"]
ASKED += ["prioritize-names", "prioritize-nodes"]
PREEMPTED = ["preempt-names", "preempt-nodes"]
every_version = pytest.mark.parametrize("version", KUBERNETES)
KNOWN = [node(name) for name in ("n1", "n2", "n3")]


@every_version
@pytest.mark.parametrize("sample", ASKED)
def test_what_filter_and_prioritize_are_asked(version: str, sample: str) -> None:
    request = json.loads(wire.read(version, sample))
    for sent in forms(wire.read(version, sample)):
        asked = requests.decode_filter_args(sent)
        assert asked.pod == from_json("Pod", request["Pod"])
        if request["NodeNames"] is None:
            assert asked.names is None
            assert [json.loads(bytes(one)) for one in asked.items or []] == request["Nodes"]["items"]
        else:
            assert asked.nodes is None
            assert requests.decode_names(asked.names or b"") == request["NodeNames"]


@every_version
@pytest.mark.parametrize("sample", PREEMPTED)
def test_what_preempt_is_asked(version: str, sample: str) -> None:
    request = json.loads(wire.read(version, sample))
    want = {
        name: ([pod["UID"] if "UID" in pod else pod["metadata"]["uid"] for pod in each["Pods"]], 0)
        for name, each in (request["NodeNameToMetaVictims"] or request["NodeNameToVictims"]).items()
    }
    for sent in forms(wire.read(version, sample)):
        asked = requests.decode_preempt_args(sent)
        assert asked.pod == from_json("Pod", request["Pod"])
        seen = asked.victims
        assert {name: ([pod.UID for pod in each.Pods], each.NumPDBViolations) for name, each in seen.items()} == want


@every_version
def test_what_bind_is_asked(version: str) -> None:
    request = json.loads(wire.read(version, "bind"))
    for sent in forms(wire.read(version, "bind")):
        asked = requests.decode_bind_args(sent)
        assert {
            "PodName": asked.name,
            "PodNamespace": asked.namespace,
            "PodUID": asked.uid,
            "Node": asked.node,
        } == request


@every_version
@pytest.mark.parametrize("sample", [*ASKED, *PREEMPTED])
def test_the_replies_are_what_the_scheduler_reads(version: str, sample: str) -> None:
    """No policy, one that refuses n1, and one that refuses all."""
    request = json.loads(wire.read(version, sample))
    scheduler = request["Pod"]["spec"]["schedulerName"]
    verb = sample.split("-")[0]
    for rule, left in ((None, {"n1", "n2", "n3"}), ("node.metadata.name != 'n1'", {"n2", "n3"}), ("false", set())):
        rules = [policy(schedulerName=scheduler, filters={"f": rule}, scores={"s": "50.0"})] if rule else []
        asking = Asking(rules, KNOWN, schedulers=[scheduler])
        for sent in forms(wire.read(version, sample)):
            answer = getattr(asking, verb)(sent)
            assert answer.status == 200
            reply = go.decode(verb, answer.body)
            assert _named(reply) == _named(request) & left if verb != "prioritize" else reply == []


def _named(message: Any) -> set[str]:
    if message.get("Nodes"):
        return {node["metadata"]["name"] for node in message["Nodes"]["items"]}
    return {
        *(message.get("NodeNames") or message.get("NodeNameToMetaVictims") or message.get("NodeNameToVictims") or ())
    }
