"""Policies for configurations of kube-scheduler with plugins of Trimaran."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.yaml_output import to_yaml
from support.cli.imported import check, imported

HEAD: Final = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
CPU: Final = '(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])))[15m:1m]'
MEMORY: Final = "(1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[15m:1m]"
PROMETHEUS: Final = "metricProvider: {type: Prometheus}"


def profile(plugin: str, args: str, weight: str = "", name: str = "packing") -> str:
    enabled = f"{{name: {plugin}{f', weight: {weight}' if weight else ''}}}"
    return (
        f"{HEAD}profiles:\n- schedulerName: {name}\n  plugins: {{score: {{enabled: [{enabled}]}}}}\n"
        f"  pluginConfig: [{{name: {plugin}, args: {{{args}}}}}]\n"
    )


def series(name: str, query: str) -> dict[str, Any]:
    return {"name": name, "prometheus": {"query": query, "nodeLabel": "instance", "interval": "30s"}}


def test_a_token_is_never_written() -> None:
    provider = "type: Prometheus, token: s3cret, insecureSkipVerify: true, address: 'https://me:s3cret@prometheus'"
    found = imported(profile("TargetLoadPacking", f"metricProvider: {{{provider}}}"))
    assert "s3cret" not in found.text
    assert "Not imported: metricProvider.token. Name a Secret" in found.comments
    assert "Certificates are always verified" in found.comments
    without = imported(profile("TargetLoadPacking", PROMETHEUS))
    for address in ("https://watcher:2020/x?token=s3cret", "watcher/?s3cret", "https://watcher#s3cret"):
        watched = imported(profile("TargetLoadPacking", f"watcherAddress: '{address}'"))
        assert "s3cret" not in watched.text
        assert "load-watcher at " in watched.comments
    assert "TargetLoadPacking reads Prometheus." in without.comments
    assert not any(word in without.comments for word in ("token", "Certificates"))


WEIGHTS: dict[str, tuple[str, list[int], str]] = {
    "none has one": ("[{name: TargetLoadPacking}, {name: LowRiskOverCommitment}]", [5, 5], "has no weight, which is 1"),
    "one has one, so that the other's is 1": (
        "[{name: TargetLoadPacking}, {name: LowRiskOverCommitment, weight: 4}]",
        [1, 4],
        "the weight 1 leaves 11 different scores",
    ),
    "both have one": (
        "[{name: TargetLoadPacking, weight: 20}, {name: LowRiskOverCommitment, weight: 2000}]",
        [20, 1000],
        "LowRiskOverCommitment has the weight 2000; 1000 is the greatest.",
    ),
}


@pytest.mark.parametrize("case", WEIGHTS)
@pytest.mark.parametrize("point", ["score", "multiPoint"])
def test_weights(case: str, point: str) -> None:
    enabled, want, comment = WEIGHTS[case]
    found = imported(f"{HEAD}profiles: [{{schedulerName: a, plugins: {{{point}: {{enabled: {enabled}}}}}}}]")
    assert [score["weight"] for score in found.spec["scores"]] == want
    assert comment in found.comments
    check(found.policy)


def test_the_weight_at_score_counts_more_than_that_at_all_points() -> None:
    plugins = (
        "{multiPoint: {enabled: [{name: TargetLoadPacking, weight: 3}]},"
        " score: {enabled: [{name: TargetLoadPacking, weight: 8}]}}"
    )
    found = imported(f"{HEAD}profiles: [{{schedulerName: a, plugins: {plugins}}}]")
    assert [score["weight"] for score in found.spec["scores"]] == [8]


def test_arguments_of_a_plugin_that_is_not_enabled_are_not_imported() -> None:
    configs = "[{name: TargetLoadPacking, args: {targetUtilization: many}}, {name: Dynamic}]"
    found = imported(f"{HEAD}profiles: [{{schedulerName: a, pluginConfig: {configs}}}]")
    assert found.faults == ()
    assert found.policies == []
    said = "Not imported: TargetLoadPacking, Dynamic, because the profile does not enable it at score."
    assert said in found.comments


def test_extenders_of_a_profile_are_named() -> None:
    scoring = "plugins: {score: {enabled: [{name: TargetLoadPacking}]}}"
    for plugins in (scoring, "plugins: {}"):
        found = imported(f"{HEAD}profiles: [{{schedulerName: a, extenders: [{{urlPrefix: x}}], {plugins}}}]")
        said = (
            "Not imported: extenders of the profile. Write policies in their place, as docs/guide/replacing-an-extender"
        )
        assert said in found.comments


@pytest.mark.parametrize(
    ("disabled", "enabled", "is_called"),
    [
        ("TargetLoadPacking", "", False),
        ("'*'", "", False),
        ("NodeResourcesFit", "", True),
        ("'*'", "TargetLoadPacking", True),
    ],
)
def test_a_plugin_of_all_points_may_be_disabled_at_score(disabled: str, enabled: str, is_called: bool) -> None:
    scoring = f"disabled: [{{name: {disabled}}}]" + (f", enabled: [{{name: {enabled}, weight: 9}}]" if enabled else "")
    plugins = f"{{multiPoint: {{enabled: [{{name: TargetLoadPacking, weight: 9}}]}}, score: {{{scoring}}}}}"
    found = imported(f"{HEAD}profiles: [{{schedulerName: a, plugins: {plugins}}}]")
    assert ("Not imported: TargetLoadPacking, because" not in found.comments) == is_called
    assert [score["weight"] for policy in found.policies for score in policy["spec"]["scores"]] == [9] * is_called


@pytest.mark.parametrize("version", ["v1", "v1beta3", "v1beta2", "v1beta1"])
def test_the_versions_of_a_configuration_are_read_alike(version: str) -> None:
    text = profile("TargetLoadPacking", "targetUtilization: 55")
    assert imported(text.replace("io/v1\n", f"io/{version}\n")).policies == imported(text).policies


def test_each_profile_becomes_a_policy_and_what_is_no_rule_is_named() -> None:
    found = imported(
        f"""{HEAD}
