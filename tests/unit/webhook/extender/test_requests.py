"""Bodies that no scheduler writes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.values.structs import from_json
from fairlead.webhook.extender import requests
from fairlead.webhook.extender.requests import MalformedError
from support.webhook import body

METADATA: dict[str, Any] = {"name": "x", "labels": {"a": "b"}}
POD: dict[str, Any] = {"metadata": METADATA, "spec": {"priority": 3}}


def written(pod: object, names: object = ("a",)) -> bytes:
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


NULLS = {
    "fields that are null": {
        **POD,
        "metadata": {**METADATA, "creationTimestamp": None, "annotations": None, "finalizers": None},
    },
    "lists and messages that are null": {**POD, "status": None, "spec": {"priority": 3, "containers": None}},
    "an entry of a map that is null": {**POD, "metadata": {"name": "x", "labels": {"a": "b", "c": None}}},
    "messages that are empty": {**POD, "status": {}, "spec": {"priority": 3, "securityContext": {}}},
    "fields that nobody knows": {**POD, "mood": {"deep": [1, 2.5e300, None]}},
}


@pytest.mark.parametrize("case", NULLS)
def test_pods_of_other_tools(case: str) -> None:
    seen = requests.decode_filter_args(written(NULLS[case])).pod
    assert (seen.metadata.name, seen.metadata.labels, seen.spec.priority) == ("x", {"a": "b"}, 3)
    assert len(seen.spec.containers) == 0


HIDDEN = {
    "where the names seem to begin inside of the pod": (
        b'{"Pod":{"metadata":{"name":"x"},"x":{"a":1,"Nodes":null,"NodeNames":["q"]}},"Nodes":null,"NodeNames":["a"]}',
        ["a"],
    ),
    "the keys of the names twice: the last counts": (
        b'{"Pod":{"metadata":{"name":"x"}},"Nodes":null,"NodeNames":["q"],"Nodes":null,"NodeNames":["a"]}',
        ["a"],
    ),
    "something after the names": (
        b'{"Pod":{"metadata":{"name":"x"}},"Nodes":null,"NodeNames":["a"],"Error":[]}',
        ["a"],
    ),
    "a bracket in a name": (b'{"Pod":{"metadata":{"name":"x"}},"Nodes":null,"NodeNames":["a]}"]}', ["a]}"]),
    "the same in an annotation": (
        b'{"Pod":{"metadata":{"name":"x","labels":{"k":",\\"Nodes\\":null,\\"NodeNames\\":["}}},"Nodes":null,"NodeNames":["a"]}',
        ["a"],
    ),
    "a space at the end": (b'{"Pod":{"metadata":{"name":"x"}},"Nodes":null,"NodeNames":["a"]}\n', ["a"]),
    "keys in two cases: the last counts": (
        b'{"pod":{"metadata":{"name":"x"}},"NodeNames":["q"],"nodenames":["a"]}',
        ["a"],
    ),
}


@pytest.mark.parametrize("case", HIDDEN)
def test_names_are_found_where_they_are(case: str) -> None:
    sent, want = HIDDEN[case]
    asked = requests.decode_filter_args(sent)
    assert asked.pod.metadata.name == "x"
    assert requests.decode_names(asked.names or b"") == want


@given(st.lists(st.text()), st.text(), st.booleans())
def test_whatever_names_are_made_of(names: list[str], note: str, escaped: bool) -> None:
    encodable = all(ord(letter) < 0xD800 or ord(letter) > 0xDFFF for text in [*names, note] for letter in text)
    pod = {"metadata": {"name": "x", "annotations": {"note": note}}}
    request = {"Pod": pod, "Nodes": None, "NodeNames": names}
    if encodable:
        asked = requests.decode_filter_args(json.dumps(request, separators=(",", ":"), ensure_ascii=escaped).encode())
        assert requests.decode_names(asked.names or b"") == names
        assert asked.pod == from_json("Pod", pod)


MALFORMED = {
    "nothing": b"",
    "no JSON": b"hello",
    "null": b"null",
    "a list": b"[]",
    "a string": b'"Pod"',
    "no pod": b"{}",
    "a pod that is null": b'{"Pod":null,"Nodes":null,"NodeNames":["a"]}',
    "a pod that is a list": b'{"Pod":[],"Nodes":null,"NodeNames":["a"]}',
    "something after it": b'{"Pod":{},"Nodes":null,"NodeNames":["a"]}{}',
    "cut": body(["a"])[:-3],
    "cut in the pod": body(["a"])[:30],
    "no UTF-8": body(["a"]).replace(b'"ml"', b'"\xff"'),
    "half of a pair": body(["a"]).replace(b'"ml"', rb'"\ud800"'),
    "a number for a name": body(["a"]).replace(b'"ml"', b"7"),
    "a time that is none": written({"metadata": {"creationTimestamp": "yesterday"}}),
    "a time that is a number": written({"metadata": {"creationTimestamp": 5}}),
    "a time without a zone": written({"metadata": {"creationTimestamp": "2026-01-01T00:00:00"}}),
    "deeper than anybody reads": b'{"Pod":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deeper in a field that nobody knows": b'{"Pod":{"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_no_request_is_refused(case: str) -> None:
    with pytest.raises(MalformedError):
        requests.decode_filter_args(MALFORMED[case])
    with pytest.raises(MalformedError):
        requests.decode_preempt_args(MALFORMED[case])


UNLISTED = {
    "names that are an object": written(POD, {"a": 1}),
    "names that are numbers, with keys in another case": b'{"pod":{},"nodes":null,"nodenames":[1]}',
    "nodes that are a list": b'{"Pod":{},"Nodes":[],"NodeNames":null}',
    "items that are an object": b'{"Pod":{},"Nodes":{"items":{}},"NodeNames":null}',
}


@pytest.mark.parametrize("case", UNLISTED)
def test_what_kube_scheduler_would_not_write_is_looked_at_whoever_needs_it(case: str) -> None:
    with pytest.raises(MalformedError):
        requests.decode_filter_args(UNLISTED[case])


NO_NAMES = {"a string": b'"a"', "an object": b"{}", "numbers": b"[1]", "null in it": b'["a",null]', "cut": b'["a"'}


@pytest.mark.parametrize("case", NO_NAMES)
def test_what_is_no_list_of_names_is_refused(case: str) -> None:
    with pytest.raises(MalformedError):
        requests.decode_names(NO_NAMES[case])


def victims(meta: bytes = b"null", full: bytes = b"null") -> dict[str, tuple[list[str], int]]:
    sent = b'{"Pod":{},"NodeNameToVictims":' + full + b',"NodeNameToMetaVictims":' + meta + b"}"
    seen = requests.decode_preempt_args(sent).victims
    return {name: ([pod.UID for pod in each.Pods], each.NumPDBViolations) for name, each in seen.items()}


VICTIMS: dict[str, tuple[bytes, bytes, dict[str, tuple[list[str], int]]]] = {
    "none": (b"null", b"null", {}),
    "no candidates": (b"{}", b"null", {}),
    "an empty list": (b'{"n":{"Pods":[],"NumPDBViolations":2}}', b"null", {"n": ([], 2)}),
    "no list": (b'{"n":{"Pods":null,"NumPDBViolations":0}}', b"null", {"n": ([], 0)}),
    "nothing at all": (b'{"n":{},"m":null}', b"null", {"n": ([], 0), "m": ([], 0)}),
    "any case": (b'{"N":{"PODS":[{"uid":"a"}],"numPDBViolations":1}}', b"null", {"N": (["a"], 1)}),
    "whole pods": (
        b"null",
        b'{"n":{"Pods":[{"metadata":{"uid":"a","name":"p"}}],"NumPDBViolations":1}}',
        {"n": (["a"], 1)},
    ),
    "UIDs, if both are there": (b"{}", b'{"n":{"Pods":[],"NumPDBViolations":1}}', {}),
}


@pytest.mark.parametrize("case", VICTIMS)
def test_victims_however_they_are_written(case: str) -> None:
    meta, full, want = VICTIMS[case]
    assert victims(meta, full) == want


NO_VICTIMS = {
    "a list": (b"[]", b"null"),
    "a list of nodes": (b'{"n":[]}', b"null"),
    "no UID": (b'{"n":{"Pods":[{}]}}', b"null"),
    "a UID that is a number": (b'{"n":{"Pods":[{"UID":1}]}}', b"null"),
    "a pod that is null": (b'{"n":{"Pods":[null]}}', b"null"),
    "violations that are text": (b'{"n":{"Pods":[],"NumPDBViolations":"1"}}', b"null"),
    "violations that no int64 holds": (b'{"n":{"Pods":[],"NumPDBViolations":9223372036854775808}}', b"null"),
    "a whole pod without a UID": (b"null", b'{"n":{"Pods":[{"metadata":{}}]}}'),
}


@pytest.mark.parametrize("case", NO_VICTIMS)
def test_what_are_no_victims_is_refused(case: str) -> None:
    with pytest.raises(MalformedError):
        victims(*NO_VICTIMS[case])


def test_a_request_to_bind_has_all_four() -> None:
    told = {"PodName": "x", "PodNamespace": "ml", "PodUID": "u", "Node": "n"}
    for key in told:
        with pytest.raises(MalformedError, match=f"missing required field `{key}`"):
            requests.decode_bind_args(json.dumps({name: one for name, one in told.items() if name != key}).encode())
