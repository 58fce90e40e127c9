"""Record of a decision: names, numbers and reasons, but no object, no label and no value that a rule read. Pure."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from operator import itemgetter
from typing import Final

from msgspec import Struct

from fairlead.policy.evaluate.evaluator import UNKNOWN_NODE
from fairlead.policy.evaluate.filter_result import Filtered
from fairlead.policy.views.pod_view import PodView
from fairlead.time_units import SECOND_NS
from fairlead.webhook.extender.decisions import Decision

EXAMPLES: Final = 3
"""Nodes that are named for a rule, and as the best ones."""
RULES: Final = 16
REASON_MAX: Final = 256
_MS_NS: Final = 1_000_000
_BASE: Final = 2_000
"""Bytes of a record without its rules, whatever its names."""
_RULE: Final = 500
"""Bytes of a rule without its reason and the names of nodes."""
_WIDE: Final = 4
"""Bytes of a character in a text that is not ASCII."""


class DecidingPolicy(Struct, frozen=True, gc=False):
    """A policy that applies to the pod, in the generation that decided."""

    name: str
    generation: str


class RuleRejections(Struct, frozen=True, gc=False, omit_defaults=True):
    """A rule that rejected nodes before any other did."""

    policy: str
    rule: str
    reason: str
    nodes: int
    """Number of nodes that it rejected."""
    examples: tuple[str, ...] = ()
    """Names of a few of them."""


class BestNode(Struct, frozen=True, gc=False):
    """A node with the most points."""

    node: str
    points: int


class Effect(Struct, frozen=True, gc=False, omit_defaults=True):
    """Effect that the rules in shadow of a policy would have had on the pod."""

    policy: str
    effects: tuple[str, ...]
    rules: tuple[str, ...] = ()
    """Rules that alone would have had one."""

    def beside(self, earlier: "Effect") -> "Effect":
        """Return the effect with what was known of the same policy earlier."""
        effects, rules = dict.fromkeys((*earlier.effects, *self.effects)), dict.fromkeys((*earlier.rules, *self.rules))
        return Effect(self.policy, (*effects,), (*rules,)[:RULES])


class DecisionRecord(Struct, gc=False, omit_defaults=True):
    """A filter call of a scheduler, and what came of it."""

    time_ns: int
    """Time of day at which it was answered."""
    scheduler: str
    namespace: str
    name: str
    uid: str
    result: str
    candidates: int
    passed: int
    """Number of candidates that no rule rejected."""
    milliseconds: float
    policies: tuple[DecidingPolicy, ...] = ()
    rules: tuple[RuleRejections, ...] = ()
    error: str = ""
    """Why the call failed; "" if it did not."""
    attempts: int = 1
    """Number of calls for this pod since one left it without a node."""
    best: tuple[BestNode, ...] = ()
    node: str = ""
    """The node it went to; "" if it has none yet."""
    effects: tuple[Effect, ...] = ()
    is_decided: bool = True
    """True if a policy decided about nodes, or the call failed; else it is kept only for what comes later."""
    is_scored: bool = False
    """True once the call for points has followed."""
    has_second: bool = False
    """True once the call of the scheduler's other entry has followed."""
    size: int = 0
    """Bytes that it takes, rather too many than too few; what is added to it later is part of `_BASE`."""

    @property
    def leaves_no_node(self) -> bool:
        """Report whether it left the pod without a node."""
        return self.is_decided and self.passed == 0


def record_of(decision: Decision, time_ns: int) -> DecisionRecord | None:
    """Return the record of a real call; None if its pod was not read."""
    outcome, considered = decision.outcome, decision.considered
    if considered is None or outcome.simulated:
        return None
    nodes, names = considered.nodes, considered.written or b""
    written = names.count(b",") + 1 if nodes is None and b'"' in names else 0
    pod, rules = considered.pod, _rules(decision)
    return DecisionRecord(
        time_ns,
        _scheduler(decision),
        pod.namespace,
        pod.name,
        outcome.pod,
        outcome.result,
        written if nodes is None else len(nodes),
        written if considered.passed is None else len(considered.passed),
        (decision.answered_ns - decision.received_ns) / _MS_NS,
        tuple([DecidingPolicy(one.policy.name, one.policy.generation) for one in considered.matched]),
        tuple(rules),
        outcome.error[:REASON_MAX],
        is_decided=nodes is not None or bool(outcome.error),
        size=_BASE + _size_of(rules) if rules else _BASE,
    )


