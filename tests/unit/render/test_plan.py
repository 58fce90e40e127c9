import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as running
from hypothesis import strategies as st

from fairlead.render.extenders import Wiring
from fairlead.render.object_names import CA_HASH, CONFIG_HASH
from fairlead.render.plan import Plan, is_whole, plan
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS
from fairlead.render.templates import read, written
from support.render.schedulers import (
    ALL,
    ENGINE,
    EVERYTHING,
    GOLDEN,
    LONGEST,
    SCENES,
    config_of,
    facts,
    named,
    planned,
    settings,
)

Object = Mapping[str, Any]
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
QUALIFIED = re.compile(r"([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
SCALED = {"name", "replicas"}


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_renders_to_its_golden_file(scene: str) -> None:
    want = (GOLDEN / f"{scene}.yaml").read_text()
    assert written(SCENES[scene].objects) == want, "if this is meant, run `make crds`"


def test_each_golden_file_has_a_scene() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == {*SCENES}


_label = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)
_free = st.dictionaries(_text.filter(lambda key: key != "schedulerName"), _plain.filter(lambda one: one is not None))
_fields: dict[str, st.SearchStrategy[Any]] = {
    "name": _label.filter(lambda name: name != "default-scheduler"),
    "replicas": st.integers(1, 10),
    "nodeSample": st.just("Auto") | st.integers(1, 100).map("{}%".format),
    "timeout": st.integers(1, 30).map("{}s".format),
    "managedResources": st.lists(
        st.from_regex(r"[a-z]{1,9}\.example/[A-Za-z0-9]{1,9}", fullmatch=True), max_size=3, unique=True
    ).map(lambda names: [{"name": name, "ignoredByScheduler": True} for name in names]),
    "profile": _free,
    "imagePullSecrets": st.lists(_label, max_size=2, unique=True),
    "placement": st.fixed_dictionaries(
        {
            "nodeSelector": st.dictionaries(_label, st.from_regex(r"[A-Za-z0-9]{0,63}", fullmatch=True), max_size=2),
            "tolerations": st.lists(_free, max_size=2, unique_by=repr),
            "affinity": _free,
        }
    ),
    "resources": st.fixed_dictionaries({"requests": st.dictionaries(_label, _text, max_size=2)}),
    "podLabels": st.dictionaries(_label, st.from_regex(r"[A-Za-z0-9]{0,63}", fullmatch=True), max_size=2),
    "podAnnotations": st.dictionaries(_label, _text, max_size=2),
    "extraArgs": st.lists(st.from_regex(r"--x[-a-z0-9]{0,9}=[!-~]{0,9}", fullmatch=True), max_size=2, unique=True),
    "featureGates": st.dictionaries(st.from_regex(r"[A-Z][A-Za-z0-9]{0,9}", fullmatch=True), st.booleans(), max_size=2),
    "management": st.sampled_from(["Managed", "ConfigOnly"]),
}
_wirings = st.builds(Wiring, *[st.booleans()] * 4)


@given(st.fixed_dictionaries({}, optional=_fields), _wirings, _label, st.integers(0, 5000), _text)
@running(max_examples=50)
def test_what_settings_allow_renders_to_objects_that_can_be_applied(
    given: dict[str, Any], wiring: Wiring, namespace: str, nodes: int, ca: str
) -> None:
    made = planned(wiring, facts(namespace=namespace, nodes=nodes, ca_bundle=ca), **given)
    assert [*yaml.safe_load_all(written(made.objects))] == [*made.objects]
    assert len({(one["kind"], one["metadata"]["name"]) for one in made.objects}) == len(made.objects)
    for obj in made.objects:
        assert {"apiVersion", "kind", "metadata"} <= obj.keys()
        _is_named_well(obj["metadata"])
        assert "ownerReferences" not in obj["metadata"]
    for metadata in (pods["metadata"] for pods in _templates(made)):
        assert all(map(LABEL_VALUE.fullmatch, metadata["labels"].values()))
    config_map = named(made, "ConfigMap")
    config = read(config_map["data"]["config.yaml"])
    assert config_map["data"]["ca.crt"] == ca
    (profile,) = config["profiles"]
    assert profile.items() >= {"schedulerName": made.names.scheduler}.items()
    if not given.get("managedResources"):
        assert profile == {**given.get("profile", {}), "schedulerName": made.names.scheduler}
    assert written(planned(wiring, facts(namespace=namespace, nodes=nodes, ca_bundle=ca), **given).objects) == written(
        made.objects
    )


