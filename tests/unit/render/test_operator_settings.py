import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from fairlead.api.errors import InvalidObjectError
from fairlead.api.params import Params
from fairlead.render.operator_settings import OperatorSettings, parse_settings
from fairlead.render.scheduler_settings import SchedulerDefaults, SchedulerSettings
from support.bombs import doubling_lists, merging_maps
from support.render.schedulers import EVERYTHING, settings

BAD: Mapping[str, tuple[str, str]] = {
    "the cluster's own scheduler": (
        "schedulers: [{name: default-scheduler}]",
        "schedulers[0].management: default-scheduler is the cluster's own scheduler and is never managed; set m",
    ),
    "a profile that names itself": (
        "schedulers: [{name: a, profile: {schedulerName: b}}]",
        "schedulers[0].profile.schedulerName: is the name of the scheduler; leave it out",
    ),
    "a profile of all that names one": (
        "schedulerDefaults: {profile: {schedulerName: b}}",
        "schedulerDefaults.profile.schedulerName: is the name of the scheduler; leave it out",
    ),
    "a name of all": ("schedulerDefaults: {name: a}", "schedulerDefaults.name: there is no such field"),
    "the cluster's own scheduler, once all are managed": (
        "schedulerDefaults: {management: Managed}\nschedulers: [{name: a}, {name: default-scheduler}]",
        "schedulers[1].management: default-scheduler is the cluster's own scheduler and is never managed; set m",
    ),
    "an argument that is the operator's": (
        "schedulerDefaults: {extraArgs: [--tls-min-version=VersionTLS13, --config=/x]}",
        "schedulerDefaults.extraArgs[1]: --config is set by the operator; leave it out, and use profile",
    ),
    "an argument of the election": (
        "schedulers: [{name: a, extraArgs: [--leader-elect-resource-name=x]}]",
        "schedulers[0].extraArgs[0]: --leader-elect-resource-name is set by the operator; leave it out",
    ),
    "an argument that has a field": (
        "schedulers: [{name: a, extraArgs: [--v=4]}]",
        "schedulers[0].extraArgs[0]: --v has a field; set verbosity",
    ),
    "an argument that is none": (
        "schedulers: [{name: a, extraArgs: [-v=4]}]",
        "schedulers[0].extraArgs[0]: '-v=4' is not possible here; write one argument with its value",
    ),
    "a gate that is no name": (
        "schedulers: [{name: a, featureGates: {a=b: true}}]",
        "schedulers[0].featureGates[a=b]: 'a=b' is not possible here; write the name of a feature gate",
    ),
    "a label that selects the pods": (
        "schedulers: [{name: a, podLabels: {app.kubernetes.io/component: x}}]",
        "schedulers[0].podLabels[app.kubernetes.io/component]: the operator sets such keys itself; use another one",
    ),
    "an annotation of the operator": (
        "schedulers: [{name: a, podAnnotations: {fairlead.dev/ca-hash: x}}]",
        "schedulers[0].podAnnotations[fairlead.dev/ca-hash]: the operator sets such keys itself; use another one",
    ),
    "a Secret by more than its name": (
        "schedulers: [{name: a, imagePullSecrets: [{name: b, namespace: c}]}]",
        "schedulers[0].imagePullSecrets[0]: must be a string, not a map",
    ),
    "a field that is nearly one": (
        "schedulers: [{name: a, replica: 3}]",
        "schedulers[0].replica: there is no such field; did you mean replicas?",
    ),
    "a word that YAML reads as a boolean": (
        "schedulers: [{name: a, groups: Off}]",
        'schedulers[0].groups: false is not one of Auto, Off; write "Off" in quotes: without, YAML reads it as false',
    ),
    "an authority that is none": (
        "admission: {clientCA: x}",
        "admission.clientCA: 'x' is not possible here; write certificates in PEM, or leave it empty",
    ),
    "whether the chart has it checked": (
        "admission: {enabled: false}",
        "admission.enabled: there is no such field",
    ),
    "a field of another place": ("replicas: 3", "replicas: there is no such field; it belongs in schedulers"),
    "a scheduler twice": (
        "schedulers: [{name: a}, {name: a}]",
        "schedulers[1]: name 'a' is a duplicate; list each only once",
    ),
    "a resource that would narrow who is asked": (
        "schedulers: [{name: a, managedResources: [{name: example.com/gpu, ignoredByScheduler: false}]}]",
        "schedulers[0].managedResources[0].ignoredByScheduler: must be true; a policy selects pods by its match",
    ),
    "a resource that is no extended one": (
        "schedulers: [{name: a, managedResources: [{name: cpu, ignoredByScheduler: true}]}]",
        "schedulers[0].managedResources[0].name: 'cpu' is not possible here; write an extended resource such",
    ),
    "a resource of Kubernetes": (
        "schedulers: [{name: a, managedResources: [{name: x.kubernetes.io/gpu, ignoredByScheduler: true}]}]",
        "write an extended resource such as example.com/gpu",
    ),
    "a share without its sign": (
        "schedulers: [{name: a, nodeSample: 50}]",
        "schedulers[0].nodeSample: must be a string, not 50; write it in quotes",
    ),
    "more than all": (
        "schedulers: [{name: a, nodeSample: 101%}]",
        "schedulers[0].nodeSample: '101%' is not possible here; write Auto, or a percentage from 1% to 100%",
    ),
    "no time at all": (
        "schedulers: [{name: a, timeout: 0s}]",
        "schedulers[0].timeout: '0s' is not possible here; write a duration such as 90s, 5m or 1h30m, from 1s to 30s",
    ),
    "a tag in the repository": (
        "schedulers: [{name: a, image: {repository: 'example.com/a:v1'}}]",
        "the tag belongs under tag",
    ),
    "a key that is written twice": (
        "unlistedSchedulers: Deny\nmaxUnlistedSchedulers: 1\nunlistedSchedulers: Allow",
        "line 3: 'unlistedSchedulers' is already set in line 1: remove one of them",
    ),
    "maps that merge each other": (
        merging_maps(60),
        "line 17: << copies more than 100,000 keys in this file: write them out",
    ),
    "lists that hold each other": (
        doubling_lists(60),
        "it has more than 100,000 values with aliases expanded: write fewer",
    ),
    "deep lists": ("schedulers: " + "[" * 5_000 + "]" * 5_000, "it is nested more than 1,000 levels deep"),
    "a number that is none": ("schedulers: [{name: a, profile: {x: .nan}}]", "schedulers[0].profile.x: is not JSON"),
    "a key that is no text": (
        "schedulers: [{name: a, profile: {x: {~: a}}}]",
        "schedulers[0].profile.x.None: is not JSON",
    ),
    "half a character": (r'schedulers: [{name: a, profile: {x: "\ud800"}}]', "invalid Unicode character"),
    "no replicas": ("schedulers: [{name: a, replicas: 0}]", "schedulers[0].replicas: must be at least 1, not 0"),
    "a name that no policy can have": ("schedulers: [{name: A.b}]", "schedulers[0].name: 'A.b' is not possible here"),
    "a prefix without its end": ("annotationPrefixes: [example.com]", "write the prefix of the keys including '/'"),
    "a list": ("[]", "must be a map of fields, not a list"),
    "no YAML": ("a: [", "the settings are not one YAML document: while parsing"),
    "two documents": ("a: 1\n---\nb: 1", "the settings are not one YAML document: expected a single document"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_with_its_field_and_its_cure(case: str) -> None:
    text, want = BAD[case]
    with pytest.raises(InvalidObjectError) as refused:
        parse_settings(text)
    assert want in str(refused.value)
    assert len(refused.value.errors) == 1


def test_dates_and_times_of_day_are_texts() -> None:
    told = parse_settings("schedulers: [{name: a, profile: {since: 2020-01-01, at: 1:30}}]")
    assert told.scheduler("a").profile == {"since": "2020-01-01", "at": "1:30"}


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1", "1"),
        ("1.0", "1"),
        ("0.5", "0.5"),
        ("2147483648", "2147483648"),
        ("2.147483648e+09", "2147483648"),  # as helm writes it
        ("500m", "500m"),
        ("'2'", "2"),
    ],
)
def test_an_amount_is_a_text_or_a_number_as_in_kubernetes(written: str, amount: str) -> None:
    text = f"schedulers: [{{name: a, resources: {{requests: {{cpu: {written}}}, limits: {{memory: {written}}}}}}}]"
    resources = parse_settings(text).schedulers[0].resources
    assert (resources.requests, resources.limits) == ({"cpu": amount}, {"memory": amount})


