"""bind: from a request and its pod to the Binding to post, or to a refusal. Pure: `webhook.binding` posts it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from fairlead.grants.commit import Refused
from fairlead.grants.group_domain import RequiredDomain
from fairlead.groups.group import Membership, UndecidedGroup
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.evaluate.annotations import Annotations, annotations
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE, Evaluator
from fairlead.policy.evaluate.group_membership import UNDECIDED, membership_of, required_groups
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.requested_devices import RequestedDevices, requested_devices
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.domains import domain_of, no_label
from fairlead.webhook.extender import replies
from fairlead.webhook.extender.call import CallClock, Caller, Outcome, VerbReply, exclusion_reason
from fairlead.webhook.extender.requests import BindArgs, MalformedError
from fairlead.webhook.extender.state import ServingState

POD_GONE: Final = "the pod no longer exists"
NAME_TAKEN: Final = "another pod has that name now"
NO_NODE: Final = "the scheduler names no node"


@dataclass(frozen=True, slots=True)
class BindDecision:
    """Decision to bind a pod to its node."""

    request: BindArgs
    annotations: Mapping[str, str]
    conflicts: tuple[Conflict, ...] = ()
    devices: RequestedDevices | None = None
    """Devices to grant first; None if the pod requests none."""
    pod: Any = None
    """The pod that was decided about; None if there is nothing to post."""
    membership: Membership | None = None
    """Its membership in a group, if it is in one."""
    domains: tuple[RequiredDomain, ...] = ()
    """Domains of the node that the pod's groups have to share."""

    @property
    def binding(self) -> dict[str, Any]:
        """Return the Binding to post."""
        request = self.request
        return binding_of(f"{request.namespace}/{request.name}", request.uid, request.node, self.annotations)

    @property
    def bound(self) -> VerbReply:
        """Return the reply to send once the API server has confirmed the Binding."""
        outcome = Outcome(verb="bind", entry="Fail", pod=self.request.uid, candidates=1, conflicts=self.conflicts)
        return VerbReply(replies.encode_binding(), outcome=outcome)


def binding_of(pod: str, uid: str, node: str, annotations: Mapping[str, str], version: str = "") -> dict[str, Any]:
    """Return a Binding. The UID keeps it from binding another pod of the same name, a version from a changed one."""
    namespace, _, name = pod.partition("/")
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid}
    if version:
        metadata["resourceVersion"] = version
    if annotations:
        metadata["annotations"] = dict(annotations)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


class _Computed(NamedTuple):
    """Wishes of policies for a bind."""

    written: Annotations
    devices: RequestedDevices | Refused | None
    membership: Membership | UndecidedGroup | None
    domains: tuple[RequiredDomain, ...] | Refused


def decide_bind(
    request: BindArgs, pod: Any, state: ServingState, caller: Caller, when: CallClock
) -> BindDecision | VerbReply:
    """Return the decision or the refusal for this pod."""
    if (refusal := refusal_reason(request, pod, caller)) is not None:
        return refusal
    try:
        computed = _computed(request, pod, state, when)
    except MalformedError as error:
        return refuse(request.uid, str(error))
    except TooSlowError as error:
        answer = refuse(request.uid, str(error))
        switched = (
            state.record_timeout(error.policy, "annotations", pod, when.clock()) if when.had_enough_time else None
        )
        return replace(answer, outcome=replace(answer.outcome, too_slow=error.policy, switched=switched))
    if computed is None:
        return BindDecision(request, {}, pod=pod)
    written, devices, membership, domains = computed
    if written.refusal is not None:
        return refuse(request.uid, written.refusal)
    if isinstance(devices, Refused):
        return refuse(request.uid, devices.why)
    if isinstance(membership, UndecidedGroup):
        return refuse(request.uid, UNDECIDED)
    if isinstance(domains, Refused):
        return refuse(request.uid, domains.why)
    return BindDecision(request, written.values, tuple(written.conflicts), devices, pod, membership, domains)