def _is_named_well(metadata: Object) -> None:
    for name in (metadata["name"], metadata.get("namespace", "none")):
        assert SUBDOMAIN.fullmatch(name)
        assert len(name) <= 253
    assert all(map(LABEL_VALUE.fullmatch, metadata["labels"].values()))
    assert all(map(QUALIFIED.fullmatch, [*metadata["labels"], *metadata.get("annotations", ())]))


def _templates(made: Plan) -> list[Any]:
    return [one["spec"]["template"] for one in made.objects if one["kind"] == "Deployment"]


PLACES = {"every-setting": EVERYTHING["podAnnotations"]}
"""Annotations that settings add, by scene."""
ROLLS: Mapping[str, Mapping[str, Any]] = {
    "timeout": {"timeout": "2s"},
    "profile": {"profile": {"percentageOfNodesToScore": 5}},
    "sample": {"nodeSample": "50%"},
    "resources that are not counted": {"managedResources": [{"name": "a.b/c", "ignoredByScheduler": True}]},
    "image": {"image": {"tag": "v1.36.3"}},
    "placement": {"placement": {"priorityClassName": "high"}},
    "resources": {"resources": {"limits": {"memory": "1Gi"}}},
    "backoff": {"podMaxBackoffSeconds": 6},
    "user ids": {"assignedUserIds": True},
    "labels": {"podLabels": {"team": "a"}},
    "annotations": {"podAnnotations": {"team": "a"}},
    "verbosity": {"verbosity": 2},
    "arguments": {"extraArgs": ["--logging-format=json"]},
    "feature gates": {"featureGates": {"SomeGate": True}},
    "parallelism": {"parallelism": 17},
    "qps": {"qps": 501},
    "burst": {"burst": 1001},
    "garbage": {"gogc": 100},
}


@pytest.mark.parametrize(
    ("limit", "soft"),
    [
        (None, None),
        ("1Gi", "966367641"),
        ("1.5Gi", "1449551462"),
        ("200M", "180000000"),
        ("2e8", "180000000"),
        ("1e-3", None),
        ("128974848000m", "116077363"),
        ("much", None),
    ],
)
def test_garbage_is_collected_before_the_memory_limit_is_reached(limit: str | None, soft: str | None) -> None:
    (pod,) = _templates(planned(resources={"limits": {} if limit is None else {"memory": limit}}))
    environment = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (environment["GOGC"], environment.get("GOMEMLIMIT")) == ("400", soft)