clientConnection: {{kubeconfig: x}}
leaderElection: {{leaderElect: false}}
percentageOfNodesToScore: 20
extenders: [{{urlPrefix: x}}]
profiles:
- schedulerName: first
  percentageOfNodesToScore: 10
  plugins:
    score: {{disabled: [{{name: NodeResourcesBalancedAllocation}}], enabled: [{{name: TargetLoadPacking}}]}}
    queueSort: {{disabled: [{{name: "*"}}], enabled: [{{name: Coscheduling}}]}}
  pluginConfig:
  - {{name: NodeResourcesFit, args: {{scoringStrategy: {{type: MostAllocated}}}}}}
- schedulerName: second
  plugins: {{score: {{enabled: [{{name: ImageLocality}}]}}}}
- plugins: {{score: {{enabled: [{{name: LowRiskOverCommitment}}]}}}}
"""
    )
    assert found.faults == ()
    assert [one["metadata"]["name"] for one in found.policies] == ["first", "default-scheduler"]
    assert [one["spec"]["schedulerName"] for one in found.policies] == ["first", "default-scheduler"]
    for want in (
        (
            "Not imported: NodeResourcesBalancedAllocation in plugins.score.disabled; Coscheduling in "
            "plugins.queueSort.enabled; * in plugins.queueSort.disabled; pluginConfig of NodeResourcesFit."
        ),
        "Not imported: percentageOfNodesToScore of the profile.",
        "Not imported: extenders. Write policies in their place",
        "Not imported: percentageOfNodesToScore. Write schedulers[].nodeSample in the operator's settings.",
        "Not imported: clientConnection, leaderElection. The operator sets these",
        "From the profile second of the KubeSchedulerConfiguration (a.yaml:1). It has no plugin that reads load",
        "default-scheduler is the cluster's own scheduler, which Fairlead never manages.",
    ):
        assert want in found.comments
    for policy in found.policies:
        check(policy)


def test_profiles_of_the_same_name_become_two_policies() -> None:
    text = profile("TargetLoadPacking", "")
    assert [one["metadata"]["name"] for one in imported(text, text, text).policies] == [
        "packing",
        "packing-load",
        "packing-load-2",
    ]


WRONG: dict[str, tuple[str, str]] = {
    "a multiplier": (
        "TargetLoadPacking: {defaultRequestsMultiplier: many}",
        "profiles[0].pluginConfig[0].args.defaultRequestsMultiplier: must be a number, not 'many'",
    ),
    "a quantity": (
        "TargetLoadPacking: {defaultRequests: {cpu: 2cores}}",
        "profiles[0].pluginConfig[0].args.defaultRequests.cpu: '2cores' is not a quantity; write one such as 1, 500m",
    ),
    "a negative quantity": (
        "TargetLoadPacking: {defaultRequests: {cpu: '-1'}}",
        "args.defaultRequests.cpu: '-1' is out of the range from 0 to 999,999,999 that a rule takes",
    ),
    "a huge quantity": (
        "TargetLoadPacking: {defaultRequests: {cpu: 1e30}}",
        "'1000000000000000019884624838656' is out of the range from 0 to 999,999,999 that a rule takes",
    ),
    "a quantity of another type": (
        "TargetLoadPacking: {defaultRequests: {memory: [1]}}",
        "profiles[0].pluginConfig[0].args.defaultRequests.memory: must be a string, not a list",
    ),
    "a number beyond all": (
        "LoadVariationRiskBalancing: {safeVarianceMargin: .inf}",
        "profiles[0].pluginConfig[0].args.safeVarianceMargin: must be a finite number, not inf",
    ),
    "a provider": (
        "LowRiskOverCommitment: {metricProvider: {type: prometheus}}",
        (
            "profiles[0].pluginConfig[0].args.metricProvider.type: 'prometheus' is not one of KubernetesMetricsServer, "
            "Prometheus, SignalFx; did you mean Prometheus?"
        ),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_field_and_the_fix(case: str) -> None:
    config, want = WRONG[case]
    name, _, args = config.partition(": ")
    enabled = f"plugins: {{score: {{enabled: [{{name: {name}}}]}}}}"
    text = f"{HEAD}profiles: [{{schedulerName: a, {enabled}, pluginConfig: [{{name: {name}, args: {args}}}]}}]"
    [fault] = imported(text).faults
    assert want in fault


_PROVIDERS = st.fixed_dictionaries(
    {},
    optional={
        "watcherAddress": st.sampled_from(["", "http://w:1"]),
        "metricProvider": st.fixed_dictionaries(
            {}, optional={"type": st.sampled_from(["Prometheus", "SignalFx", "KubernetesMetricsServer"])}
        ),
    },
)
_FLOATS = st.floats(-1e6, 1e6) | st.integers(-3, 20)
_ARGS: Final[dict[str, dict[str, st.SearchStrategy[Any]]]] = {
    "TargetLoadPacking": {
        "targetUtilization": st.integers(-200, 200),
        "defaultRequestsMultiplier": _FLOATS.map(str),
        "defaultRequests": st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "250m", 3, 0.5])}),
    },
    "LoadVariationRiskBalancing": {"safeVarianceMargin": _FLOATS, "safeVarianceSensitivity": _FLOATS},
    "LowRiskOverCommitment": {
        "smoothingWindowSize": st.integers(-5, 200),
        "riskLimitWeights": st.dictionaries(st.sampled_from(["cpu", "memory", "x"]), _FLOATS),
    },
}


def _configs(plugin: str) -> st.SearchStrategy[dict[str, Any]]:
    own: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional=_ARGS[plugin])
    return st.builds(lambda one, other: {"name": plugin, "args": one | other}, own, _PROVIDERS)


BOUNDS: Final = {
    "targetPercent": (1, 99),
    "multiplierPercent": (1, 1000),
    "margin": (0, 10),
    "sensitivity": (0, 10),
    "windows": (1, 60),
    "limitWeightPercent": (0, 100),
}


@given(st.tuples(*map(_configs, _ARGS)), st.lists(st.integers(0, 3000), min_size=3, max_size=3))
def test_whatever_trimaran_takes_becomes_a_policy(configs: tuple[dict[str, Any], ...], weights: list[int]) -> None:
    enabled = [{"name": one["name"], "weight": weight} for one, weight in zip(configs, weights, strict=True)]
    profiles = [{"schedulerName": "a", "plugins": {"score": {"enabled": enabled}}, "pluginConfig": [*configs]}]
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = to_yaml({**kind, "profiles": profiles})
    found = imported(text)
    assert found.faults == ()
    check(found.policy)
    assert imported(text) == found
    names = {one["name"] for one in found.spec["data"]}
    for score in found.spec["scores"]:
        [params] = [value for value in score.values() if isinstance(value, dict)]
        resources = params.get("resources", [])
        assert {one[key] for one in resources for key in ("mean", "deviation") if key in one} <= names
        for one in (params, *resources):
            assert all(low <= one[name] <= high for name, (low, high) in BOUNDS.items() if name in one)
