import collections
import json
from pathlib import Path

import pytest
import yaml

from testbed.errors import ClusterError
from testbed.kwok import LABEL
from testbed.node_template import Alternative, Pool, Template, equal, make, merge
from testbed.node_template_file import default_template, read_template

CAPACITY = {"status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}
MINIMAL = {"node": CAPACITY}


def written(folder: Path, document: object) -> Path:
    path = folder / "nodes.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def test_the_same_seed_makes_the_same_nodes() -> None:
    assert make(200, default_template(), seed=7) == make(200, default_template(), seed=7)


def test_another_seed_makes_other_nodes() -> None:
    assert make(200, default_template(), seed=7) != make(200, default_template(), seed=8)


def test_fewer_nodes_are_the_first_of_more() -> None:
    assert make(10, default_template(), seed=3) == make(1000, default_template(), seed=3)[:10]


def test_nodes_are_made_anew_and_share_nothing() -> None:
    first, second = make(2, equal(labels={"team": "blue"}))
    first["metadata"]["labels"]["team"] = "red"
    assert second["metadata"]["labels"]["team"] == "blue"
    assert make(1, default_template())[0]["status"] is not make(1, default_template())[0]["status"]


def test_pools_are_drawn_by_their_weights() -> None:
    drawn = collections.Counter(
        node["metadata"]["labels"]["example.com/pool"] for node in make(4000, default_template())
    )
    assert {pool: round(count / 4000, 1) for pool, count in drawn.items()} == {
        "general": 0.8,
        "memory": 0.1,
        "gpu": 0.1,
    }
    assert 0.72 < drawn["general"] / 4000 < 0.78


def test_alternatives_are_drawn_by_their_weights() -> None:
    sizes = [
        Alternative({"status": {"capacity": {"cpu": "1"}}}, weight=9),
        Alternative({"status": {"capacity": {"cpu": "2"}}}),
    ]
    drawn = collections.Counter(
        node["status"]["capacity"]["cpu"] for node in make(2000, Template([Pool("only", {}, [sizes])]))
    )
    assert 0.87 < drawn["1"] / 2000 < 0.93


def test_every_node_is_one_of_ours_whatever_the_template_says() -> None:
    template = equal(labels={LABEL[0]: "somebody-elses", "kubernetes.io/hostname": "other"})
    labels = make(1, template)[0]["metadata"]["labels"]
    assert labels[LABEL[0]] == LABEL[1]
    assert labels["kubernetes.io/hostname"] == "other"  # this one is the template's to say


def test_names_and_addresses_are_told_apart() -> None:
    nodes = make(3000, default_template())
    assert len({node["metadata"]["name"] for node in nodes}) == 3000
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 3000
    assert len({node["status"]["nodeInfo"]["machineID"] for node in nodes}) == 3000


def test_nodes_are_json_and_have_what_a_kubelet_would_say() -> None:
    for node in json.loads(json.dumps(make(300, default_template()))):
        assert node["metadata"]["labels"].keys() >= {
            "kubernetes.io/hostname",
            "kubernetes.io/arch",
            "kubernetes.io/os",
            "topology.kubernetes.io/region",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
        }
        assert node["status"]["capacity"].keys() == node["status"]["allocatable"].keys() >= {"cpu", "memory", "pods"}
        assert node["status"]["capacity"]["pods"] == "110"
        assert all(isinstance(amount, str) for amount in node["status"]["capacity"].values())


def test_only_nodes_with_gpus_are_tainted() -> None:
    for node in make(300, default_template()):
        has_gpus = "nvidia.com/gpu" in node["status"]["capacity"]
        assert [taint["key"] for taint in node.get("spec", {}).get("taints", [])] == (
            ["nvidia.com/gpu"] if has_gpus else []
        )


def test_equal_nodes_differ_in_nothing_but_who_they_are() -> None:
    nodes = make(3, equal(cpu="2", memory="4Gi", pods=5, extended={"example.com/fpga": "1"}))
    assert all(
        node["status"]["allocatable"] == {"cpu": "2", "memory": "4Gi", "pods": "5", "example.com/fpga": "1"}
        for node in nodes
    )


def test_a_file_without_pools_is_of_one_kind(tmp_path: Path) -> None:
    (node,) = make(1, read_template(written(tmp_path, {"name": "edge", **MINIMAL})))
    assert node["metadata"]["name"] == "edge-00000"
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}


