"""filter, prioritize and preempt: from the bytes of a request to those of its reply.

Functions of the request and the world: no I/O, no waiting. Past the deadline a call is answered with an error that
names the policy. Filter has room for an error in its reply; that of the others is another status than 200, which the
scheduler takes for one.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from fairlead.pki.identities import NO_POD
from fairlead.policy.evaluate.deadline import TooSlowError, too_slow
from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE, Evaluator
from fairlead.policy.evaluate.filter_result import Filtered, Rule
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.evaluate.preemption import dropped
from fairlead.policy.evaluate.rule_errors import Tally
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.views.node_table import Nodes
from fairlead.policy.views.pod_and_node import PodView
from fairlead.webhook.extender import replies, requests
from fairlead.webhook.extender.call import GUARD, Answer, Caller, Gate, Moment, Outcome, Result, guarded
from fairlead.webhook.extender.circuit_breaker import Part
from fairlead.webhook.extender.replies import UNSAID, Reasons
from fairlead.webhook.extender.requests import Args, Bytes, MalformedError, PreemptArgs, Victims
from fairlead.webhook.extender.state import World

OK: Final = 200
BAD_REQUEST: Final = 400
UNAVAILABLE: Final = 503
SAMPLE: Final = 100
"""The scheduler never stops looking for nodes before it has found so many."""
A = TypeVar("A", Args, PreemptArgs)


@dataclass(frozen=True, slots=True)
class _Call:
    """Who asks whom, and when."""

    world: World
    caller: Caller
    evaluator: Evaluator
    when: Moment
    outcome: Outcome
    spent: dict[str, int] = field(default_factory=dict)
    """What the conditions of each policy took."""

    @property
    def part(self) -> Part:
        return "scores" if self.outcome.verb == "prioritize" else "gate"

    def simulated(self) -> "_Call":
        """The same without a trace; about nodes of its own, which those of a preemption are not."""
        nodes = self.evaluator.nodes if self.outcome.verb == "preempt" else Nodes()
        evaluator = Evaluator(self.evaluator.policies, nodes, tally=Tally())
        return replace(self, evaluator=evaluator, outcome=replace(self.outcome, simulated=True))


@dataclass(frozen=True, slots=True)
class _Subject:
    """The pod, and the policies that have a say."""

    pod: PodView
    matched: Sequence[Matched]
    refused: tuple[Rule, str] | None = None
    """Who refuses the pod on every node, and why."""


def filter(body: bytes, world: World, caller: Caller, gate: Gate, when: Moment) -> Answer:  # noqa: A001 - its name
    """Which nodes the pod may use."""
    call = _Call(world, caller, world.gates[gate], when, Outcome(verb="filter", gate=gate))
    return _run(call, lambda body: requests.args(body, world.brought.split), _filter, body)


def prioritize(body: bytes, world: World, caller: Caller, when: Moment) -> Answer:
    """Which nodes suit the pod better than others."""
    call = _Call(world, caller, world.scores, when, Outcome(verb="prioritize"))
    return _run(call, lambda body: requests.args(body, world.brought.split), _prioritize, body)


def preempt(body: bytes, world: World, caller: Caller, gate: Gate, when: Moment) -> Answer:
    """On which nodes others may be evicted for the pod."""
    call = _Call(world, caller, world.gates[gate], when, Outcome(verb="preempt", gate=gate))
    return _run(call, requests.preempt_args, _preempt, body)


def _run(call: _Call, read: Callable[[bytes], A], work: Callable[[_Call, A], Answer], body: bytes) -> Answer:
    try:
        asked = read(body)
    except MalformedError as error:
        return _failed(call, str(error), BAD_REQUEST)
    try:
        if asked.is_simulated or asked.pod.metadata.name == NO_POD:
            call = call.simulated()
        return work(call, asked)
    except MalformedError as error:
        return _failed(call, str(error), BAD_REQUEST)
    except TooSlowError as error:
        late = error.beside(call.spent) if call.spent else error
        outcome = replace(call.outcome, pod=str(asked.pod.metadata.uid), too_slow=late.policy)
        if call.when.fair and not outcome.simulated:
            switched = call.world.missed(late.policy, call.part, asked.pod, call.when.clock())
            outcome = replace(outcome, switched=switched)
        return _failed(replace(call, outcome=outcome), str(late), UNAVAILABLE)


def _failed(call: _Call, why: str, status: int) -> Answer:
    outcome = replace(call.outcome, result="error", error=why)
    if outcome.verb == "filter":
        return Answer(replies.filtered(error=why), outcome)
    return Answer(replies.failed(why), outcome, status)


def _subject(call: _Call, pod: Any) -> _Subject:
    scheduler = str(pod.spec.schedulerName)
    if scheduler not in call.caller.schedulers:
        return _Subject(PodView(pod), ())
    view = call.world.view(pod)
    if (why := guarded(call.caller, view.namespace)) is not None:
        return _Subject(view, (), (GUARD, why) if call.outcome.gate == "Fail" else None)
    when = call.when
    switched = call.world.pace.switched(call.part, when.clock())
    matched = call.evaluator.matching(
        view, scheduler, when.now, clock=when.clock, deadline=when.deadline, spent=call.spent, switched=switched
    )
    if not matched:
        return _Subject(view, ())
    view = call.world.whole(view)
    if switched is None:
        return _Subject(view, matched)
    slow = [each.policy.name for each in matched if each.switched]
    refuses = slow and call.outcome.gate == "Fail"
    left = [each for each in matched if not each.switched]
    return _Subject(view, left, ((slow[0], ""), too_slow(slow[0])) if refuses else None)


def _filter(call: _Call, asked: Args) -> Answer:
    subject = _subject(call, asked.pod)
    outcome = replace(call.outcome, pod=subject.pod.uid)
    if subject.refused is None and not any(each.policy.filters for each in subject.matched):
        return Answer(replies.filtered(asked.names, asked.nodes), outcome)
    candidates = _candidates(call, asked)
    outcome = replace(outcome, candidates=len(candidates.names))
    if subject.refused is not None and candidates.names:
        if subject.refused[0] != GUARD:  # which nobody ever mends
            outcome = replace(outcome, waits=_waits(call, subject.pod))
        return _refused(candidates, *subject.refused, outcome)
    when = call.when
    found = call.evaluator.judge(
        subject.pod, subject.matched, candidates.names, now=when.now, clock=when.clock, deadline=when.deadline
    )
    if len(found.passed) == len(candidates.names):
        return Answer(replies.filtered(asked.names, asked.nodes), outcome)
    outcome = replace(
        outcome,
        result="refused" if found.passed else "empty",
        refusals=found.by_rule,
        unknown=tuple(found.unknown),
        waits=_waits(call, subject.pod) if not found.passed else None,
        missed_sample=not found.passed and _is_sample(call, candidates) and found.passes_elsewhere,
    )
    caller = call.caller
    is_read = not found.passed or caller.always_reasons or (outcome.gate == "Fail" and caller.ignore_gate)
    reasons = _reasons(found, resolvable=caller.resolvable) if is_read else UNSAID
    return Answer(replies.filtered(*candidates.written(found.passed), reasons), outcome)


def _refused(candidates: "_Candidates", rule: Rule, why: str, outcome: Outcome) -> Answer:
    """All are, whatever is known of them."""
    reasons = dict.fromkeys(candidates.names, why)
    outcome = replace(outcome, result="empty", refusals={rule: len(candidates.names)})
    return Answer(replies.filtered(*candidates.written(()), Reasons(unresolvable=reasons)), outcome)


def _reasons(found: Filtered, *, resolvable: bool) -> Reasons:
    failed, unresolvable = dict[str, str](), dict.fromkeys(found.unknown, UNKNOWN_NODE)
    for name, refusal in found.refused.items():
        (failed if resolvable and refusal.resolvable else unresolvable)[name] = refusal.reason
    return Reasons(failed or None, unresolvable or None)


def _waits(call: _Call, pod: PodView) -> tuple[str, str] | None:
    return None if call.outcome.simulated else (pod.namespace, pod.name)


def _is_sample(call: _Call, candidates: "_Candidates") -> bool:
    """Whether the scheduler may have asked about a part of the nodes that would do for it."""
    return not call.outcome.simulated and SAMPLE <= len(candidates.names) < len(call.evaluator.nodes.slots)


def _prioritize(call: _Call, asked: Args) -> Answer:
    subject = _subject(call, asked.pod)
    outcome = replace(call.outcome, pod=subject.pod.uid)
    if not subject.matched:
        return Answer(b"[]", outcome)
    names, when = _candidates(call, asked).names, call.when
    totals = call.evaluator.rate(
        subject.pod, subject.matched, names, now=when.now, clock=when.clock, deadline=when.deadline
    )
    return Answer(replies.prioritized(names, on_the_wire(totals)), replace(outcome, candidates=len(names)))


def _preempt(call: _Call, asked: PreemptArgs) -> Answer:
    subject, proposed = _subject(call, asked.pod), asked.victims
    outcome = replace(call.outcome, pod=subject.pod.uid, candidates=len(proposed))
    if subject.refused is not None and proposed:
        refusals = {subject.refused[0]: len(proposed)}
        return Answer(replies.preempted({}), replace(outcome, result="empty", refusals=refusals))
    saying = [each for each in subject.matched if each.policy.filters or each.policy.protections]
    left, by_rule, unknown = _undropped(call, subject.pod, saying, proposed)
    if len(left) < len(proposed):
        result: Result = "refused" if left else "empty"
        outcome = replace(outcome, result=result, refusals=by_rule, unknown=tuple(unknown))
    return Answer(replies.preempted(left), outcome)


def _undropped(
    call: _Call, pod: PodView, saying: Sequence[Matched], proposed: Mapping[str, Victims]
) -> tuple[dict[str, Victims], Counter[Rule], list[str]]:
    """The candidates to which nobody objects; who objected to how many others; and those that are not known."""
    when, evaluator, counted = call.when, call.evaluator, call.world.mirror.counted
    left, refusals, unknown = dict[str, Victims](), Counter[Rule](), list[str]()
    spent, before, asking = Counter[str](), when.clock(), ""

    def took() -> None:
        """Rules and victims of one candidate are many, too. Raises TooSlowError."""
        nonlocal before
        at = when.clock()
        spent[asking] += at - before
        before = at
        if at > when.deadline:
            raise TooSlowError(spent)

    for name, victims in proposed.items():
        uids = {pod.UID for pod in victims.Pods}
        for each in saying:
            asking = each.policy.name
            why = dropped(
                pod,
                [each],
                evaluator.nodes,
                name,
                uids,
                requests=counted,
                now=when.now,
                tally=evaluator.tally,
                took=took,
            )
            if why is not None:
                if why.why == UNKNOWN_NODE:
                    unknown.append(name)
                else:
                    refusals[why.policy, why.rule] += 1
                break
        else:
            left[name] = victims
    return left, refusals, unknown


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The nodes of a request: by name or as they came."""

    names: Sequence[str]
    items: Sequence[Bytes] | None = None

    def written(self, passed: Sequence[str]) -> tuple[bytes | None, bytes | None]:
        """Some of them in the form that was asked in."""
        if self.items is None:
            return replies.encode(passed), None
        chosen = {*passed}
        return None, replies.node_list(
            [item for item, name in zip(self.items, self.names, strict=True) if name in chosen]
        )


def _candidates(call: _Call, asked: Args) -> _Candidates:
    """Raises MalformedError."""
    if asked.names is not None:
        return _Candidates(call.world.names.names(asked.names))
    items = asked.items or []
    views = [call.world.node(item) for item in items]
    for view in views:
        call.evaluator.nodes.put(view)
    return _Candidates([view.name for view in views], items if asked.is_simulated else None)
