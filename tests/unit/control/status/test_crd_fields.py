"""What a CRD that is older than the operator lacks, and what is said of policies that have lost it."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from generate.crds import installed_policy

from fairlead.api.crdgen import custom_resource_definition
from fairlead.api.v1alpha1 import deciding_fields
from fairlead.control.loop.leader_metrics import LeaderMetrics
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.control.status.crd_fields import CrdFields, OpenApiDocument, decode_document
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.metrics import Metrics
from support.faults.api import described

OWN = {"filters": ("expression", "safe", "custom"), "scores": ("expression", "custom")}
KIND = "dev.fairlead.v1alpha1.SchedulerExtenderPolicy"


def document(rules: Mapping[str, Any]) -> OpenApiDocument:
    return decode_document(msgspec.json.encode(described(rules)))


def fields(**rules: Any) -> CrdFields:
    made = CrdFields(OWN)
    made.compare(document(OWN | rules))
    return made


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ({}, []),
        ({"filters": ["expression", "safe", "custom", "newer"]}, []),
        ({"filters": ["expression", "custom"]}, ["spec.filters.safe"]),
        (
            {"filters": ["expression"], "scores": ["expression"]},
            [*(f"spec.filters.{one}" for one in ("safe", "custom")), "spec.scores.custom"],
        ),
        ({"filters": []}, ["spec.filters.expression", "spec.filters.safe", "spec.filters.custom"]),
    ],
)
def test_what_is_missing(rules: dict[str, Any], names: list[str]) -> None:
    assert fields(**rules).names == names


def test_whether_it_changed_is_told_once() -> None:
    made, older = CrdFields(OWN), document(OWN | {"filters": ["expression"]})
    assert made.missing is None
    assert [made.compare(one) for one in (document(OWN), older, older, document(OWN), document(OWN))] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert made.missing == {}
    assert CrdFields(OWN).compare(older)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"components": {"schemas": {}}},
        {"components": {"schemas": {KIND: {}}}},
        {"components": {"schemas": {KIND: {"properties": {"spec": {}}}}}},
        {"components": {"schemas": {KIND: {"properties": {"spec": {"properties": {"filters": {}}}}}}}},
        described({"filters": []}),
        {"components": {"schemas": {"dev.fairlead.v1alpha1.SchedulerExtenderPolicyList": {}}}},
    ],
    ids=json.dumps,
)
def test_what_describes_no_rules_changes_nothing(said: Mapping[str, Any]) -> None:
    made = fields(filters=["expression"])
    before = made.missing
    assert not made.compare(decode_document(msgspec.json.encode(said)))
    assert made.missing == before


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({}, ""),
        ({"filters": None}, ""),
        ({"filters": [{"name": "a", "expression": "true"}, {"name": "b", "custom": {"name": "x"}}]}, ""),
        ({"filters": [{"name": "a"}]}, "nothing decides in spec.filters[0]: "),
        ({"filters": [{"name": "a", "expression": None}]}, "nothing decides in spec.filters[0]: "),
        (
            {"filters": [{"name": "a"}, {"name": "b", "expression": "1"}, {"name": "c"}], "scores": [{"name": "d"}]},
            "nothing decides in spec.filters[0], spec.filters[2]: ",
        ),
        ({"scores": [{"name": "d"}]}, ""),
    ],
)
def test_a_rule_that_has_lost_what_decides_is_named(spec: dict[str, Any], want: str) -> None:
    said = fields(filters=["expression", "custom"]).describe_loss({"spec": spec})
    assert said.startswith(want)
    assert bool(said) == bool(want)
    assert not said or "lacks spec.filters.safe, " in said
    assert fields().describe_loss({"spec": spec}) == CrdFields(OWN).describe_loss({"spec": spec}) == ""


def test_the_fields_of_the_model_are_those_of_its_crd() -> None:
    model = installed_policy()
    own = deciding_fields(model)
    assert {"expression", "nodeReadiness", "custom"} <= {*own["filters"]}
    (version,) = custom_resource_definition(model)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    made = CrdFields(own)
    made.compare(decode_document(json.dumps({"components": {"schemas": {KIND: schema}}}).encode()))
    assert made.missing == {}


def test_the_metric_is_there_while_it_is_known_and_this_replica_leads() -> None:
    metrics, crd_fields = Metrics(), CrdFields(OWN)
    leader = LeaderMetrics(metrics)

    def value() -> str:
        lines = metrics.exposition().decode().splitlines()
        return next((line for line in lines if line.startswith("fairlead_crd_outdated")), "")

    assert value() == ""
    registry: Any = type("Registry", (SchedulerRegistry,), {})(policy_index=None, managed=None, settings=None, now=None)
    registry.policy_index = type("Index", (), {"policies": {}})
    with leader.export_gauges(registry, lambda: 0, crd_fields, UnreviewedGenerations(lambda: 0.0)):
        assert value() == ""
        for rules, want in ((OWN, 0.0), (OWN | {"scores": ["expression"]}, 1.0), (OWN, 0.0)):
            crd_fields.compare(document(rules))
            assert value() == f"fairlead_crd_outdated {want}"
    assert value() == ""