def test_pods_name_no_user_where_the_cluster_assigns_one() -> None:
    named = {"runAsUser", "runAsGroup", "fsGroup"}
    (own,), (assigned,) = _templates(planned()), _templates(planned(assignedUserIds=True))
    assert named <= own["spec"]["securityContext"].keys()
    assert assigned["spec"]["securityContext"].keys() == own["spec"]["securityContext"].keys() - named
    assert assigned["spec"]["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("what", ROLLS)
def test_what_its_pods_are_and_do_decides_the_hash(what: str) -> None:
    _rolls(planned(), planned(**ROLLS[what]))


def test_so_do_the_cluster_and_the_policies() -> None:
    _rolls(planned(), planned(cluster=facts(ca_bundle="another")))
    _rolls(planned(), planned(cluster=facts(url="https://elsewhere:1")))
    _rolls(planned(), planned(cluster=facts(server_versions=("v1.36.3",))))
    for name in ("fails", "ignores", "scores", "binds"):
        if name != "fails":  # which a binding needs anyway
            _rolls(planned(ALL), planned(replace(ALL, **{name: False})))
    _rolls(planned(Wiring(fails=True)), planned(Wiring()))
    _rolls(planned(ALL), planned(replace(ALL, hold_s=30)))
    _rolls(planned(replace(ALL, hold_s=30)), planned(replace(ALL, hold_s=31)))


def _rolls(before: Plan, after: Plan) -> None:
    assert before.config_hash != after.config_hash
    assert named(before, "ConfigMap")["metadata"]["name"] != named(after, "ConfigMap")["metadata"]["name"]
    assert _templates(before) != _templates(after)


def test_how_many_pods_there_are_rolls_none_of_them() -> None:
    two, five = planned(replicas=2), planned(replicas=5)
    assert _templates(two) == _templates(five)
    assert named(two, "ConfigMap") == named(five, "ConfigMap")


def test_nodes_that_come_and_go_roll_nothing() -> None:
    assert planned(cluster=facts(nodes=3)) == planned(cluster=facts(nodes=700))


def test_the_pods_run_what_the_hash_names() -> None:
    for name, made in SCENES.items():
        config_map = named(made, "ConfigMap")
        assert config_map["metadata"]["annotations"][CONFIG_HASH] == made.config_hash
        if name == "config-only":
            continue
        assert config_map["immutable"] is True
        (template,) = _templates(made)
        volumes = {one["name"]: one for one in template["spec"]["volumes"]}
        assert volumes["config"]["configMap"]["name"] == config_map["metadata"]["name"]
        assert volumes["tls"]["secret"]["secretName"] == made.names.certificate
        hashes = {CONFIG_HASH: made.config_hash, CA_HASH: made.ca_hash}
        assert template["metadata"]["annotations"] == PLACES.get(name, {}) | hashes
        # what is mounted by a subPath is never updated
        containers = template["spec"]["initContainers"] + template["spec"]["containers"]
        assert not any("subPath" in mount for one in containers for mount in one["volumeMounts"])


def test_every_file_that_the_configuration_names_is_mounted() -> None:
    made = SCENES["all-verbs"]
    ((template,), config) = _templates(made), read(config_of(made))
    mounts = {one["mountPath"]: one["name"] for one in template["spec"]["containers"][0]["volumeMounts"]}
    named_files = {path for one in config["extenders"] for path in one["tlsConfig"].values()}
    assert {path.rpartition("/")[::2] for path in named_files} == {
        ("/etc/fairlead/config", "ca.crt"),
        ("/etc/fairlead/tls", "tls.crt"),
        ("/etc/fairlead/tls", "tls.key"),
    }
    assert mounts.items() >= {"/etc/fairlead/config": "config", "/etc/fairlead/tls": "tls"}.items()


def test_selectors_find_the_pods_and_no_others() -> None:
    ours, others = planned(), planned(name="other")
    (mine,), (theirs,) = _templates(ours), _templates(others)
    for obj in ours.objects:
        spec = obj.get("spec", {})
        if selector := spec.get("selector") or spec.get("podSelector"):
            assert selector["matchLabels"].items() <= mine["metadata"]["labels"].items()
            assert not selector["matchLabels"].items() <= theirs["metadata"]["labels"].items()


def test_nobody_is_given_more_than_the_built_in_roles_and_one_lease() -> None:
    made = planned(**EVERYTHING)
    roles = {one["roleRef"]["name"] for one in made.objects if "roleRef" in one}
    assert roles == {made.names.object_name}
    assert {one.role for one in SCHEDULER_BINDINGS} == {
        "system:kube-scheduler",
        "system:volume-scheduler",
        "extension-apiserver-authentication-reader",
    }
    lease = named(made, "Lease")["metadata"]["name"]
    assert named(made, "Role")["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [lease],
            "verbs": ["get", "update"],
        }
    ]
    election = read(config_of(made))["leaderElection"]
    assert (election["resourceName"], election["resourceNamespace"]) == (lease, made.names.namespace)
    assert election["retryPeriod"] == "1s"


def test_the_peers_of_the_settings_may_scrape_its_metrics_and_all_may_without_any() -> None:
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    for metrics_from, wanted in ((peers, {"from": peers}), ([], {})):
        made = plan(ENGINE, settings(), ALL, facts(), metrics_from)
        assert named(made, "NetworkPolicy")["spec"]["ingress"] == [
            {"ports": [{"port": 10259, "protocol": "TCP"}]} | wanted
        ]


def test_one_replica_may_be_evicted() -> None:
    kinds = [one["kind"] for one in planned(replicas=1).objects]
    assert "PodDisruptionBudget" not in kinds
    assert "PodDisruptionBudget" in [one["kind"] for one in planned().objects]


def test_others_get_a_configuration_and_nothing_else() -> None:
    made = SCENES["config-only"]
    (config_map,) = made.objects
    assert "immutable" not in config_map
    assert config_map["metadata"]["name"] == "kube-scheduler-default-scheduler"
    config = read(config_of(made))
    assert "leaderElection" not in config
    assert "clientConnection" not in config
    # it goes on being called that when its content is another
    changed = planned(ALL, name="default-scheduler", management="ConfigOnly")
    assert changed.objects[0]["metadata"]["name"] == config_map["metadata"]["name"]
    assert changed.config_hash != made.config_hash


