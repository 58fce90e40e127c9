"""`fairlead render`: what it prints is compared with tests/data/rendered; `make crds` writes it."""

import itertools
import json
from pathlib import Path

import pytest
import yaml
from generate.chart_values import AdmissionValues, NetworkPolicyValues, TlsValues, Values

from fairlead.api.params import Params
from fairlead.cli.main import main
from fairlead.control.decide.drift import APPLIED, to_apply
from fairlead.render.operator_settings import (
    CHART_ONLY,
    CHART_ONLY_OF,
    AdmissionSettings,
    NetworkPolicySettings,
    OperatorSettings,
    TlsSettings,
    parse_settings,
    parse_values,
)
from support.chart.chart import CHART
from support.cli.rendered import DATA, SCENES, printed
from support.policy.lint import GOOD

_A, _B = str(DATA / "a.yaml"), str(DATA / "b.yaml")


@pytest.mark.parametrize("scene", SCENES)
def test_what_is_printed_is_what_was_reviewed(scene: str) -> None:
    assert printed(*SCENES[scene]) == (DATA / scene).read_text(), "make crds, and look at what it changes"


def test_the_order_of_files_and_of_policies_in_them_does_not_matter(tmp_path: Path) -> None:
    parts = [*Path(_A).read_text().split("---\n"), *Path(_B).read_text().split("---\n")]
    found = set()
    for at, order in enumerate(itertools.permutations(parts)):
        file = tmp_path / f"{at}.yaml"
        file.write_text("---\n".join(order))
        found.add(printed(str(file)))
    assert found == {printed(_A, _B)} == {printed(_B, _A)}


@pytest.mark.parametrize("management", ["Managed", "ConfigOnly"])
def test_binds_of_groups_have_an_entry_of_their_own(management: str, tmp_path: Path) -> None:
    gang = {"name": "g", "group": "pod.metadata.labels[?'job'].orValue('')", "size": "8", "holdFor": "45s"}
    spec = {"schedulerName": "gpu", "binding": {"gang": [gang]}}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    file, values = tmp_path / "p.yaml", tmp_path / "values.yaml"
    file.write_text(json.dumps(kind | {"metadata": {"name": "p"}, "spec": spec}))
    values.write_text(json.dumps({"schedulers": [{"name": "gpu", "management": management, "timeout": "2s"}]}))
    objects = yaml.safe_load_all(printed(str(file), "--settings", str(values)))
    config = next(one["data"]["config.yaml"] for one in objects if one["kind"] == "ConfigMap")
    gate, binder = yaml.safe_load(config)["extenders"]
    assert ("bindVerb" in gate, gate["httpTimeout"]) == (False, "2s")
    assert binder.keys() == gate.keys() - {"filterVerb", "preemptVerb"} | {"bindVerb"}
    assert (binder["urlPrefix"], binder["httpTimeout"]) == (gate["urlPrefix"], "65s")


def test_json_is_a_list_of_the_same_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", _A, _B, "-o", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["items"] == [*yaml.safe_load_all(printed(_A, _B))]
    assert "<version: of the API server>" in err


def test_each_placeholder_is_listed_at_the_top_and_no_other(tmp_path: Path) -> None:
    for arguments in ([_A, _B], [_A, "--kubernetes-version", "1.37.1"], [_B, "--ca", str(DATA / "ca.crt")]):
        text = printed(*arguments)
        head = [line for line in text.splitlines() if line.startswith("#")]
        body = text.split("\n", len(head))[-1]
        listed = {line[4:].split("  ")[0] for line in head if line.startswith("#   <")}
        assert listed
        assert [one for one in listed if one not in body] == []
        for one in listed:
            body = body.replace(one, "")
        assert "<" not in body


def test_nothing_but_the_schedulers_own_certificate_is_unknown_where_all_is_given() -> None:
    objects = [*yaml.safe_load_all((DATA / "all-known.yaml").read_text())]
    unknown = [one["kind"] for one in objects if "<" in json.dumps(one)]
    assert unknown == ["Secret"]
    for one in objects:
        if one["kind"] != "Secret":
            annotations = dict(one["metadata"]["annotations"])
            applied = annotations.pop(APPLIED)
            metadata = {key: value for key, value in one["metadata"].items() if key != "annotations"}
            bare = {**one, "metadata": metadata | ({"annotations": annotations} if annotations else {})}
            assert to_apply(bare)["metadata"]["annotations"][APPLIED] == applied


