"""Nodes that requests bring are known again by their bytes, and nothing else than their bytes counts."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.webhook.extender import requests
from fairlead.webhook.extender.caches import DECODED, FullNodeCache
from support.examples import MANY
from support.policy import node, placed, policy
from support.webhook import Asking, body, names_of

PARTS = [b'{"metadata":{"name":"%s"},"spec":{"v":%d}}' % (name, at) for name in (b"a", b"b", b"ab") for at in (1, 2)]
NEW, OPEN = PARTS[1::2], b'{"metadata":{"name":"open"},"list":[]}'
ODD = [b'{"spec":{},"metadata":{"name":"a"}}', b'{ "metadata":{"name":"a"}}', b'{"metadata":{"name":"\\u0061"}}', b"{}"]
POD = b'{"Pod":{"metadata":{"name":"x"}},"Nodes":'


def asked(items: Sequence[bytes], comma: bytes = b",", after: bytes = b'},"NodeNames":null}') -> bytes:
    return POD + b'{"metadata":{},"items":[' + comma.join(items) + b"]" + after


def known(items: Sequence[bytes], limit: int = 10_000) -> FullNodeCache[Any]:
    brought = FullNodeCache[Any](json.loads, limit)
    for item in items:
        brought.node(item)
    return brought


@settings(max_examples=MANY)
@given(st.lists(st.sampled_from(PARTS + ODD), max_size=6), st.lists(st.sampled_from(PARTS + ODD), max_size=6))
def test_a_request_is_read_the_same_whatever_came_before(before: list[bytes], items: list[bytes]) -> None:
    brought = known(before)
    for _ in range(2):
        seen = requests.decode_filter_args(asked(items), brought.split)
        assert [bytes(one) for one in seen.items or ()] == items
        assert json.loads(bytes(seen.nodes or b"")) == {"metadata": {}, "items": [json.loads(one) for one in items]}
        assert [brought.node(one) for one in seen.items or ()] == [json.loads(one) for one in items]


def test_nodes_that_came_before_are_not_read_again() -> None:
    brought, reads = known(PARTS[::2]), list[bytes]()
    brought.read = reads.append
    for items in (PARTS[::2], PARTS[4::-2], [PARTS[2]], [PARTS[0]] * 3):
        found = brought.split(b",".join(items), 0, len(b",".join(items)))
        assert found == items
        again = requests.decode_filter_args(asked(items), brought.split).items or ()
        assert all(one is other for one, other in zip(again, found, strict=True))
        assert [*map(brought.node, found)] == [*map(json.loads, items)]
    assert brought.split(PARTS[0] + b"," + PARTS[1], 0, 99) is None
    assert reads == []
    brought.node(PARTS[1])
    assert reads == [PARTS[1]]


@pytest.mark.parametrize(
    "body",
    [
        asked(NEW, b"}"),
        asked(NEW, b";"),
        asked(NEW, b",,"),
        asked([*NEW, b""]),
        asked([NEW[0] + b" x"]),
        asked([NEW[0][:-1]]),
        asked(NEW, after=b'}},"NodeNames":null}'),
        asked(NEW, after=b',"NodeNames":null}'),
        asked(NEW).replace(b']},"NodeNames"', b'}},"NodeNames"'),
        asked(NEW).replace(b'"items":[', b'"items":{'),
        asked([OPEN[:-2]]),
        asked(NEW)[:-1],
    ],
)
def test_what_is_no_list_is_none_whoever_is_known(body: bytes) -> None:
    for brought in (known([]), known([*NEW, OPEN])):
        with pytest.raises(requests.MalformedError):
            requests.decode_filter_args(body, brought.split)


@pytest.mark.parametrize(
    ("after", "names"),
    [
        (b'},"Nodes":{"items":[{"metadata":{"name":"z"}}]},"NodeNames":null}', None),
        (b'},"Other":{"items":[]},"NodeNames":null}', None),
        (b'},"NodeNames":["a"],"Other":1,"NodeNames":null}', None),
        (b'},"NodeNames":["a"]}', b'["a"]'),
    ],
)
def test_what_others_may_write_is_read_as_go_does(after: bytes, names: bytes | None) -> None:
    seen = requests.decode_filter_args(asked(PARTS[:1], after=after), known(PARTS[:1]).split)
    assert seen.names == names
    if names is None:
        last = b'{"metadata":{"name":"z"}}' if b'"z"' in after else PARTS[0]
        assert [bytes(one) for one in seen.items or ()] == [last]


def test_what_is_kept_is_bounded() -> None:
    brought = known(PARTS * 2, limit=2 * (1 + DECODED) * len(PARTS[-1]))
    assert [brought.split(part, 0, len(part)) for part in PARTS] == [None, None, None, [PARTS[3]], None, [PARTS[5]]]
    assert brought.size == (1 + DECODED) * (len(PARTS[3]) + len(PARTS[5])) <= brought.limit
    brought.node(b'{"metadata":{"name":"c"},"large":"' + b"x" * 99 + b'"}')
    assert (brought.size, brought._written, brought._read) == (0, {}, {})


def test_what_the_mirror_knows_counts_at_every_call() -> None:
    brought = {"metadata": {"name": "a", "labels": {"gpu": "x"}}, "spec": {}, "status": {"allocatable": {"cpu": "8"}}}
    asking = Asking([policy(filters={"f": "pods.size() == 0 && node.metadata.labels['gpu'] == 'x'"})], [node("a")])
    assert names_of(asking.filter(body(nodes=[brought]))) == ["a"]
    asking.nodes.put(node("a", pods=[placed("p")]))
    assert names_of(asking.filter(body(nodes=[brought]))) == []
    asking.nodes.put(node("a"))
    assert names_of(asking.filter(body(nodes=[brought]))) == ["a"]
    brought["metadata"]["labels"] = {"gpu": "y"}  # type: ignore[index]
    assert names_of(asking.filter(body(nodes=[brought]))) == []
