"""`fairlead affinity`: what policies imply, and what pods would be created with."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.policy.affinity.node_affinity import as_yaml
from policies.good import policy
from support.docs.pages import CHECKOUT
from support.simulation.snapshot import Object, namespace, pod
from support.simulation.workloads import workload

_L: Final = "node.metadata.labels"
_EXAMPLES: Final = CHECKOUT / "examples"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(name: str, *objects: Object) -> str:
    Path(name).write_text(yaml.safe_dump_all(objects))
    return name


def of_pool(**spec: Any) -> Object:
    return policy(filters=[{"name": "pool", "expression": f"{_L}[?'pool'].orValue('') == 'memory'"}], **spec)


def waiting(name: str = "train", **more: Any) -> Object:
    made = pod(name, **more)
    made["spec"]["schedulerName"] = "fairlead"
    return made


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["affinity", *arguments])
    return code, *capsys.readouterr()


_DISK: Final = {"name": "disk", "expression": f"'ssd' in {_L}"}
_IN_SHADOW: Final[dict[str, tuple[Object, str, list[str]]]] = {
    "a policy": (of_pool(mode="Shadow"), "nothing\n  left out, as long as it is in shadow: pool\n", ["pool"]),
    "a filter": (
        policy(filters=[{"name": "pool", "expression": "'pool' in node.metadata.labels", "mode": "Shadow"}, _DISK]),
        "exactly the nodes that pass\n  - ssd is there\n  left out, as long as it is in shadow: pool\n",
        ["pool"],
    ),
    "filters": (
        policy(filters=[_DISK, {"name": "never", "expression": "false"}], mode="Shadow"),
        "nothing\n  left out, as long as they are in shadow: disk, never\n",
        ["disk", "never"],
    ),
    "a policy that is off": (
        policy(filters=[_DISK | {"mode": "Shadow"}], mode="Disabled"),
        "nothing\n",
        [],
    ),
}


@pytest.mark.parametrize(("made", "said", "rules"), _IN_SHADOW.values(), ids=_IN_SHADOW)
def test_what_is_in_shadow_publishes_nothing(
    made: Object, said: str, rules: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, written("p.yaml", made)) == (0, f"some (scheduler fairlead): {said}", "")
    report = json.loads(run(capsys, written("p.yaml", made), "-o", "json")[1])
    assert report["inShadow"] == [{"policy": "some", "rule": rule} for rule in rules]
    published = [one["name"] for of_scheduler in report["published"] for one in of_scheduler["policies"]]
    assert published == (["some"] if "ssd is there" in said else [])


def test_policies_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("gpu-class", "tenant-nodes", "hot-nodes")
    room = [{"name": "both", "expression": f"'ssd' in {_L} && int({_L}['n']) > 3 && free['cpu'] > 2.0"}]
    files = [written("mine.yaml", policy(filters=room)), *(str(_EXAMPLES / f"{name}.yaml") for name in names)]
    code, out, err = run(capsys, *files)
    assert (code, err) == (0, "")
    assert out == (
        "tenant-nodes (scheduler fairlead): exactly the nodes that pass\n"
        "  for pods with namespace's label kubernetes.io/metadata.name (absent: '') not in kube-system\n"
        "  - example.com/tenant is the namespace's label example.com/tenant (absent: '')\n"
        "  - example.com/tenant is absent, for pods with namespace's label example.com/tenant (absent: '') in ''\n"
        "\n"
        "gpu-class (scheduler fairlead): exactly the nodes that pass\n"
        "  for pods with limit of nvidia.com/gpu\n"
        "  - any node, for pods with label example.com/gpu (absent: any) in any\n"
        "  - example.com/gpu is the label example.com/gpu (absent: any)\n"
        "  - example.com/gpu is absent, for pods with label example.com/gpu (absent: -) in ''\n"
        "\n"
        "hot-nodes (scheduler fairlead): nothing\n"
        "  left out of not-hot: `data.busy < 0.7`\n"
        "  left out of not-under-pressure: `node.status.conditions.exists(one, one.type in ['MemoryPressure', "
        "'DiskPressure'...`\n"
        "  left out of not-crowded: it is decided by a strategy\n"
        "\n"
        "some (scheduler fairlead): the nodes that pass, and others\n"
        "  - ssd is there and n > 3\n"
        "  left out of both: `free['cpu'] > 2.0`\n"
    )


def test_a_match_that_labels_cannot_say(capsys: pytest.CaptureFixture[str]) -> None:
    urgent = {"conditions": [{"name": "urgent", "expression": "pod.spec.priority > 5"}]}
    _, out, _ = run(capsys, written("p.yaml", of_pool(match=urgent)))
    assert out == (
        "some (scheduler fairlead): nothing, because labels cannot say which pods it matches\n"
        "  urgent: `pod.spec.priority > 5`\n"
    )


def test_a_pod_and_a_template(capsys: pytest.CaptureFixture[str]) -> None:
    web = workload("Deployment", "web")
    web["spec"]["template"]["spec"]["schedulerName"] = "fairlead"
    other = pod("other")
    other["spec"]["schedulerName"] = "mine"
    pods = written("pods.yaml", waiting(), web, other)
    code, out, err = run(capsys, written("p.yaml", of_pool()), "-f", pods)
    requirement = {"key": "pool", "operator": "In", "values": ["memory"]}
    terms = as_yaml([{"matchExpressions": [requirement]}])
    assert (code, err) == (0, "")
    assert f"\npod ml/train would be created with\n{terms}" in out
    assert f"\ndeployment ml/web would be created with\n{terms}" in out
    assert "\npod ml/other: no policy is of its scheduler mine\n" in out


def test_why_a_pod_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    matched = {"podSelector": {"matchLabels": {"app": "x"}}}
    own = waiting("own", labels={"app": "x"})
    own["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
            }
        }
    }
    _, out, _ = run(capsys, written("p.yaml", of_pool(match=matched)), "-f", written("pods.yaml", waiting(), own))
    assert "pod ml/train: nothing is implied for it\n" in out
    assert "pod ml/own: it has no controller and required terms of its own" in out


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_the_labels_of_a_namespace_come_from_the_files(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    policies = str(_EXAMPLES / "tenant-nodes.yaml")
    files = written("pods.yaml", waiting(), namespace("ml", **{"example.com/tenant": "red"}))
    code, out, err = run(capsys, policies, "-f", files, "-o", output)
    assert (code, err) == (0, "")
    report = yaml.safe_load(out)
    assert report["pods"] == [
        {
            "pod": "pod ml/train",
            "scheduler": "fairlead",
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "example.com/tenant", "operator": "In", "values": ["red"]}]}
            ],
            "whyNone": "",
        }
    ]
    [published] = report["published"]
    assert [one["name"] for one in published["policies"]] == ["tenant-nodes"]
    if output == "json":
        assert json.loads(out) == report


def test_labels_of_a_namespace_that_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    policies = str(_EXAMPLES / "tenant-nodes.yaml")
    _, out, err = run(capsys, policies, "-f", written("pods.yaml", waiting()))
    assert err == "fairlead affinity: labels of the namespace ml are taken as absent: no file has it\n"
    assert "operator: DoesNotExist" in out


BAD: Final = {
    "no policy": (["none.yaml"], 2, "none.yaml"),
    "an error in a policy": (["bad.yaml"], 1, "bad.yaml:"),
    "no pod": (["p.yaml", "-f", "p.yaml"], 2, "has no pods to simulate"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), BAD.values(), ids=BAD)
def test_it_cannot_read(arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    written("p.yaml", of_pool())
    written("bad.yaml", policy(filters=[{"name": "f", "expression": "nodes"}]))
    found, out, err = run(capsys, *arguments)
    assert (found, out) == (code, "")
    assert err.startswith("fairlead affinity: ")
    assert said in err