def _scheduler(decision: Decision) -> str:
    """Return the scheduler that calls; where several share a certificate the one of the pod, or else all of them."""
    schedulers, considered = decision.caller.schedulers, decision.considered
    if len(schedulers) > 1 and considered is not None and isinstance(considered.pod, PodView):
        of_pod = str(considered.pod.pod.spec.schedulerName)
        if of_pod in schedulers:
            return of_pod
    return ",".join(sorted(schedulers))


def _rules(decision: Decision) -> list[RuleRejections]:
    outcome, considered = decision.outcome, decision.considered
    rejected = None if considered is None else considered.rejected
    found: list[RuleRejections] = []
    if isinstance(rejected, Filtered):
        if outcome.refusals:
            for (policy, rule), reason, names in islice(rejected.first_reasons(), RULES):
                found.append(RuleRejections(policy, rule, reason[:REASON_MAX], len(names), (*names[:EXAMPLES],)))
    elif considered is not None and rejected is not None:
        for (policy, rule), names in rejected.items():
            reason = considered.reason[:REASON_MAX]
            found.append(RuleRejections(policy, rule, reason, len(names), (*names[:EXAMPLES],)))
    if outcome.unknown:
        found.append(RuleRejections("", "", UNKNOWN_NODE, len(outcome.unknown), outcome.unknown[:EXAMPLES]))
    return found


def _size_of(rules: Sequence[RuleRejections]) -> int:
    size = _RULE * len(rules)
    for one in rules:
        size += len(one.reason) * (1 if one.reason.isascii() else _WIDE)
        for name in one.examples:
            size += len(name)
    return size


def with_second_entry(record: DecisionRecord, second: DecisionRecord) -> None:
    """Add to the record of a call what the scheduler's other entry said of the nodes that it left.

    If that call failed, the nodes pass all the same: the scheduler ignores it.
    """
    record.has_second = True
    record.milliseconds += second.milliseconds
    record.error = record.error or second.error
    if not second.is_decided or second.error:
        return
    if not record.is_decided:
        record.candidates, record.is_decided = second.candidates, True
    record.passed = second.passed
    record.result = "empty" if not second.passed else "passed" if second.passed == record.candidates else "refused"
    record.policies += second.policies
    record.rules = (record.rules + second.rules)[:RULES]
    record.size += _size_of(second.rules)


def best_nodes(names: Sequence[str], points: Sequence[int]) -> tuple[BestNode, ...]:
    """Return the nodes with the most points, the best first."""
    found = nlargest(EXAMPLES, zip(names, points, strict=False), key=itemgetter(1))
    return tuple([BestNode(node, count) for node, count in found])


def as_data(record: DecisionRecord, *, waits: bool) -> Mapping[str, object]:
    """Return the record as it is served; `waits`: the pod has no node yet."""
    return {
        "time": rfc3339(record.time_ns),
        "scheduler": record.scheduler,
        "pod": {"namespace": record.namespace, "name": record.name, "uid": record.uid},
        "policies": record.policies,
        "result": record.result,
        "candidates": record.candidates,
        "passed": record.passed,
        "rules": record.rules,
        "error": record.error or None,
        "best": record.best,
        "node": record.node or None,
        "waits": waits,
        "attempts": record.attempts,
        "effects": record.effects,
        "milliseconds": round(record.milliseconds, 3),
    }


def as_event(record: DecisionRecord) -> Mapping[str, object]:
    """Return the record as it is logged, without nodes and points."""
    return {
        "scheduler": record.scheduler,
        "pod": f"{record.namespace}/{record.name}",
        "uid": record.uid,
        "policies": {one.name: one.generation for one in record.policies},
        "result": record.result,
        "candidates": record.candidates,
        "passed": record.passed,
        "rules": [
            {"policy": one.policy, "rule": one.rule, "reason": one.reason, "nodes": one.nodes} for one in record.rules
        ],
        "attempts": record.attempts,
        "milliseconds": round(record.milliseconds, 3),
        **({"error": record.error} if record.error else {}),
    }


def rfc3339(time_ns: int) -> str:
    """Return a time of day to the millisecond."""
    seconds, rest = divmod(time_ns, SECOND_NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // _MS_NS:03}Z"