def test_an_amount_that_is_neither_is_an_error() -> None:
    with pytest.raises(InvalidObjectError, match=r"resources.requests.cpu: must be a string, not true"):
        parse_settings("schedulers: [{name: a, resources: {requests: {cpu: true}}}]")


@pytest.mark.parametrize("text", ["", "{}", "schedulers: []", "# nothing"])
def test_nothing_at_all_is_the_defaults(text: str) -> None:
    assert parse_settings(text) == OperatorSettings()


def test_who_is_not_listed_has_the_defaults() -> None:
    told = parse_settings("schedulers: [{name: gpu, replicas: 3}]")
    assert told.scheduler("gpu").replicas == 3
    other = told.scheduler("other")
    assert (other.name, other.management, other.replicas, other.node_sample) == ("other", "Managed", 2, "Auto")
    assert (other.timeout, other.pod_max_backoff_seconds, other.profile) == ("1s", 5, {})
    assert told.annotation_prefixes == ("fairlead.dev/",)


def _with_aliases(value: Params) -> dict[str, Any]:
    return dict(json.loads(value.model_dump_json(by_alias=True)))


DIFFERENT: Mapping[str, Any] = {key: value for key, value in EVERYTHING.items() if key != "name"} | {
    "assignedUserIds": True
}


def test_each_setting_of_a_scheduler_has_a_different_value_here() -> None:
    fields = {str(field.alias) for field in SchedulerDefaults.model_fields.values()}
    assert DIFFERENT.keys() == fields
    assert {field.alias for field in SchedulerSettings.model_fields.values()} == fields | {"name"}
    assert next(iter(SchedulerSettings.model_fields)) == "name"


