"""What the extender answers: plain functions from a request to a reply."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from testbed.api import Object


class Form(Enum):
    """How the end of a body is told."""

    LENGTH = "by its length"
    LAST = "by its length, and no other comes on this connection"
    CHUNKED_WHOLE = "by a last chunk that is sent with the rest"
    CHUNKED_APART = "by a last chunk that is sent by itself"


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply of which the bytes matter, or the status."""

    body: bytes
    status: int = 200
    form: Form = Form.LENGTH


Reply = Callable[[Object], Object | list[Object] | Answer]


def always(reply: Object | list[Object] | Answer) -> Reply:
    """The same, whatever was asked."""

    def answer(_: Object) -> Object | list[Object] | Answer:
        return reply

    return answer


def by_pod(replies: Mapping[str, Reply]) -> Reply:
    """Filter, prioritize, preempt: a reply of its own for each pod, by name."""
    return lambda request: replies[request["Pod"]["metadata"]["name"]](request)


def passing(request: Object, refused: Collection[str] = ()) -> Object:
    """Filter: let all nodes pass but some, in the form that was asked in and without reasons."""
    if request["NodeNames"] is not None:
        return {"NodeNames": [name for name in request["NodeNames"] if name not in refused]}
    return {"Nodes": {"items": [node for node in request["Nodes"]["items"] if node["metadata"]["name"] not in refused]}}


def refusing(*nodes: str, reason: str = "") -> Reply:
    """Filter: let all nodes pass but these, which are refused for good, with a reason if there is one."""

    def reply(request: Object) -> Object:
        reasons = {"FailedAndUnresolvableNodes": dict.fromkeys(nodes, reason)} if reason else {}
        return passing(request, nodes) | reasons

    return reply


def scoring(scores: Mapping[str, float]) -> Reply:
    """Prioritize: these scores, whatever was asked."""
    return always([{"Host": host, "Score": score} for host, score in scores.items()])


def scoring_all(score: int) -> Reply:
    """Prioritize: the same score for every node that was asked about."""
    return lambda request: [{"Host": host, "Score": score} for host in request["NodeNames"]]


def victims(request: Object, dropped: Collection[str] = ()) -> Object:
    """Preempt: keep all candidates but some, with the victims that the scheduler proposed."""
    candidates: Mapping[str, Any] = request["NodeNameToMetaVictims"] or request["NodeNameToVictims"]
    return {
        "NodeNameToMetaVictims": {
            node: {
                "Pods": [{"UID": _uid(pod)} for pod in proposed["Pods"]],
                "NumPDBViolations": proposed["NumPDBViolations"],
            }
            for node, proposed in candidates.items()
            if node not in dropped
        }
    }


def dropping(*nodes: str) -> Reply:
    """Preempt: keep all candidates but these."""
    return lambda request: victims(request, nodes)


unscored = always([])
"""Prioritize: no node is named."""


def _uid(pod: Object) -> str:
    return str(pod["UID"] if "UID" in pod else pod["metadata"]["uid"])


DEFAULTS: Mapping[str, Reply] = {"filter": passing, "prioritize": unscored, "preempt": victims}