def _computed(request: BindArgs, pod: Any, state: ServingState, when: CallClock) -> _Computed | None:
    """Return what policies want of the bind; None if none applies.

    It is computed in half of the time left. Raises MalformedError and TooSlowError.
    """
    evaluator, view = state.entries["Fail"], state.pod_view(pod)
    clock, before = when.clock, when.clock()
    deadline_ns = before + (when.deadline_ns - before) // 2
    switched, spent = state.circuit_breaker.open_for("annotations", before), dict[str, int]()
    matched = evaluator.matching(
        view,
        str(pod.spec.schedulerName),
        when.now,
        clock=clock,
        deadline_ns=deadline_ns,
        spent=spent,
        switched=switched,
    )
    if not matched:
        return None
    state.read_requests(view)
    before = clock()

    def took(policy: str) -> None:
        nonlocal before
        at = clock()
        spent[policy] = spent.get(policy, 0) + at - before
        before = at
        if at > deadline_ns:
            raise TooSlowError(spent)

    made = annotations(view, matched, evaluator.nodes, request.node, now=when.now, tally=evaluator.tally, took=took)
    membership = membership_of(view, matched, tally=evaluator.tally, clock=clock, deadline_ns=deadline_ns, spent=spent)
    domains = _required_domains(evaluator, view, matched, request.node)
    for one in domains if isinstance(domains, tuple) else ():
        state.groups.holds_lately(one.group, frozenset({tuple(one.domain.values())}), before)
    return _Computed(made, requested_devices(view, matched), membership, domains)


def _required_domains(
    evaluator: Evaluator, pod: PodView, matched: Sequence[Matched], node: str
) -> tuple[RequiredDomain, ...] | Refused:
    """Return the domains of a node that the groups of a pod have to share, or why it cannot be bound there."""
    found = dict[str, RequiredDomain]()
    required = required_groups(pod, matched)
    view = evaluator.nodes.view_of(node) if required else None
    for one in required:
        if one.error is not None:
            return Refused(UNDECIDED)
        domain = UNKNOWN_NODE if view is None else domain_of(view, one.rule.labels)
        if isinstance(domain, str):
            return Refused(domain if view is None else no_label(domain))
        before = found.get(one.key)
        domain, by = (domain, one.policy) if before is None else ({**before.domain, **domain}, before.by)
        found[one.key] = RequiredDomain(one.key, domain, by)
    return tuple(found.values())


def refusal_reason(request: BindArgs, pod: Any, caller: Caller) -> VerbReply | None:
    """Return a refusal if this is not the requested pod, or the caller may not place it; else None."""
    if pod.metadata.uid != request.uid:
        return refuse(request.uid, NAME_TAKEN)
    scheduler = str(pod.spec.schedulerName)
    if scheduler not in caller.schedulers:
        return refuse(request.uid, f"the pod is for the scheduler {scheduler!r}, whose pods the caller may not place")
    if (why := exclusion_reason(caller, request.namespace)) is not None:
        return refuse(request.uid, why)
    if not request.node:  # seen of a scheduler that was being ended
        return refuse(request.uid, NO_NODE)
    return None


def bound_elsewhere(node: str) -> str:
    """Return why a pod is not bound that is on another node."""
    return f"the pod is already bound to node {node}"


def passed_back(pod: str, body: bytes) -> VerbReply:
    """Return the reply of the replica to which a call was passed on, with its outcome."""
    if not (why := replies.binding_error(body)):
        return VerbReply(body, outcome=Outcome(verb="bind", entry="Fail", pod=pod, candidates=1))
    return VerbReply(body, outcome=Outcome(verb="bind", entry="Fail", result="error", pod=pod, error=why))


def refuse(pod: str, why: str) -> VerbReply:
    """Return the reply that leaves the pod unbound; the scheduler tries again."""
    return VerbReply(
        replies.encode_error(why), outcome=Outcome(verb="bind", entry="Fail", result="error", pod=pod, error=why)
    )
