"""What kubectl writes, and what people do to it."""

import json

import pytest
import yaml

from fairlead.simulation.snapshot import Snapshot
from fairlead.simulation.snapshot_error import SnapshotError
from support.simulation.snapshot import listed, namespace, node, pod, written

ALL = [node("n1"), pod("p"), namespace("ml"), {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]
TYPED = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}


def _read(data: bytes, file: str = "a.json") -> Snapshot:
    found = Snapshot()
    found.read(file, data)
    return found


def _names(found: Snapshot) -> tuple[list[str], list[str], list[str], dict[str, int]]:
    keys = [["/".join(filter(None, key)) for key in kept] for kept in (found.nodes, found.pods, found.namespaces)]
    return keys[0], keys[1], keys[2], dict(found.others)


@pytest.mark.parametrize(
    ("file", "data"),
    {
        "a list": ("a.json", json.dumps(listed(*ALL), indent=4).encode()),
        "objects one after the other": ("a.json", b"\n".join(map(written, ALL))),
        "lists one after the other": ("a.json", written(listed(*ALL[:2])) + written(listed(*ALL[2:])) + b"\n\n"),
        "a list in YAML": ("a.yaml", yaml.safe_dump(listed(*ALL)).encode()),
        "documents of YAML": ("a.yaml", yaml.safe_dump_all(ALL).encode() + b"---\n"),
        "YAML of another name": ("<stdin>", yaml.safe_dump_all(ALL).encode()),
        "JSON that is called YAML": ("a.yml", written(listed(*ALL))),
        "as PowerShell writes it": ("a.json", json.dumps(listed(*ALL)).encode("utf-16")),
        "with a mark": ("a.json", b"\xef\xbb\xbf" + written(listed(*ALL))),
        "lists in lists": ("a.json", written(listed(listed(*ALL[:2]), listed(*ALL[2:])))),
    }.values(),
)
def test_all_of_it_is_read(file: str, data: bytes) -> None:
    assert _names(_read(data, file)) == (["n1"], ["ml/p"], ["ml"], {"Secret": 1})


def test_items_of_a_typed_list_need_not_say_what_they_are() -> None:
    assert _names(_read(written(TYPED))) == (["n1"], [], [], {})


def test_a_pod_that_was_written_by_hand_is_in_the_default_namespace() -> None:
    assert [*_read(b"kind: Pod\nmetadata: {name: p}\n", "a.yaml").pods] == [("default", "p")]


def test_the_node_of_another_group_is_none() -> None:
    assert _names(_read(written(node() | {"apiVersion": "longhorn.io/v1"}))) == ([], [], [], {"Node": 1})


def test_times_stay_as_they_are_written() -> None:
    found = _read(b"kind: Node\nmetadata: {name: n1, creationTimestamp: 2026-01-01T00:00:00Z}\n", "a.yaml")
    assert json.loads(bytes(found.nodes["", "n1"].raw))["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


GET = "kubectl get nodes,pods,namespaces -A -o json"
BOMB = b"a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + b"".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join(['*' + chr(97 + at)] * 10)}]\n".encode() for at in range(9)
)


@pytest.mark.parametrize(
    ("file", "data", "want"),
    {
        "cut off": (
            "a.json",
            json.dumps(listed(*ALL), indent=1).encode()[:300],
            "a.json: the JSON ends early, in line 21: the file is cut off; write it again with",
        ),
        "cut off in YAML": ("a.yaml", b'kind: List\nitems:\n- {kind: "Po', "a.yaml: this is not YAML from line 3 on: "),
        "broken": (
            "a.json",
            b'{"kind":\n nope}',
            "a.json: this is not JSON from line 2 on: invalid character; write it",
        ),
        "broken after something": (
            "a.json",
            b'{"kind":"X"}\n\n{"kind" nope}',
            "a.json: this is not JSON from line 3 on: ",
        ),
        "empty": ("a.json", b" \n", f"a.json: the file is empty; write it with `{GET}`"),
        "empty YAML": ("a.yaml", b"# nothing\n---\n", f"a.yaml: the file is empty; write it with `{GET}`"),
        "a table": ("a.txt", b"NAME STATUS\nn1   Ready\n", "a.txt: contains something that is not a Kubernetes object"),
        "a list of JSON": (
            "a.json",
            b'[{"kind":"Node"}]',
            "a.json: contains something that is not a Kubernetes object",
        ),
        "a text in a list": ("a.json", b'{"kind":"List","items":["x"]}', "a.json: contains something that is not"),
        "no kind": ("a.json", b'{"metadata":{"name":"x"}}', "a.json: contains an object without a kind"),
        "no name": ("a.json", b'{"kind":"Node"}', "a.json: a Node has no metadata.name; give it one"),
        "a bomb": (
            "a.yaml",
            BOMB,
            "a.yaml: with its aliases expanded this is more than 50,000,000 values; write them out",
        ),
        "a list in itself": ("a.yaml", b"kind: X\na: &a [*a]\n", "a.yaml: with its aliases expanded this is more than"),
        "very deep": ("a.yaml", b"kind: " + b"[" * 100_000, "a.yaml: it is nested more than 1,000 levels deep"),
        "very deep lists": (
            "a.yaml",
            b"kind: X\na:\n" + b"- " * 100_000,
            "a.yaml: it is nested more than 1,000 levels deep",
        ),
        "very deep JSON": (
            "a.json",
            b'{"kind":' + b"[" * 1_000_000,
            "a.json: it is nested more than 1,000 levels deep",
        ),
        "what JSON has no word for": ("a.yaml", b"kind: X\n? [a]\n: b\n", "a.yaml: "),
    }.values(),
)
def test_what_is_wrong_is_said_in_one_line_that_says_what_to_do(file: str, data: bytes, want: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        _read(data, file)
    assert str(caught.value).startswith(want)
    assert "\n" not in str(caught.value)


def test_one_name_twice_is_told_with_both_files() -> None:
    found = _read(written(listed(node("n1"), pod("p"))))
    with pytest.raises(SnapshotError, match=r"^node n1 is twice in a\.json; keep one of them$"):
        found.read("a.json", written(node("n1")))
    with pytest.raises(SnapshotError, match=r"^pod ml/p is in a\.json and in b\.json; keep one of them$"):
        found.read("b.json", written(pod("p")))
    found.read("b.json", written(pod("p", namespace="web")))
