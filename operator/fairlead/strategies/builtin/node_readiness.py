"""Strategy `nodeReadiness`: passes nodes whose daemons, conditions and labels have been ready for long enough.

A rule is a list of items, each of which is ready on a node or not. The first missing item, in the order of the policy,
is the reason; time matters only if none is missing. A time in the future counts as now, so that a clock that is ahead
cannot reject a node for longer than the hold-off.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from fairlead.api.selectors import compile_selector
from fairlead.strategies.builtin.node_readiness_params import (
    ConditionItem,
    DaemonSetItem,
    NodeReadiness,
    PodsItem,
    WhenAbsent,
)
from fairlead.strategies.contract import (
    ANNOTATIONS,
    CONDITIONS,
    LABELS,
    PASS,
    ControllerRef,
    Decide,
    Filter,
    NodeFacts,
    Path,
    PodFacts,
    PodOnNode,
    PodsRead,
    Reads,
    Reject,
    Stamped,
    Strategy,
    Trace,
    Unknown,
    Use,
    Verdict,
)
from fairlead.time_units import SECOND_NS

NOT_READY_DAEMON = "daemon {name} is not ready"
NOT_READY_PODS = "pods {name} are not ready"
NOT_CONDITION = "condition {name} is not {status}"
NO_LABEL = "label {name} is missing"
NOT_LABEL = "label {name} is not {value}"
NO_ANNOTATION = "annotation {name} is missing"
NOT_ANNOTATION = "annotation {name} does not have the required value"
WAITING = "waiting after becoming ready"

_SHOWN = 63
_STRANGER = Unknown("choose", "names something that is no item of the rule")
"""Error without the name, which comes from the pod, while the message is visible to all users."""


class _State(Enum):
    MISSING = "missing"
    NOT_NEEDED = "not needed"
    UNTIMED = "ready, since when is not known"


# An item that is ready returns since when, in nanoseconds.
_Probe = Callable[[NodeFacts, Trace | None], _State | int]


@dataclass(frozen=True, slots=True)
class _Item:
    name: str
    missing: Reject
    untimed: Unknown
    probe: _Probe
    reads: Path | PodsRead


def compile_filter(params: NodeReadiness) -> Filter:
    """Compile the rule; everything that does not depend on the pod is done here."""
    items = tuple(_items(params))
    hold_off = params.hold_off.seconds * SECOND_NS
    choose = params.choose.pod_annotation if params.choose else None

    def for_pod(pod: PodFacts) -> Decide:
        wanted = pod.annotations.get(choose) if choose is not None else None
        return _rule(items, hold_off) if wanted is None else _chosen(items, hold_off, wanted)

    return Filter(
        reads=Reads(
            pod=frozenset() if choose is None else frozenset({(*ANNOTATIONS, choose)}),
            node=frozenset(item.reads for item in items if not isinstance(item.reads, PodsRead)),
            pods=frozenset(item.reads for item in items if isinstance(item.reads, PodsRead)),
            now=hold_off > 0,
        ),
        for_pod=for_pod,
        reasons=(*(item.missing.reason for item in items), *([WAITING] if hold_off else [])),
    )


def _chosen(items: Sequence[_Item], hold_off: int, wanted: str) -> Decide:
    names = [name for part in wanted.split(",") if (name := part.strip())]
    known = {item.name for item in items}
    for name in names:
        if name not in known:
            return _undecided(_shortened(name))
    return _rule(tuple(item for item in items if item.name in names), hold_off)


def _undecided(name: str) -> Decide:
    def one(_node: NodeFacts, _now: int, trace: Trace | None = None) -> Verdict:
        if trace is not None:
            trace.note(choose=f"{_STRANGER.what} names {name!r}, which is no item of the rule")
        return _STRANGER

    return one


def _rule(items: tuple[_Item, ...], hold_off: int) -> Decide:
    def one(node: NodeFacts, now: int, trace: Trace | None = None) -> Verdict:
        refused: Reject | None = None
        unknown: Unknown | None = None
        latest = None
        for item in items:
            state = item.probe(node, trace)
            if state is _State.MISSING:
                refused = refused or item.missing
                if trace is None:
                    return refused
            elif state is _State.UNTIMED:
                unknown = unknown or item.untimed
            elif isinstance(state, int) and (latest is None or state > latest):
                latest = state
        until = None if latest is None or not hold_off else min(latest, now) + hold_off
        if trace is not None and hold_off:
            trace.note(now=now, holdOff=hold_off, since=latest, until=until)
        if refused is not None:
            return refused
        if until is not None and now < until:
            return Reject(WAITING, until=until)
        # An unknown time matters only if there is a hold-off.
        return unknown if unknown is not None and hold_off else PASS

    return one


def _items(params: NodeReadiness) -> Iterator[_Item]:
    for daemon in params.daemon_sets:
        yield _daemon(daemon)
    for pods in params.pods:
        yield _pods(pods)
    for condition in params.conditions:
        yield _condition(condition)
    for label in params.labels:
        reason = NO_LABEL if label.value is None else NOT_LABEL
        yield _entry("labels", "label", label.key, label.value, reason)
    for annotation in params.annotations:
        reason = NO_ANNOTATION if annotation.value is None else NOT_ANNOTATION
        yield _entry("annotations", "annotation", annotation.key, annotation.value, reason)


def _item(name: str, kind: str, reason: str, probe: _Probe, reads: Path | PodsRead) -> _Item:
    return _Item(name, Reject(reason), Unknown(f"the time of {kind} {name}", "is missing"), probe, reads)


def _daemon(wanted: DaemonSetItem) -> _Item:
    name, namespace, controller = wanted.name, wanted.namespace, ControllerRef("DaemonSet", wanted.name)

    def probe(node: NodeFacts, trace: Trace | None) -> _State | int:
        return _pods_state(name, node.controlled(namespace, controller), 1, wanted.when_absent, trace)

    return _item(name, "daemon", NOT_READY_DAEMON.format(name=name), probe, PodsRead(namespace, controller))


def _pods(wanted: PodsItem) -> _Item:
    name, namespace, matches = wanted.name, wanted.namespace, compile_selector(wanted.selector)

    def probe(node: NodeFacts, trace: Trace | None) -> _State | int:
        found = [pod for pod in node.pods if pod.namespace == namespace and matches(pod.labels)]
        return _pods_state(name, found, wanted.min_ready, wanted.when_absent, trace)

    return _item(name, "pods", NOT_READY_PODS.format(name=name), probe, PodsRead(namespace))


def _pods_state(
    name: str, pods: Sequence[PodOnNode], min_ready: int, when_absent: WhenAbsent, trace: Trace | None
) -> _State | int:
    ready = [pod.ready_since for pod in pods if pod.ready and pod.phase == "Running" and not pod.deleting]
    state: _State | int
    if not pods and when_absent == "Pass":
        state = _State.NOT_NEEDED
    elif len(ready) < min_ready:
        state = _State.MISSING
    else:
        # A pod with an unknown time may have been ready at any time: pods with known times are counted first.
        known = sorted(since for since in ready if since is not None)
        state = known[min_ready - 1] if len(known) >= min_ready else _State.UNTIMED
    if trace is not None:
        trace.item(name, pods=len(pods), ready=len(ready), minReady=min_ready, whenAbsent=when_absent, **_shown(state))
    return state


def _condition(wanted: ConditionItem) -> _Item:
    name, status = wanted.type, wanted.status

    def probe(node: NodeFacts, trace: Trace | None) -> _State | int:
        found = node.condition(name)
        if found is None or found.status != status:
            state: _State | int = _State.MISSING
        else:
            state = _State.UNTIMED if found.since is None else found.since
        if trace is not None:
            trace.item(name, status=found and found.status, wanted=status, **_shown(state))
        return state

    reason = NOT_CONDITION.format(name=name, status=status)
    return _item(name, "condition", reason, probe, (*CONDITIONS, name))


def _entry(where: Stamped, kind: str, key: str, value: str | None, reason: str) -> _Item:
    path = LABELS if where == "labels" else ANNOTATIONS

    def probe(node: NodeFacts, trace: Trace | None) -> _State | int:
        found = (node.labels if where == "labels" else node.annotations).get(key)
        if found is None or (value is not None and found != value):
            state: _State | int = _State.MISSING
        else:
            since = node.since(where, key, value)
            state = _State.UNTIMED if since is None else since
        if trace is not None:
            trace.item(key, value=found, wanted=value, **_shown(state))
        return state

    text = reason.format(name=key, value=value or '""')
    return _item(key, kind, text, probe, (*path, key))


def _shown(state: _State | int) -> dict[str, object]:
    return {"since": state} if isinstance(state, int) else {"state": state.value}


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


STRATEGY = Strategy(name="nodeReadiness", filter=Use(NodeReadiness, compile_filter))