def test_a_pool_is_laid_over_what_all_nodes_have(tmp_path: Path) -> None:
    pool = {"name": "small", "node": {"status": {"capacity": {"cpu": 1}}}}
    (node,) = make(1, read_template(written(tmp_path, MINIMAL | {"pools": [pool]})))
    assert node["status"]["capacity"] == {"cpu": "1", "memory": "8Gi", "pods": "110"}


def test_laying_over_changes_neither_part() -> None:
    below, above = {"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}
    assert merge(below, above) == {"a": {"b": 1, "d": 2}, "c": [2]}
    assert (below, above) == ({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]})


WRONG: dict[str, tuple[object, str]] = {
    "an empty file": ("", "the file is empty, not a map"),
    "not YAML": ("node: [", "is not YAML"),
    "a list": ([1], "the file is a list, not a map"),
    "a key nobody knows": (MINIMAL | {"pool": []}, "pool is not known here"),
    "a name that no node can have": (MINIMAL | {"name": "Kwok!"}, "name is 'Kwok!'"),
    "no pools": (MINIMAL | {"pools": []}, "pools is empty"),
    "a pool without a name": (MINIMAL | {"pools": [{}]}, "pools[0].name is missing"),
    "a pool's weight of nothing": (MINIMAL | {"pools": [{"name": "a", "weight": 0}]}, "pools[0].weight is 0"),
    "an alternative's weight in words": (MINIMAL | {"vary": [[{"weight": "much"}]]}, "vary[0][0].weight is 'much'"),
    "a choice without alternatives": (MINIMAL | {"vary": [[]]}, "vary[0] is empty"),
    "a choice that is not a list": (MINIMAL | {"vary": [{"spec": {}}]}, "vary[0] is a map, not a list"),
    "a part that nodes do not have": ({"node": {"kind": "Node"}}, "node.kind is not known here"),
    "a status that is made for each node": (
        {"node": {"status": {"addresses": []}}},
        "node.status.addresses is not known here",
    ),
    "a label that is not text": (
        MINIMAL | {"vary": [[{"metadata": {"labels": {"gpu": True}}}]]},
        "vary[0][0].metadata.labels.gpu is True",
    ),
    "a label that is too long": ({"node": {"metadata": {"labels": {"a": "x" * 64}}}}, "node.metadata.labels.a is 'xxx"),
    "an annotation that is not text": (
        {"node": {"metadata": {"annotations": {"a": 1}}}},
        "node.metadata.annotations.a is 1",
    ),
    "an amount that is none": (
        {"node": {"status": {"capacity": {"cpu": "lots"}}}},
        "node.status.capacity.cpu is 'lots'",
    ),
    "a taint without an effect": (
        MINIMAL | {"pools": [{"name": "a", "node": {"spec": {"taints": [{"key": "a"}]}}}]},
        "pools[0].node.spec.taints[0] is {'key': 'a'}",
    ),
    "nodes without memory": ({"node": {"status": {"capacity": {"cpu": 1}}}}, "the pool all has nodes without memory"),
    "memory in some alternatives only": (
        {
            "node": {"status": {"capacity": {"cpu": 1}}},
            "vary": [[{"status": {"capacity": {"memory": 1}}}, {"spec": {}}]],
        },
        "the pool all has nodes without memory",
    ),
}


@pytest.mark.parametrize(("document", "want"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_its_file_its_field_and_a_cure(tmp_path: Path, document: object, want: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(ClusterError) as raised:
        read_template(path)
    assert raised.value.what.startswith(str(path))
    assert want in raised.value.what
    assert raised.value.cure


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"none\.yaml cannot be read"):
        read_template(tmp_path / "none.yaml")