def test_resources_that_are_not_counted_join_those_of_the_profile() -> None:
    (profile,) = read(config_of(SCENES["every-setting"]))["profiles"]
    plugins = {one["name"]: one["args"] for one in profile["pluginConfig"]}
    assert plugins["NodeResourcesFit"] == {"ignoredResources": ["example.com/fpga", "example.com/gpu"]}
    assert plugins["InterPodAffinity"] == {"hardPodAffinityWeight": 7}
    assert "managedResources" not in config_of(SCENES["every-setting"])


_FIT = "NodeResourcesFit"
NO_PLUGINS: list[Any] = [
    "text",
    [{"name": _FIT, "args": 1}],
    [{"name": _FIT, "args": {"ignoredResources": 5}}],
    [{"name": _FIT, "args": {"ignoredResources": ["x.y/z", 5]}}],
]


@pytest.mark.parametrize("given", NO_PLUGINS)
def test_a_profile_that_is_no_profile_is_left_to_the_scheduler_to_refuse(given: object) -> None:
    resources = [{"name": "a.b/c", "ignoredByScheduler": True}]
    (profile,) = read(config_of(planned(profile={"pluginConfig": given}, managedResources=resources)))["profiles"]
    assert profile["pluginConfig"] == given


def test_the_last_good_pods_can_be_had_again_from_their_config_map() -> None:
    good = planned(Wiring(fails=True), facts(server_versions=("v1.36.3",)), **EVERYTHING | {"image": {}})
    bad = planned(ALL, facts(ca_bundle="another"), **EVERYTHING | {"timeout": "9s", "replicas": 5, "profile": {"x": 1}})
    back = bad.rolled_back_to(_as_served(named(good, "ConfigMap")))
    assert _templates(back) == _templates(good)
    assert named(back, "ConfigMap") == named(good, "ConfigMap")
    assert (config_of(back), back.config_hash, back.ca_hash) == (config_of(good), good.config_hash, good.ca_hash)
    # all else is as it is wanted now
    assert named(back, "Deployment")["spec"]["replicas"] == 5
    assert named(back, "Deployment")["metadata"] == named(good, "Deployment")["metadata"]
    assert [one for one in back.objects if one["kind"] not in ("ConfigMap", "Deployment")] == [
        one for one in bad.objects if one["kind"] not in ("ConfigMap", "Deployment")
    ]


def _as_served(obj: Object) -> Object:
    """With what the API server and others add."""
    more = {"uid": "1", "resourceVersion": "2", "managedFields": [], "creationTimestamp": "x"}
    metadata = {**obj["metadata"], **more, "annotations": {**obj["metadata"]["annotations"], "other": "x"}}
    return {**obj, "metadata": metadata}


def _forged(**changes: Any) -> Object:
    good = _as_served(named(planned(), "ConfigMap"))
    metadata = {**good["metadata"], **changes.pop("metadata", {})}
    return {**good, "metadata": metadata, **changes}


GOOD = _forged()
DATA, NOTES = GOOD["data"], GOOD["metadata"]["annotations"]
FORGED: dict[str, Object] = {
    "another pod": _forged(data={**DATA, "pod.yaml": DATA["pod.yaml"].replace("kube-scheduler", "evil")}),
    "another configuration": _forged(data={**DATA, "config.yaml": ""}),
    "another authority": _forged(data={**DATA, "ca.crt": "x"}),
    "something more": _forged(data={**DATA, "more": "x"}),
    "something less": _forged(data={"pod.yaml": DATA["pod.yaml"]}),
    "nothing": _forged(data=None),
    "bytes beside it": _forged(binaryData={"x": "eA=="}),
    "another name": _forged(metadata={"name": f"{GOOD['metadata']['name']}-2"}),
    "another hash": _forged(metadata={"annotations": {**NOTES, CONFIG_HASH: "0123456789ab"}}),
    "no hash": _forged(metadata={"annotations": {}}),
    "no annotations": _forged(metadata={"annotations": None}),
    "another way of hashing": _forged(metadata={"annotations": {**NOTES, "fairlead.dev/config-hash-version": "0"}}),
    "no way of hashing": _forged(metadata={"annotations": {CONFIG_HASH: NOTES[CONFIG_HASH]}}),
    "that of another scheduler": _as_served(named(planned(name="other"), "ConfigMap")),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_passes_for_a_configuration_is_none(what: str) -> None:
    names = planned().names
    assert is_whole(GOOD, names)
    assert not is_whole(FORGED[what], names)


def test_the_longest_names_fit() -> None:
    made = SCENES["longest-name"]
    assert len(LONGEST) == 63
    assert len(made.names.object_name) == 46
    assert made.names.labels["fairlead.dev/scheduler"] == LONGEST
