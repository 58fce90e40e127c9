"""What the API server makes of the CRD, and of good and bad policies."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from generate.crds import installed_policy

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_policy
from policies.bad import BAD, Bad
from policies.good import EVERYTHING, GOOD, Object, policy
from policies.spoilt import spoilt
from support.kube.crd import POLICIES, policies_served
from testbed.api import Api, ApiError
from testbed.fixtures import Cluster, Kubectl

# As kubectl asks: a field that is not there is refused, not dropped.
_TRY = f"{POLICIES}?dryRun=All&fieldValidation=Strict"
_FOREVER = "schedulerName cannot be changed, added or removed: create another policy instead"
_EXAMPLES = Path(__file__).parents[2] / "examples"
_SPOILT = 500
_FILTER = {"name": "a", "expression": "true"}


@pytest.fixture(scope="module")
def api(control_plane: Cluster) -> Iterator[Api]:
    with policies_served(control_plane.api):
        yield control_plane.api


@pytest.fixture(autouse=True)
def no_policies(api: Api) -> Iterator[None]:
    yield
    api.delete(POLICIES)


@pytest.mark.parametrize("good", [pytest.param(good, id=sentence) for sentence, good in GOOD.items()])
def test_a_good_policy_is_taken_as_it_is(api: Api, good: Object) -> None:
    made = api.create(_TRY, good)
    assert made["spec"] == _without_nulls(good["spec"]), "nothing is added to what the owner wrote"


@pytest.mark.parametrize(
    "example",
    sorted([*_EXAMPLES.glob("*.yaml"), *_EXAMPLES.glob("kube-safe-scheduler/*.yaml")]),
    ids=lambda file: file.stem,
)
def test_an_example_is_taken(api: Api, example: Path) -> None:
    policies = [one for one in yaml.safe_load_all(example.read_text()) if one["kind"] == "SchedulerExtenderPolicy"]
    assert policies
    for one in policies:
        api.create(_TRY, one)
        parse_policy(one, installed_policy())


@pytest.mark.parametrize("bad", [pytest.param(bad, id=sentence) for sentence, bad in BAD.items()])
def test_a_bad_policy_is_refused_with_what_its_owner_must_read(api: Api, kubernetes_version: str, bad: Bad) -> None:
    with pytest.raises(ApiError) as refused:
        api.create(_TRY, bad.policy)
    assert refused.value.status in (400, 422)
    want = bad.want_server
    if kubernetes_version.startswith("1.33."):  # it writes a value as Go does
        want = want.replace("Duplicate value: {", "Duplicate value: map[string]interface {}{")
    assert want in refused.value.message
    assert f"{bad.want_field}: " in refused.value.message or f'unknown field "{bad.want_field}' in refused.value.message


def test_what_is_spoilt_at_random_is_refused_here_when_it_is_refused_offline(api: Api) -> None:
    model = installed_policy()
    differ: list[str] = []
    for seed in range(_SPOILT):
        one = spoilt(seed)
        here = _refusal(partial(api.create, _TRY, one))
        offline = _refusal(partial(parse_policy, one, model))
        if bool(here) != bool(offline):
            differ.append(f"{seed}: the API server says {here or 'yes'}; offline says {offline or 'yes'}")
    assert differ == []


def _refusal(ask: Callable[[], object]) -> str:
    try:
        ask()
    except (ApiError, InvalidObjectError) as refused:
        return str(refused)
    return ""


CHANGES_REFUSED = {
    "set where it was absent": (policy(), {"schedulerName": "fairlead"}),
    "set to another where it was absent": (policy(), {"schedulerName": "other"}),
    "removed": (policy(schedulerName="fairlead"), {"schedulerName": None}),
    "changed": (policy(schedulerName="fairlead"), {"schedulerName": "other"}),
    "changed with all the rest": (EVERYTHING, {"schedulerName": "other", "filters": [], "mode": "Disabled"}),
}
CHANGES_ALLOWED = {
    "something else, where it is absent": (policy(), {"priority": 1}),
    "something else, where it is set": (policy(schedulerName="fairlead"), {"priority": 1}),
    "it to itself": (policy(schedulerName="fairlead"), {"schedulerName": "fairlead", "mode": "Disabled"}),
    "all rules": (EVERYTHING, {"filters": [], "scores": [], "data": [], "binding": None, "failurePolicy": "Ignore"}),
}


@pytest.mark.parametrize(("was", "change"), CHANGES_REFUSED.values(), ids=CHANGES_REFUSED)
def test_the_scheduler_name_cannot_be(api: Api, was: Object, change: Object) -> None:
    api.create(POLICIES, was)
    with pytest.raises(ApiError, match=f"spec.schedulerName: .*{_FOREVER}"):
        api.patch(f"{POLICIES}/{was['metadata']['name']}", {"spec": change})


@pytest.mark.parametrize(("was", "change"), CHANGES_ALLOWED.values(), ids=CHANGES_ALLOWED)
def test_an_owner_may_change(api: Api, was: Object, change: Object) -> None:
    made = api.create(POLICIES, was)
    changed = api.patch(f"{POLICIES}/{was['metadata']['name']}", {"spec": change})
    assert changed["metadata"]["generation"] == made["metadata"]["generation"] + (was["spec"] != changed["spec"])
    assert {field: changed["spec"].get(field) for field in change} == change


def test_two_owners_may_each_have_their_rules_in_one_policy(api: Api, kubectl: Kubectl) -> None:
    def apply(owner: str, *names: str) -> dict[str, str]:
        rules = [{"name": name, "expression": f"'{owner}' == '{owner}'"} for name in names]
        kubectl("apply", "--server-side", f"--field-manager={owner}", "-f-", stdin=json.dumps(policy(filters=rules)))
        return {one["name"]: one["expression"] for one in api.get(f"{POLICIES}/some")["spec"]["filters"]}

    assert [*apply("ours", "a", "b")] == ["a", "b"]
    assert apply("theirs", "c") == {"a": "'ours' == 'ours'", "b": "'ours' == 'ours'", "c": "'theirs' == 'theirs'"}
    assert {*apply("ours", "b")} == {"b", "c"}


def test_a_new_policy_is_not_ready_until_somebody_looked_at_it(api: Api) -> None:
    api.create(POLICIES, policy())
    (ready,) = api.get(f"{POLICIES}/some")["status"]["conditions"]
    assert {key: ready[key] for key in ("type", "status", "reason", "lastTransitionTime")} == {
        "type": "Ready",
        "status": "Unknown",
        "reason": "Pending",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }


def test_the_status_is_written_apart_from_the_spec(api: Api) -> None:
    made = api.create(POLICIES, policy(filters=[_FILTER]))
    status = {
        "observedGeneration": 1,
        "servingGeneration": 1,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Serving",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
        "scheduler": {"name": "fairlead", "configHash": "abc", "lastGoodConfigHash": "abc"},
        "rules": [
            {
                "name": "a",
                "kind": "Filter",
                "uses": ["node.metadata.labels"],
                "evaluation": "ByteCode",
                "errors": {"count": 1, "lastMessage": "no such key", "lastTime": "2026-01-01T00:00:00Z"},
            },
            {"name": "a", "kind": "Annotation"},
        ],
        "warnings": [{"reason": "Conflict", "count": 2, "message": "fairlead.dev/a"}],
    }
    patched = api.patch(f"{POLICIES}/some/status", {"status": status, "spec": {"filters": []}})
    assert patched["status"] == status
    assert patched["spec"] == made["spec"]
    assert patched["metadata"]["generation"] == 1


def test_kubectl_shows_what_an_owner_looks_for(api: Api, kubectl: Kubectl) -> None:
    api.create(POLICIES, policy(mode="Shadow"))
    ready = {"type": "Ready", "status": "True", "reason": "Serving", "message": "well"}
    ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    scheduler = {"name": "fairlead", "configHash": "abc"}
    api.patch(f"{POLICIES}/some/status", {"status": {"conditions": [ready], "scheduler": scheduler}})
    head, row = (line.split() for line in kubectl("get", "sep").splitlines())
    assert head == ["NAME", "READY", "REASON", "MODE", "SCHEDULER", "AGE", "MESSAGE"]
    assert [*row[:5], row[6]] == ["some", "True", "Serving", "Shadow", "fairlead", "well"]
    head, row = (line.split() for line in kubectl("get", "sep", "-o", "wide").splitlines())
    assert head == ["NAME", "READY", "REASON", "MODE", "SCHEDULER", "HASH", "AGE", "MESSAGE"]
    assert row[:6] == ["some", "True", "Serving", "Shadow", "fairlead", "abc"]
    for category in ("fairlead", "scheduling"):
        assert "schedulerextenderpolicy.fairlead.dev/some" in kubectl("get", category, "-o", "name")


def test_kubectl_explains_every_field(api: Api, kubectl: Kubectl) -> None:
    explained = kubectl("explain", "sep.spec.filters", "--recursive")
    assert {"expression", "onError", "nodeReadiness", "holdOff"} <= {*explained.split()}
    assert "Message for rejected nodes." in kubectl("explain", "sep.spec.filters.reason")
    document = json.loads(api.text("/openapi/v3/apis/fairlead.dev/v1alpha1"))
    schema = document["components"]["schemas"]["dev.fairlead.v1alpha1.SchedulerExtenderPolicy"]
    assert [*_unexplained(schema["properties"]["spec"], "spec")] == []
    assert [*_unexplained(schema["properties"]["status"], "status")] == []


def _unexplained(schema: Object, path: str) -> Iterator[str]:
    if not schema.get("description"):
        yield path
    for name, field in schema.get("properties", {}).items():
        yield from _unexplained(field, f"{path}.{name}")
    items = schema.get("items", {})
    for name, field in items.get("properties", {}).items():
        yield from _unexplained(field, f"{path}[].{name}")


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