@pytest.mark.parametrize(
    "file", [*sorted((CHART / "ci").glob("*.yaml")), CHART / "values.yaml"], ids=lambda one: one.name
)
def test_whatever_helm_takes_is_taken(file: Path) -> None:
    text = file.read_text()
    values = Values.model_validate(yaml.safe_load(text) or {}, by_alias=True, by_name=False)
    found = parse_values(text)
    listed = [one.name for one in values.schedulers] + [one.scheduler_name for one in values.opt_in]
    assert [one.name for one in found.settings.schedulers] == [*dict.fromkeys(listed)]
    assert found.settings.network_policy.metrics_from == values.network_policy.metrics_from
    assert found.port == values.ports.webhook
    assert found.settings.tls.mode == values.tls.mode
    assert found.fullname == (values.fullname_override or "fairlead")


def test_the_settings_that_the_chart_makes_are_taken_too() -> None:
    text = "schedulers: [{name: gpu, replicas: 3}]\ntls:\n  mode: Provided\nannotationPrefixes:\n- example.com/\n"
    assert parse_values(text).settings == parse_settings(text)


def test_the_values_that_only_the_chart_reads_are_all_known() -> None:
    def aliases(model: type[Params]) -> set[str]:
        return {field.alias or name for name, field in model.model_fields.items()}

    assert aliases(Values) - aliases(OperatorSettings) == CHART_ONLY
    assert aliases(TlsValues) - aliases(TlsSettings) == CHART_ONLY_OF["tls"]
    assert aliases(NetworkPolicyValues) - aliases(NetworkPolicySettings) == CHART_ONLY_OF["networkPolicy"]
    assert aliases(AdmissionValues) - aliases(AdmissionSettings) == CHART_ONLY_OF["admission"]


WRONG: dict[str, tuple[dict[str, str], list[str], int, str]] = {
    "an error in a policy": (
        {"a.yaml": GOOD.replace("unschedulable", "unschedulabel")},
        ["a.yaml"],
        1,
        "a.yaml:4:50: error: spec.filters[0].expression: NodeSpec has no field `unschedulabel`; did you mean",
    ),
    "two policies of one name": (
        {"a.yaml": GOOD, "b.yaml": GOOD},
        ["a.yaml", "b.yaml"],
        1,
        "b.yaml:3:18: warning: metadata.name: another policy has the name 'some': a.yaml:3",
    ),
    "no file": ({}, ["a.yaml"], 2, "a.yaml:1:1: error: cannot be read: no such file or directory"),
    "a scheduler that is never managed": (
        {"a.yaml": GOOD.replace("spec: {", "spec: {schedulerName: default-scheduler, ")},
        ["a.yaml"],
        1,
        "default-scheduler is not listed, and is never managed",
    ),
    "one that is not listed": (
        {"a.yaml": GOOD, "v.yaml": "unlistedSchedulers: Deny"},
        ["a.yaml", "--settings", "v.yaml"],
        1,
        "is not listed in the operator's setting schedulers, and unlistedSchedulers is Deny: list it there",
    ),
    "more than may be": (
        {"a.yaml": GOOD, "v.yaml": "maxUnlistedSchedulers: 0"},
        ["a.yaml", "--settings", "v.yaml"],
        1,
        "maxUnlistedSchedulers: is 0, and 1 schedulers are not listed: ",
    ),
    "no settings": ({"a.yaml": GOOD}, ["a.yaml", "--settings", "v.yaml"], 2, "v.yaml: No such file or directory"),
    "settings that are no YAML": (
        {"a.yaml": GOOD, "v.yaml": "a: ["},
        ["a.yaml", "--settings", "v.yaml"],
        2,
        "v.yaml: the settings are not one YAML document",
    ),
    "settings that nobody reads": (
        {"a.yaml": GOOD, "v.yaml": "shedulers: []"},
        ["a.yaml", "--settings", "v.yaml"],
        2,
        "v.yaml: shedulers: ",
    ),
    "a list for settings": ({"a.yaml": GOOD, "v.yaml": "[]"}, ["a.yaml", "--settings", "v.yaml"], 2, "v.yaml: "),
    "half a version": (
        {"a.yaml": GOOD},
        ["a.yaml", "--kubernetes-version", "1.37"],
        2,
        "--kubernetes-version 1.37: write the full version, such as v1.37.1",
    ),
    "no certificate": ({"a.yaml": GOOD, "ca": "x"}, ["a.yaml", "--ca", "ca"], 2, "ca: contains no PEM certificate"),
    "no file of a certificate": ({"a.yaml": GOOD}, ["a.yaml", "--ca", "ca"], 2, "ca: No such file or directory"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_rendered(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files, arguments, want_code, want = WRONG[case]
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).write_text(text)
    assert main(["render", *arguments]) == want_code
    out, err = capsys.readouterr()
    assert out == ""
    assert want in err
    assert "Traceback" not in err


def test_no_policy_at_all_is_said_and_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("kind: Deployment\napiVersion: apps/v1\n")
    assert main(["render", str(tmp_path)]) == 0
    assert "no SchedulerExtenderPolicy found in" in capsys.readouterr().err
