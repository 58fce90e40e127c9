"""Schemas for editors: they take what lint and test take, and mark what these reject by its shape."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fairlead.cli.main import main

_ROOT = Path(__file__).parents[4]
_EXAMPLES = sorted((_ROOT / "examples").glob("*.yaml"))
_SUITES = sorted((_ROOT / "examples" / "tests").glob("*.test.yaml"))
_POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata: {name: gpu}
spec:
  filters: [{name: pool, expression: 'true'}]
"""
_SUITE = """
policies: [gpu.yaml]
nodes: [{metadata: {name: a}}]
cases:
- name: one
  pod: {metadata: {name: p}}
  expect: {passed: [a]}
"""


def _schema(capsys: pytest.CaptureFixture[str], output: str) -> jsonschema.Draft7Validator:
    assert main(["crd", "-o", output]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


@pytest.fixture
def policies(capsys: pytest.CaptureFixture[str]) -> jsonschema.Draft7Validator:
    return _schema(capsys, "jsonschema")


@pytest.fixture
def suites(capsys: pytest.CaptureFixture[str]) -> jsonschema.Draft7Validator:
    return _schema(capsys, "jsonschema-suites")


def _errors(validator: jsonschema.Draft7Validator, document: object) -> list[str]:
    return [f"{'.'.join(map(str, one.absolute_path))}: {one.message}" for one in validator.iter_errors(document)]


def test_every_example_is_right(policies: jsonschema.Draft7Validator, suites: jsonschema.Draft7Validator) -> None:
    assert len(_EXAMPLES) > 15
    assert len(_SUITES) > 15
    for files, validator in ((_EXAMPLES, policies), (_SUITES, suites)):
        for file in files:
            for document in yaml.safe_load_all(file.read_text()):
                if validator is suites or document["kind"] == "SchedulerExtenderPolicy":
                    assert _errors(validator, document) == [], file.name


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"kind": "Policy"}, "kind: 'Policy' is not one of"),
        ({"spec": {"filter": []}}, "'filter' was unexpected"),
        ({"spec": {"mode": False}}, "False is not one of"),
        ({"spec": {"priority": 2_000_000}}, "greater than the maximum"),
        ({"spec": {"filters": [{"name": "a", "expresion": "true"}]}}, "'expresion' was unexpected"),
        ({"metadata": {}}, "'name' is a required property"),
    ],
)
def test_a_mistake_in_a_policy_is_marked(
    policies: jsonschema.Draft7Validator, change: Mapping[str, Any], error: str
) -> None:
    assert _errors(policies, yaml.safe_load(_POLICY)) == []
    assert any(error in one for one in _errors(policies, {**yaml.safe_load(_POLICY), **change}))


@pytest.mark.parametrize(
    "expect",
    [
        {"rejected": {"a": "no GPU"}},
        {"rejected": {"a": {"rule": "gpu/pool", "resolvable": False}}},
        {"order": ["a", ["b", "c"]]},
    ],
)
def test_what_a_suite_may_write_shorter_is_right(suites: jsonschema.Draft7Validator, expect: Any) -> None:
    suite = yaml.safe_load(_SUITE)
    suite["cases"][0]["expect"] = expect
    assert _errors(suites, suite) == []


@pytest.mark.parametrize("expect", [{"passd": ["a"]}, {"rejected": {"a": {"why": "no"}}}, {"order": [1, 2]}])
def test_a_mistake_in_a_suite_is_marked(suites: jsonschema.Draft7Validator, expect: Any) -> None:
    suite = yaml.safe_load(_SUITE)
    suite["cases"][0]["expect"] = expect
    assert _errors(suites, suite) != []


def test_every_field_is_explained(policies: jsonschema.Draft7Validator) -> None:
    def undocumented(node: Any, path: str) -> list[str]:
        found = []
        for name, one in node.get("properties", {}).items():
            inside = f"{path}.{name}"
            found += [] if one.get("description") or path == ".metadata" else [inside]
            found += undocumented(one, inside)
        return found + (undocumented(node["items"], path) if "items" in node else [])

    assert undocumented(policies.schema, "") == []
