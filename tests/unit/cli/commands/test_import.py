"""The command as a user has it."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.parse import parse_policy
from fairlead.cli.imports.foreign_documents import VERSIONS
from fairlead.cli.main import main
from fairlead.strategies.registry import installed_policy
from fairlead.yaml_output import to_yaml
from support.cli.imported import check, imported
from support.policy.lint import GOOD, report_of

TAS = """apiVersion: telemetry.intel.com/v1alpha1
kind: TASPolicy
metadata: {name: cool, namespace: batch}
spec:
  strategies:
    dontschedule: {rules: [{metricname: heat, operator: GreaterThan, target: 80}]}
    scheduleonmetric: {rules: [{metricname: heat, operator: LessThan}]}
"""
TRIMARAN = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
  plugins:
    score: {enabled: [{name: TargetLoadPacking}, {name: LoadVariationRiskBalancing}, {name: LowRiskOverCommitment}]}
  pluginConfig:
  - {name: LoadVariationRiskBalancing, args: {metricProvider: {type: Prometheus}}}
- schedulerName: loaded
  plugins: {score: {enabled: [{name: Dynamic}]}}
"""
CRANE = """apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{name: cpu_avg, period: 3m}]
  predicate: [{name: cpu_avg, maxLimitPecent: 0.65}]
  priority: [{name: cpu_avg, weight: 0.2}]
  hotValue: [{timeRange: 5m, count: 5}]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("tas.yaml", TAS), ("scheduler.yaml", TRIMARAN), ("crane.yaml", CRANE), ("good.yaml", GOOD)):
        Path(name).write_text(text)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["import", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_all_kinds_in_one_call(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, out, err = run(capsys, "tas.yaml", "scheduler.yaml", "crane.yaml")
    assert (code, err) == (0, "")
    found = [(one["metadata"]["name"], one["spec"].get("schedulerName")) for one in yaml.safe_load_all(out)]
    assert found == [("cool", None), ("packing", "packing"), ("crane", "loaded")]
    assert run(capsys, "tas.yaml", "scheduler.yaml", "crane.yaml") == (0, out, "")


def test_a_directory_and_standard_input(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, ".")
    assert (code, len([*yaml.safe_load_all(out)])) == (0, 3)
    assert err == "fairlead import: good.yaml:1: is a SchedulerExtenderPolicy already\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TAS.encode())))
    code, out, err = run(capsys, "-")
    assert (code, err) == (0, "")
    assert out.startswith("# From the TASPolicy batch/cool (<stdin>:1).\n")


FAILING: dict[str, tuple[dict[str, str], list[str], int, str]] = {
    "no file": ({}, ["none.yaml"], 2, "none.yaml:1:1: error: cannot be read: no such file or directory\n"),
    "no YAML": ({"a.yaml": "a: ["}, ["a.yaml"], 1, "a.yaml:1:5: error: this is not YAML"),
    "no text": ({"a.yaml": "a: \0"}, ["a.yaml"], 1, "a.yaml:1:4: error: the character U+0000 is not allowed in YAML"),
    "an empty directory": ({}, ["."], 1, ".:1:1: error: this directory has no file that ends in .yaml"),
    "nothing to import": (
        {"a.yaml": GOOD},
        ["a.yaml"],
        1,
        (
            "fairlead import: a.yaml:1: is a SchedulerExtenderPolicy already\n"
            "fairlead import: no DynamicSchedulerPolicy, KubeSchedulerConfiguration, TASPolicy found in a.yaml\n"
        ),
    ),
    "a ConfigMap": (
        {"a.yaml": "kind: ConfigMap\napiVersion: v1\n"},
        ["a.yaml"],
        1,
        (
            "fairlead import: a.yaml:1: is not imported: its kind is ConfigMap, not one of DynamicSchedulerPolicy, "
            "KubeSchedulerConfiguration, TASPolicy; write the text that its data holds into a file of its own\n"
        ),
    ),
    "the old Policy of kube-scheduler": (
        {"a.yaml": "kind: Policy\napiVersion: v1\nextenders: [{urlPrefix: x}]\n"},
        ["a.yaml"],
        1,
        (
            "fairlead import: a.yaml:1: is not imported: kube-scheduler reads no Policy since 1.23; for its extenders "
            "write policies in their place, as docs/guide/replacing-an-extender.md says\n"
        ),
    ),
    "the first version of the configuration": (
        {"a.yaml": "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n"},
        ["a.yaml"],
        1,
        (
            "a.yaml:1:13: error: apiVersion: 'kubescheduler.config.k8s.io/v1alpha1' is not known; write its plugins as "
            "profiles of kubescheduler.config.k8s.io/v1; for its extenders write policies in their place, as "
            "docs/guide/replacing-an-extender.md says\n"
        ),
    ),
    "another version": (
        {"a.yaml": TAS.replace("v1alpha1", "v2")},
        ["a.yaml"],
        1,
        "a.yaml:1:13: error: apiVersion: 'telemetry.intel.com/v2' is not known; write telemetry.intel.com/v1alpha1\n",
    ),
    "an error in one of two": (
        {"a.yaml": TAS, "b.yaml": CRANE.replace("3m", "soon")},
        ["a.yaml", "b.yaml"],
        1,
        "b.yaml:4:40: error: spec.syncPolicy[0].period: 'soon' is not a duration; write one such as 90s, 5m or 1h30m\n",
    ),
    "a key that is there twice": (
        {"a.yaml": TAS + "spec: {}\n"},
        ["a.yaml"],
        1,
        "a.yaml:8:1: error: spec: 'spec' is already set in line 4; remove one of them\n",
    ),
    "errors in the order of the files": (
        {"b.yaml": CRANE.replace("3m", "soon"), "a.yaml": TRIMARAN.replace("type: Prometheus", "type: Graphite")},
        ["b.yaml", "a.yaml"],
        1,
        (
            "b.yaml:4:40: error: spec.syncPolicy[0].period: 'soon' is not a duration; write one such as 90s, 5m or "
            "1h30m\na.yaml:8:"
        ),
    ),
}


@pytest.mark.parametrize("case", FAILING)
def test_what_is_wrong_is_said_and_nothing_is_written(
    case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, arguments, want_code, want = FAILING[case]
    monkeypatch.chdir(tmp_path)
    for name, text in given.items():
        Path(name).write_text(text)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (want_code, "")
    assert err.startswith(want)


def test_an_object_as_large_as_no_object_is_an_error() -> None:
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 30)
    )
    [fault] = imported(f"kind: List\nitems: [{{}}]\n{laughs}").faults
    assert "with aliases expanded this is over a trillion values" in fault


_WORDS = st.sampled_from(["a", "b_c", "1m", "0s", "", "Dynamic", "TargetLoadPacking", "allOf", "LessThan", "cpu"])
_LEAVES = st.none() | st.booleans() | st.integers(-2, 99) | st.floats(-2, 2) | _WORDS
_KEYS = st.sampled_from(
    [
        "metadata",
        "name",
        "namespace",
        "spec",
        "strategies",
        "dontschedule",
        "scheduleonmetric",
        "rules",
        "metricname",
        "operator",
        "target",
        "profiles",
        "schedulerName",
        "plugins",
        "score",
        "enabled",
        "weight",
        "pluginConfig",
        "args",
        "metricProvider",
        "type",
        "syncPolicy",
        "period",
        "predicate",
        "maxLimitPecent",
        "priority",
        "hotValue",
        "timeRange",
        "count",
    ]
)
_ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_CRANE_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "syncPolicy": st.lists(st.fixed_dictionaries({"name": _WORDS, "period": _WORDS}), max_size=3),
        "predicate": st.lists(st.fixed_dictionaries({"name": _WORDS, "maxLimitPecent": _LEAVES}), max_size=3),
        "priority": st.lists(st.fixed_dictionaries({"name": _WORDS, "weight": _LEAVES}), max_size=3),
        "hotValue": st.lists(st.fixed_dictionaries({"timeRange": _WORDS, "count": _LEAVES}), max_size=6),
    },
)


@given(st.sampled_from(sorted(VERSIONS)), st.dictionaries(_KEYS, _ANYTHING), _CRANE_SPECS | st.none())
def test_whatever_an_object_holds_it_is_a_policy_or_an_error(
    kind: str, fields: dict[str, Any], spec: dict[str, Any] | None
) -> None:
    made = {**fields, "kind": kind, "apiVersion": VERSIONS[kind][0], **({"spec": spec} if spec else {})}
    found = imported(to_yaml(made))
    for policy in found.policies:
        check(policy)
    assert found.faults or found.comments


def test_every_policy_compiles() -> None:
    found = imported(TAS, TRIMARAN, CRANE)
    assert found.faults == ()
    assert len(found.policies) == 3
    for policy in found.policies:
        parse_policy(policy, installed_policy())
    findings = report_of(found.text).findings
    assert [one for one in findings if one.severity == "error"] == []