@pytest.mark.parametrize("field", DIFFERENT)
def test_every_setting_of_all_reaches_listed_and_unlisted_schedulers(field: str) -> None:
    text = yaml.safe_dump({"schedulerDefaults": {field: DIFFERENT[field]}, "schedulers": [{"name": "listed"}]})
    told = parse_settings(text)
    for name in ("listed", "unlisted"):
        want = _with_aliases(settings(name=name, **{field: DIFFERENT[field]}))
        assert _with_aliases(told.scheduler(name)) == want


@pytest.mark.parametrize("field", DIFFERENT)
def test_an_entry_that_sets_something_has_it_and_the_rest_of_all(field: str) -> None:
    defaults = {name: value for name, value in DIFFERENT.items() if name != "assignedUserIds"}
    plain = _with_aliases(SchedulerDefaults())[field]
    text = yaml.safe_dump({"schedulerDefaults": defaults, "schedulers": [{"name": "a", field: plain}]})
    told = _with_aliases(parse_settings(text).scheduler("a"))
    assert told == _with_aliases(settings(name="a", **defaults)) | {field: plain}


def test_parts_are_merged_by_field_and_lists_and_maps_of_free_keys_are_whole() -> None:
    told = parse_settings("""
schedulerDefaults:
  image: {repository: mirror.example/kube-scheduler, tag: v1.36.3}
  imagePullSecrets: [{name: mirror}]
  placement: {nodeSelector: {pool: system}, priorityClassName: high}
  resources: {limits: {memory: 1Gi}}
  featureGates: {One: true}
schedulers:
- name: a
  image: {tag: v1.37.1}
  imagePullSecrets: []
  placement: {nodeSelector: {disk: ssd}}
  resources: {requests: {cpu: 1}}
  featureGates: {Two: true}
""")
    a, other = told.scheduler("a"), told.scheduler("other")
    assert (a.image.repository, a.image.tag) == ("mirror.example/kube-scheduler", "v1.37.1")
    assert (other.image.tag, other.image_pull_secrets, a.image_pull_secrets) == ("v1.36.3", ("mirror",), ())
    assert (a.placement.node_selector, a.placement.priority_class_name) == ({"disk": "ssd"}, "high")
    assert (a.resources.requests, a.resources.limits) == ({"cpu": "1"}, {"memory": "1Gi"})
    assert (a.feature_gates, other.feature_gates) == ({"Two": True}, {"One": True})


def test_the_clusters_own_scheduler_may_be_config_only_as_all_are() -> None:
    told = parse_settings("schedulerDefaults: {management: ConfigOnly}\nschedulers: [{name: default-scheduler}]")
    assert told.scheduler("default-scheduler").management == "ConfigOnly"


def test_the_clusters_own_scheduler_must_be_listed() -> None:
    listed = parse_settings("schedulers: [{name: default-scheduler, management: ConfigOnly}]")
    assert listed.scheduler("default-scheduler").management == "ConfigOnly"
    with pytest.raises(InvalidObjectError, match="schedulers: default-scheduler is not listed, and is never managed;"):
        OperatorSettings().scheduler("default-scheduler")


def test_user_ids_that_are_assigned_are_so_for_all() -> None:
    settings = parse_settings("assignedUserIds: true\nschedulers: [{name: a}]")
    assert [settings.scheduler(name).assigned_user_ids for name in ("a", "unlisted")] == [True, True]
    assert not parse_settings("schedulers: [{name: a}]").scheduler("a").assigned_user_ids


def test_what_is_written_is_what_is_read() -> None:
    (read,) = parse_settings(yaml.safe_dump({"schedulers": [EVERYTHING]})).schedulers
    again: dict[str, Any] = read.model_dump(by_alias=True, exclude_unset=True, mode="json")
    assert again == EVERYTHING
    assert read == settings(**EVERYTHING)
