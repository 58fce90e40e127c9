"""Policies, nodes and pods behind the verbs of the webhook."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from fairlead.cel.values.structs import from_json
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.placed_pod import PlacedPod
from fairlead.webhook.extender import bind as placing
from fairlead.webhook.extender import preempt, verbs
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, FailurePolicy, VerbReply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.group_view import NO_GROUPS, GroupView
from fairlead.webhook.extender.requests import BindArgs, MalformedError, decode_bind_args
from fairlead.webhook.extender.state import build_serving_state
from support.policy import NOW, SECOND, Clock, Endless
from support.policy.asking import NEVER

SCHEDULER: Final = "fairlead"


def at(now: int = NOW, clock: Endless | Any = None, deadline_ns: int = NEVER) -> CallClock:
    return CallClock(now, clock or Endless(), deadline_ns)


class Known:
    """A mirror that knows what it is given."""

    def __init__(self, nodes: Nodes, namespaces: Mapping[str, Any] | None = None, unplaced: Iterable[Any] = ()) -> None:
        self.nodes = nodes
        self.namespaces = namespaces or {}
        self.waiting = {(one.metadata.namespace, one.metadata.name): one for one in unplaced}

    def namespace(self, name: str) -> Any | None:
        return self.namespaces.get(name)

    def request_of(self, pod: Any) -> Mapping[str, float]:
        requests = [one.resources.requests for one in pod.spec.containers]
        return {"cpu": sum(float(each.get("cpu", "0")) for each in requests)}

    def granted_uid(self, *_: Any) -> str:
        return ""

    def requests_of_placed(self, *_: PlacedPod) -> Mapping[str, float]:
        return {"cpu": 1.0}

    def unplaced(self, namespace: str, name: str) -> Any | None:
        return self.waiting.get((namespace, name))

    def decode_full_node(self, node: bytes, *, images: bool) -> Any:
        seen = from_json("Node", msgspec.json.decode(node))
        if not images:
            seen = msgspec.structs.replace(seen, status=msgspec.structs.replace(seen.status, images=()))  # type: ignore[attr-defined]
        return seen

    def view_full_node(self, seen: Any) -> NodeView:
        known = self.nodes.view_of(seen.metadata.name)
        cpu = float(seen.status.allocatable.get("cpu", "0"))
        pods = known.pods if known else ()
        return NodeView(seen, pods=pods, allocatable={"cpu": cpu}, requested={"cpu": 1.0 * len(pods)})


class Asking:
    """A world, and who asks."""

    def __init__(
        self,
        policies: Iterable[CompiledPolicy] = (),
        nodes: Iterable[NodeView] = (),
        *,
        namespaces: Mapping[str, Any] | None = None,
        unplaced: Iterable[Any] = (),
        schedulers: Iterable[str] = (SCHEDULER,),
        groups: GroupView = NO_GROUPS,
        **caller: Any,
    ) -> None:
        self.groups = groups
        self.nodes = Nodes()
        for one in nodes:
            self.nodes.put(one)
        self.tally = RuleErrorTally()
        self.pace = CircuitBreaker()
        self.caller = replace(Caller(schedulers=frozenset(schedulers)), **caller)
        self.mirror = Known(self.nodes, namespaces, unplaced)
        self.serve(policies)

    def serve(self, policies: Iterable[CompiledPolicy]) -> None:
        """A new set."""
        self.serving = build_serving_state(
            policy_set(policies), self.nodes, self.mirror, self.pace, NodeNameCache(), self.tally, groups=self.groups
        )

    def filter(self, asked: bytes, entry: FailurePolicy = "Fail", when: CallClock | None = None) -> VerbReply:
        return verbs.filter(asked, self.serving, self.caller, entry, when or at())

    def prioritize(self, asked: bytes, when: CallClock | None = None) -> VerbReply:
        return verbs.prioritize(asked, self.serving, self.caller, when or at())

    def preempt(self, asked: bytes, entry: FailurePolicy = "Fail", when: CallClock | None = None) -> VerbReply:
        return preempt.preempt(asked, self.serving, self.caller, entry, when or at())

    def bind(self, asked: bytes, when: CallClock | None = None) -> BindDecision | BindArgs | VerbReply:
        """Decide; the request itself if the mirror does not hold its pod."""
        try:
            request = decode_bind_args(asked)
        except MalformedError as error:
            return placing.refuse("", str(error))
        pod = self.serving.unplaced(request)
        return request if pod is None else placing.decide_bind(request, pod, self.serving, self.caller, when or at())


def body(
    names: Sequence[str] | None = None,
    *,
    nodes: Sequence[Mapping[str, Any]] | None = None,
    victims: Mapping[str, Sequence[str]] | None = None,
    pod: Mapping[str, Any] | None = None,
    scheduler: str = SCHEDULER,
    **spec: Any,
) -> bytes:
    """A request as the scheduler writes it."""
    metadata = {"name": "x", "namespace": "ml", "uid": "u-x", **(pod or {})}
    asked: dict[str, Any] = {"Pod": {"metadata": metadata, "spec": {"schedulerName": scheduler, **spec}, "status": {}}}
    if victims is not None:
        meta = {node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0} for node, uids in victims.items()}
        asked |= {"NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
    else:
        listed = None if nodes is None else {"metadata": {}, "items": [*nodes]}
        asked |= {"Nodes": listed, "NodeNames": None if names is None else [*names]}
    return json.dumps(asked, separators=(",", ":"), ensure_ascii=False).encode()


def names_of(answer: VerbReply) -> list[str]:
    """Return the names of the nodes that passed, in either form."""
    reply = json.loads(answer.body)
    if reply["NodeNames"] is not None:
        return [*reply["NodeNames"]]
    return [node["metadata"]["name"] for node in reply["Nodes"]["items"]]


class Passing(Clock):
    """A clock for calls that miss their deadline, or do not."""

    def ask(
        self, asking: Asking, verb: str, names: Sequence[str], entry: FailurePolicy = "Fail", *, slow: bool, **more: Any
    ) -> VerbReply:
        """With each look at the clock taking a second and a deadline in the past, or no time at all."""
        self.step = SECOND if slow else 0
        when = at(NOW, self, self.time if slow else self.time + SECOND)
        asked = body(victims={name: ["u"] for name in names}, **more) if verb == "preempt" else body(names, **more)
        if verb == "prioritize":
            return asking.prioritize(asked, when)
        return asking.preempt(asked, entry, when) if verb == "preempt" else asking.filter(asked, entry, when)
