from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import OperatorSettings, parse_settings
from support.bombs import doubling_lists, merging_maps
from support.render.schedulers import EVERYTHING, settings

BAD: Mapping[str, tuple[str, str]] = {
    "the cluster's own scheduler": (
        "schedulers: [{name: default-scheduler}]",
        "schedulers[0].management: default-scheduler is the cluster's own scheduler and is never managed; set m",
    ),
    "a profile that names itself": (
        "schedulers: [{name: a, profile: {schedulerName: b}}]",
        "schedulers[0].profile.schedulerName: is the name of this entry; leave it out",
    ),
    "a field that is nearly one": (
        "schedulers: [{name: a, replica: 3}]",
        "schedulers[0].replica: there is no such field; did you mean replicas?",
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
