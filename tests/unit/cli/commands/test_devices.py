"""`fairlead devices`: who has what, and what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.grants.entry import GrantedDevice, LedgerEntry
from fairlead.grants.ledger import create_body
from policies.good import device_share, policy
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.simulation.snapshot import Object, listed, node, pod

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
Run = Callable[..., tuple[int, str, str]]


SHARES = policy(binding={"deviceShare": [device_share()]})


def cards(name: str, count: int = 2) -> Object:
    made = node(name, room={MEM: str(8 * count), COUNT: str(count)})
    made["status"]["capacity"] = made["status"]["allocatable"]
    return made


def asking(name: str, amount: int, on: str = "", said: str | None = None) -> Object:
    made = pod(name, on=on, asks={MEM: str(amount)})
    made["metadata"]["resourceVersion"] = "5"
    made["spec"]["schedulerName"] = "fairlead"
    if said is not None:
        told = json.dumps({"v": 1, "gpu": [{"id": said, MEM: amount}]})
        made["metadata"]["annotations"] = {"fairlead.dev/devices": told, "fairlead.dev/devices.gpu": said}
    return made


def entry(name: str, device: str, amount: int) -> LedgerEntry:
    return LedgerEntry(f"ml/{name}", "5", "some", {"gpu": (GrantedDevice(device, {MEM: amount}),)})


def ledger(node: str, *entries: LedgerEntry, **more: str) -> Object:
    made = create_body(node, {f"u-{one.pod.removeprefix('ml/')}": one for one in entries})
    made["metadata"] |= {"namespace": "fairlead-system", "uid": "l", "resourceVersion": "9"}
    made["data"] |= more
    return made


CLUSTER = [
    cards("g1"),
    cards("g2"),
    node("plain"),
    asking("a", 5, "g1", said="0"),
    asking("b", 2, "g1", said="0"),
    asking("waits", 3),
    asking("stray", 1, "g2"),
    ledger("g1", entry("a", "0", 5), entry("b", "1", 2), entry("waits", "1", 3), entry("ended", "0", 8)),
    ledger("g2", u_x="{}", u_y='{"v": 7}'),
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(yaml.safe_dump(SHARES))
    Path("c.json").write_text(json.dumps(listed(*CLUSTER)))

    def devices(*arguments: str) -> tuple[int, str, str]:
        code = main(["devices", *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return devices


FILES = ("--policies", "p.yaml", "--snapshot", "c.json")


def test_the_cluster_has_a_line_for_each_node_and_the_totals(run: Run) -> None:
    code, out, err = run(*FILES)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[:4]] == [
        ["NODE", "RESOURCE", "DEVICES", "CAPACITY", "GRANTED", "FREE", "LARGEST", "FREE"],
        ["g1", MEM, "2", "16", "10", "(62%)", "6", "3"],
        ["g2", MEM, "2", "16", "0", "(0%)", "14", "7"],
        ["all", "2", MEM, "4", "32", "10", "(31%)", "20", "7"],
    ]


@pytest.mark.parametrize(
    "said",
    [
        "g1: annotations of ml/b are wrong: they say 0, and it was granted 1",
        "g1: 1 entry of pods that ended or are gone, which the next write removes",
        f"g2: ml/stray was granted no {MEM}: its 1 are charged to every device",
        "g2: the entry of pod u_x cannot be read: ",
        "; the next grant on the node removes it once that pod has ended or is gone\n",
        "g2: the entry of pod u_y was written by a newer version of Fairlead (format 7): nothing is granted here",
        " until that pod has ended or is gone, or all replicas run that version\n",
    ],
)
def test_what_is_wrong_is_named(run: Run, said: str) -> None:
    assert said in run(*FILES)[1]


def test_a_node_tells_who_has_what(run: Run) -> None:
    lines = [line.split() for line in run("g1", *FILES)[1].splitlines()]
    assert ["0", MEM, "8", "5", "3", "yes"] in lines
    assert ["1", MEM, "8", "5", "3", "yes"] in lines
    assert ["ml/b", "1", "2", MEM, "Placed", "some"] in lines
    assert ["ml/waits", "1", "3", MEM, "Binding", "some"] in lines
    assert not any(line[:1] == ["ml/ended"] for line in lines)


def test_the_same_for_programs(run: Run) -> None:
    found = json.loads(run(*FILES, "-o", "json")[1])
    (g1, g2) = found["nodes"]
    assert [one["grantedPercent"] for one in (*g1["totals"], *found["totals"])] == [62.5, 31.2]
    assert g1["differingAnnotations"] == [{"pod": "ml/b", "ledger": ["1"], "annotations": ["0"]}]
    assert g2["foreignPods"] == [{"pod": "ml/stray", "resource": MEM, "amount": 1}]
    assert (g1["source"], g2["newerEntries"]) == ("Ledger", {"u_y": 7})


def test_ledgers_of_a_node_in_several_namespaces_all_count(run: Run) -> None:
    other = ledger("g1", entry("b", "1", 2))
    other["metadata"]["namespace"] = "apart"
    Path("c.json").write_text(json.dumps(listed(*CLUSTER[:5], ledger("g1", entry("a", "0", 5)), other)))
    _, out, err = run(*FILES)
    assert out.splitlines()[1].split() == ["g1", MEM, "2", "16", "7", "(44%)", "9", "6"]
    assert "1 node has several ledgers of devices (fairlead-grants-g1 in apart, fairlead-system)" in err


def test_without_a_ledger_annotations_tell(run: Run) -> None:
    Path("c.json").write_text(json.dumps(listed(cards("g1"), asking("a", 5, "g1", said="0"))))
    out = run(*FILES)[1]
    assert out.splitlines()[1].split() == ["g1", MEM, "2", "16", "5", "(31%)", "11", "8"]
    assert "g1: without a ledger; this is what annotations of its pods say" in out


def test_sick_devices_are_named_and_a_layout_that_is_unknown(run: Run) -> None:
    sick = cards("g1")
    sick["status"]["allocatable"] = sick["status"]["capacity"] | {MEM: "8"}
    Path("c.json").write_text(json.dumps(listed(sick)))
    assert f"g1: no share of {MEM} is granted: device layout does not say which device" in run("g1", *FILES)[1]


def test_an_id_of_no_device_in_the_list_of_unhealthy_ones_is_named(run: Run) -> None:
    share = device_share(layout={"count": COUNT}, unhealthy={"annotation": "bad"})
    Path("p.yaml").write_text(yaml.safe_dump({**SHARES, "spec": {"binding": {"deviceShare": [share]}}}))
    there = cards("g1")
    there["metadata"]["annotations"] = {"bad": "0,card-1"}
    Path("c.json").write_text(json.dumps(listed(there)))
    said = (
        f"g1: no share of {MEM} is granted: the list of unhealthy devices names an id that no device of the node has:"
        " 0, card-1"
    )
    assert said in run("g1", *FILES)[1]


SICK_LISTS = {"configMap": {"namespace": "kube-system", "prefix": "unhealthy-gpu-", "key": "gpus"}}


@pytest.mark.parametrize(
    ("config_maps", "said"),
    [
        ({"unhealthy-gpu-g1": "1"}, "g1: unhealthy: 1"),
        ({"unhealthy-gpu-g2": "1"}, f"g1: no share of {MEM} is granted: device layout does not say which device"),
        ({}, f"g1: no share of {MEM} is granted: the list of unhealthy devices is not read"),
    ],
)
def test_config_maps_say_which_devices_are_sick(run: Run, config_maps: dict[str, str], said: str) -> None:
    share = device_share(layout={"count": COUNT}, unhealthy=SICK_LISTS)
    Path("p.yaml").write_text(yaml.safe_dump(policy(binding={"deviceShare": [share]})))
    sick = cards("g1")
    sick["status"]["allocatable"] = sick["status"]["capacity"] | {MEM: "8"}
    lists = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"},
            "data": {"gpus": text},
        }
        for name, text in config_maps.items()
    ]
    Path("c.json").write_text(json.dumps(listed(sick, *lists)))
    assert said in run("g1", *FILES)[1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan", *FILES), 2, "there is no node 'plan': did you mean plain?"),
        (("plain", *FILES), 0, "the node has no devices that a policy shares"),
        (FILES[2:], 2, "also give --policies FILE"),
    ],
)
def test_what_is_not_there(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    found, out, err = run(*arguments)
    assert found == code
    assert said in out + err


def test_without_a_policy_that_shares_it_says_so(run: Run) -> None:
    Path("p.yaml").write_text(yaml.safe_dump(policy(filters=[{"name": "f", "expression": "true"}])))
    assert run(*FILES)[1] == "no policy shares devices (binding.deviceShare)\n"


def _answers(**more: Any) -> dict[str, Any]:
    return {
        "/version": {},
        POLICIES: items(SHARES),
        "/api/v1/nodes": items(*CLUSTER[:3]),
        "/api/v1/pods": items(*CLUSTER[3:7]),
        "/api/v1/namespaces": items(),
        **more,
    }


@pytest.mark.parametrize(
    ("ledgers", "granted", "note"),
    [
        ({"/api/v1/configmaps": items(*CLUSTER[7:])}, "10", ""),
        (
            {
                "/api/v1/configmaps": 403,
                "/api/v1/namespaces/fairlead-system/configmaps": items(*CLUSTER[7:]),
            },
            "10",
            "",
        ),
        (
            {"/api/v1/configmaps": 403, "/api/v1/namespaces/fairlead-system/configmaps": 403},
            "7",
            "ledgers of devices are unknown, and annotations of pods are used",
        ),
    ],
)
def test_ledgers_are_read_as_far_as_one_may(
    run: Run, ledgers: dict[str, Any], granted: str, note: str, tmp_path: Path
) -> None:
    with api_server(_answers(**ledgers), tmp_path) as file:
        code, out, err = run("--kubeconfig", str(file))
    assert code == 0, err
    assert out.splitlines()[1].split()[4] == granted
    assert note in err
    assert bool(err) == bool(note)


def test_pods_of_files_without_a_uid_have_their_names(run: Run) -> None:
    strays = [asking("one", 1, "g1"), asking("two", 2, "g1")]
    for stray in strays:
        del stray["metadata"]["uid"]
    del strays[1]["metadata"]["namespace"]
    Path("c.json").write_text(json.dumps(listed(*CLUSTER[:2], *strays, ledger("g1", entry("a", "0", 5)))))
    (g1, *_) = json.loads(run(*FILES, "-o", "json")[1])["nodes"]
    assert [(one["pod"], one["amount"]) for one in g1["foreignPods"]] == [("ml/one", 1), ("default/two", 2)]


def test_explain_charges_a_waiting_pod_nothing_for_its_own_entry(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.json").write_text(json.dumps(listed(cards("g1", 1), asking("x", 5), ledger("g1", entry("x", "0", 5)))))
    assert main(["explain", "pod/x", "-n", "ml", *FILES]) == 0
    assert "1 of 1 node is possible" in capsys.readouterr().out
