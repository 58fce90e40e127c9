"""bind: from the bytes of a request to the Binding that is to be posted, or to a refusal. Whoever posts it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fairlead.policy.evaluate.annotations import Annotations, Conflict, annotations
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.webhook.extender import replies, requests
from fairlead.webhook.extender.call import CallClock, Caller, Outcome, VerbReply, exclusion_reason
from fairlead.webhook.extender.requests import BindArgs, MalformedError
from fairlead.webhook.extender.state import ServingState


@dataclass(frozen=True, slots=True)
class BindDecision:
    """A pod that goes to its node."""

    asked: BindArgs
    annotations: Mapping[str, str]
    conflicts: tuple[Conflict, ...] = ()

    @property
    def binding(self) -> dict[str, Any]:
        """What is posted. The UID keeps another pod of that name from being bound."""
        asked = self.asked
        metadata: dict[str, Any] = {"name": asked.name, "namespace": asked.namespace, "uid": asked.uid}
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": asked.node}
        return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}

    @property
    def bound(self) -> VerbReply:
        """To be said once the API server has confirmed it."""
        outcome = Outcome(verb="bind", gate="Fail", pod=self.asked.uid, candidates=1, conflicts=self.conflicts)
        return VerbReply(replies.encode_binding(), outcome=outcome)


def decide_bind(
    body: bytes, world: ServingState, caller: Caller, when: CallClock
) -> BindDecision | BindArgs | VerbReply:
    """What is to be done; the request itself where the mirror knows no such pod: `place` the one the API server has.

    The mirror may be behind, and it does not hold pods that have a node: a call may come again after the first one
    came through unheard.
    """
    try:
        asked = requests.decode_bind_args(body)
    except MalformedError as error:
        return refused("", str(error))
    pod = world.mirror.unplaced(asked.namespace, asked.name)
    return asked if pod is None or pod.metadata.uid != asked.uid else decide_bind_for(asked, pod, world, caller, when)


def decide_bind_for(
    asked: BindArgs, pod: Any, world: ServingState, caller: Caller, when: CallClock
) -> BindDecision | VerbReply:
    """The same for a pod that was found."""
    if (stranger := refusal_reason(asked, pod, caller)) is not None:
        return stranger
    try:
        made = _annotations(asked, pod, world, when)
    except MalformedError as error:
        return refused(asked.uid, str(error))
    except TooSlowError as error:
        answer = refused(asked.uid, str(error))
        switched = world.record_timeout(error.policy, "binding", pod, when.clock()) if when.had_enough_time else None
        return replace(answer, outcome=replace(answer.outcome, too_slow=error.policy, switched=switched))
    if made.refusal is not None:
        return refused(asked.uid, made.refusal)
    return BindDecision(asked, made.values, tuple(made.conflicts))


def _annotations(asked: BindArgs, pod: Any, world: ServingState, when: CallClock) -> Annotations:
    """What the policies write, computed in half of the time that there is. Raises MalformedError and TooSlowError."""
    gate, view = world.gates["Fail"], world.pod_view(pod)
    clock, before = when.clock, when.clock()
    deadline = before + (when.deadline - before) // 2
    switched, spent = world.circuit_breaker.open_for("binding", before), dict[str, int]()
    matched = gate.matching(
        view, str(pod.spec.schedulerName), when.now, clock=clock, deadline=deadline, spent=spent, switched=switched
    )
    if not matched:
        return Annotations()
    view, before = world.with_requests(view), clock()

    def took(policy: str) -> None:
        nonlocal before
        at = clock()
        spent[policy] = spent.get(policy, 0) + at - before
        before = at
        if at > deadline:
            raise TooSlowError(spent)

    return annotations(view, matched, gate.nodes, asked.node, now=when.now, tally=gate.tally, took=took)


def refusal_reason(asked: BindArgs, pod: Any, caller: Caller) -> VerbReply | None:
    """A refusal where the pod is not the one that was meant, or not one that the caller may place."""
    if pod.metadata.uid != asked.uid:
        return refused(asked.uid, "another pod has that name now")
    scheduler = str(pod.spec.schedulerName)
    if scheduler not in caller.schedulers:
        return refused(asked.uid, f"the pod is for the scheduler {scheduler!r}, whose pods the caller may not place")
    if (why := exclusion_reason(caller, asked.namespace)) is not None:
        return refused(asked.uid, why)
    return None


def refused(pod: str, why: str) -> VerbReply:
    """The pod is not bound; the scheduler tries again."""
    return VerbReply(
        replies.encode_error(why), outcome=Outcome(verb="bind", gate="Fail", result="error", pod=pod, error=why)
    )
