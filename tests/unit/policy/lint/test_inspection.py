"""All faults of an object are reported at once, and each only once."""

from typing import Any

import pytest
from generate.crds import installed_policy

from fairlead import strategies
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.lint.inspection import inspect
from fairlead.policy.lint.policy_checks import warnings_steps
from policies.bad import BAD
from policies.good import GOOD

MODEL = installed_policy()
RULES = CompileOptions({one.name: one for one in strategies.installed()})


def faults_of(spec: Any) -> list[str]:
    """Return the faults of a spec."""
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "policy"}}
    return [
        str(fault).split(";")[0] for fault in inspect({**header, "spec": spec}, MODEL, RULES, warnings_steps).faults
    ]


SAID: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a wrong field and a wrong expression in two rules": (
        {
            "filters": [
                {"name": "Big", "expression": "true"},
                {"name": "b", "expression": "pod.spec.prority > 1"},
            ]
        },
        [
            "spec.filters[0].name: 'Big' is not possible here",
            "spec.filters[1].expression: line 1, column 10: PodSpec has no field `prority`",
        ],
    ),
    "both in one rule": (
        {"scores": [{"name": "s", "weight": 0, "expression": "pod.spec.prority"}]},
        [
            "spec.scores[0].weight: must be at least 1, not 0",
            "spec.scores[0].expression: line 1, column 10: PodSpec has no field `prority`",
        ],
    ),
    "a variable that cannot be read is no fault of those that use it": (
        {
            "variables": [{"name": "wants", "expresion": "'a'"}],
            "filters": [
                {"name": "a", "expression": "variables.wants == 'a'"},
                {"name": "b", "expression": "nod == 1"},
            ],
        },
        [
            "spec.variables[0].expresion: there is no such field",
            "spec.filters[1].expression: unknown variable `nod`",
        ],
    ),
    "data that cannot be read": (
        {
            "data": [{"name": "load", "nodeLabel": {"key": "a"}, "maxAge": "5m"}],
            "filters": [{"name": "a", "expression": "data.load > 1"}],
        },
        [
            "spec.data[0].maxAge: a label does not tell when it was written",
            "spec.filters[0].expression: line 1, column 11: `>` is not defined for double and int",
        ],
    ),
    "a word that is wrong": (
        {"mode": "Of", "filters": [{"name": "a", "expression": "1"}]},
        [
            "spec.mode: 'Of' is not one of Enforce, Shadow, Disabled",
            "spec.filters[0].expression: expected a bool, got an int",
        ],
    ),
}


@pytest.mark.parametrize(("spec", "want"), SAID.values(), ids=SAID)
def test_all_is_said_at_once(spec: dict[str, Any], want: list[str]) -> None:
    assert faults_of(spec) == want


@pytest.mark.parametrize(
    "spec", [None, [], "x", 1, {"filters": {}}, {"filters": [None, 1, "a", []]}, {"match": []}, {"variables": [{}]}]
)
def test_absurd_objects_have_faults(spec: object) -> None:
    assert faults_of(spec)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_policy_is_read(name: str) -> None:
    assert inspect(GOOD[name], MODEL, RULES, warnings_steps).policy is not None


@pytest.mark.parametrize("name", BAD)
def test_a_bad_policy_has_faults(name: str) -> None:
    found = inspect(BAD[name].policy, MODEL, RULES, warnings_steps)
    assert found.policy is None
    assert found.faults


OF_THE_ENGINE: dict[str, tuple[str, list[str]]] = {
    "the pods of each node": (
        "!pods.exists(p, '%s'.format([p.metadata.name]) == p.metadata.labels['app'])",
        ["spec.filters[0].expression: runs on the engine, where it may take 4,758 us for a node"],
    ),
    "a text from the node": ("pod.metadata.name == '%s'.format([node.metadata.labels['name']])", []),
    "about the pod alone": ("pod.spec.containers.exists(c, '%s'.format([c.image]) == pod.metadata.name)", []),
}


@pytest.mark.parametrize(("expression", "want"), OF_THE_ENGINE.values(), ids=OF_THE_ENGINE)
def test_what_is_too_slow_on_the_engine_is_refused(expression: str, want: list[str]) -> None:
    found = faults_of({"filters": [{"name": "rule", "expression": expression}]})
    assert [
        fault.partition(" for a node")[0] + " for a node" if "us for" in fault else fault for fault in found
    ] == want


def test_a_policy_knows_which_annotations_of_placed_pods_it_reads() -> None:
    spec = {
        "filters": [
            {"name": "a", "expression": "!pods.exists(p, p.metadata.annotations[?'a/one'].orValue('') == 'x')"}
        ],
        "preemption": {"protect": [{"name": "b", "expression": "'two' in victim.metadata.annotations"}]},
    }
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "policy"}}
    compiled = inspect({**header, "spec": spec}, MODEL, RULES, warnings_steps).compiled
    assert compiled is not None
    assert compiled.pod_annotations == {"a/one", "two"}
