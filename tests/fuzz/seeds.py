"""Bodies to begin with: what schedulers sent, in every form that Go reads the same, and some made by hand."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from extender import wire
from extender.shapes import KEYS
from support.webhook.asking import body
from support.webhook.forms import forms
from testbed.versions import KUBERNETES

Verb = Literal["filter", "prioritize", "preempt", "bind"]
VERBS: Final[tuple[Verb, ...]] = ("filter", "prioritize", "preempt", "bind")


class Seed(NamedTuple):
    """A body, and the verb that it is meant for."""

    verb: Verb
    body: bytes


@cache
def seeds() -> tuple[Seed, ...]:
    """All of them, each once."""
    return tuple(dict.fromkeys([*_recorded(), *_by_hand()]))


def _recorded() -> Iterator[Seed]:
    for version in KUBERNETES:
        for sample in KEYS:
            verb: Any = sample.split("-")[0]
            for form in forms(wire.read(version, sample)):
                yield Seed(verb, form)


_NODE: Final = {"metadata": {"name": "n1", "labels": {"gpu": "x"}}, "status": {"allocatable": {"cpu": "4"}}}
_PODS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"pod": {"labels": None, "annotations": None, "creationTimestamp": None}},
    {"pod": {"labels": {"gpu": "x", "raise": "no"}, "namespace": ""}},
    {"pod": {"name": 'odd "\\\n\u2028\U0001f600', "uid": ""}},
    {"containers": None, "priority": None, "tolerations": None},
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": None}}], "priority": 7},
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "lots"}}}]},
    {"scheduler": "another"},
)


def _by_hand() -> Iterator[Seed]:
    verbs: tuple[Verb, Verb] = ("filter", "prioritize")
    for pod in _PODS:
        for verb in verbs:
            yield Seed(verb, body(["n1", "n2", "new"], **pod))
            yield Seed(verb, body([], **pod))
            yield Seed(verb, body(nodes=[_NODE, {"metadata": {"name": "new"}}, {}], **pod))
        yield Seed("preempt", body(victims={"n1": ["u-keep", "u-gone"], "n2": [], "new": ["u"]}, **pod))
    both = json.loads(body(["n1"])) | {"Nodes": {"items": [_NODE]}}
    for verb in verbs:
        yield Seed(verb, json.dumps(both).encode())
        yield Seed(verb, body())
        yield Seed(verb, body(nodes=[]))
        yield Seed(verb, body([f"node-{at}" for at in range(300)]))
        yield Seed(verb, body(["\u00e9", '"', "\\", "\x00", "]", "]}", "\u2028"]))
        yield Seed(verb, body(nodes=[_NODE] * 3))
    yield Seed("preempt", body(victims={}))
    yield Seed(
        "preempt", b'{"Pod":{},"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"u"}}],"NumPDBViolations":1}}}'
    )
    yield Seed("preempt", b'{"Pod":{},"NodeNameToMetaVictims":{"n1":null,"n2":{},"n3":{"Pods":null}}}')
    for told in ({}, {"PodName": "x"}, {"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "n1"}):
        yield Seed("bind", json.dumps(told).encode())
    for verb in VERBS:
        for raw in (b"", b"null", b"{}", b"[]", b'""', b"0", b"{", b'{"Pod":', b'{"Pod":null}', b"\xef\xbb\xbf{}"):
            yield Seed(verb, raw)
