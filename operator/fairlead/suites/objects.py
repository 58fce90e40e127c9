"""Complete Kubernetes objects from the partial ones of a suite.

Objects are merged as by `kubectl patch --type=merge` (RFC 7386): maps are merged, lists and values replaced, null
removes. Defaults are as in most clusters: a node has capacity and is a day old; a pod on it runs and has been ready
for an hour.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.cel.functions.time_text import SECOND, string_to_timestamp, timestamp_to_string
from fairlead.cel.values.errors import CelError
from fairlead.simulation.as_stored import with_default_requests, with_text_amounts
from fairlead.suites.group_states import GivenGroupState, states_by_group
from fairlead.suites.learned_values import GivenState, learned_by_rule
from fairlead.suites.node_values import FIELD, DataValue, node_values
from fairlead.suites.suite import Case, Object, Suite

NOON: Final = "2027-01-15T12:00:00Z"
COPIES_MAX: Final = 1000
_HOUR: Final = 3600 * SECOND
_DAY: Final = 24 * _HOUR
_ROOM: Final = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
OURS: Final = ("from", "copies")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CaseInputs:
    """Pod and cluster of a case, as objects of the API."""

    pod: Object
    nodes: Sequence[Object]
    pods: Sequence[Object]
    namespaces: Sequence[Object]
    now: int
    values: Mapping[str, Mapping[str, DataValue]]
    """Measured values by node and by entry."""
    learned: Mapping[str, GivenState] = field(default_factory=dict)
    """Learned state by rule, with its path."""
    waiting: Sequence[Object] = ()
    """Pods that wait beside the pod."""
    groups: Mapping[Key, GivenGroupState] = field(default_factory=dict)
    """States of groups by namespace and value, with their paths."""


def case_inputs(suite: Suite, at: int, scheduler: str) -> CaseInputs:
    """Return the inputs of a case. Raises InvalidObjectError."""
    case = suite.cases[at]
    here: FieldPath = ("cases", at)
    now = time_of(suite, at)
    nodes = _gathered(suite, case, at, "nodes")
    placed = _gathered(suite, case, at, "pods")
    listed = _gathered(suite, case, at, "namespaces")
    pod = _whole_pod(_resolved(case.pod, suite, (*here, "pod")), scheduler, now)
    waiting = _gathered(suite, case, at, "waiting")
    _check_nodes(placed, nodes, case)
    _check_waiting(waiting, placed, pod)
    scheduler = str((pod.get("spec") or {}).get("schedulerName") or scheduler)
    of_pods = (space for space, _ in (*placed, *waiting))
    spaces = dict.fromkeys([*(name for _, name in listed), _namespace(pod), *of_pods])
    return CaseInputs(
        pod=pod,
        nodes=[_whole_node(name, one, now) for (_, name), (one, _) in nodes.items()],
        pods=[_whole_placed(key, one, now) for key, (one, _) in placed.items()],
        namespaces=[_whole_namespace(name, listed.get(("", name), ({}, ()))[0]) for name in spaces],
        now=now,
        values={name: node_values(apply_patch({}, one), path) for (_, name), (one, path) in nodes.items()},
        learned=learned_by_rule(suite, at),
        waiting=[_whole_waiting(key, one, scheduler, now) for key, (one, _) in waiting.items()],
        groups=states_by_group(suite, at),
    )


def time_of(suite: Suite, at: int) -> int:
    """Return the time of a case in nanoseconds. Raises InvalidObjectError."""
    own = suite.cases[at].now
    path: FieldPath = ("now",) if own is None else ("cases", at, "now")
    text = suite.now or NOON if own is None else own
    try:
        return int(string_to_timestamp(text))
    except CelError:
        _fail(path, f"{text!r} is not a time", f"write it as {NOON}")


def apply_patch(under: Any, over: Any) -> Any:
    """Return a value merged with a patch."""
    if not isinstance(over, Mapping):
        return over
    kept = dict(under) if isinstance(under, Mapping) else {}
    for key, value in over.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = apply_patch(kept.get(key), value)
    return kept


def merge_patches(under: Any, over: Any) -> Any:
    """Return two patches merged into one: null stays, to remove a value later."""
    if not isinstance(over, Mapping):
        return over
    kept = dict(under) if isinstance(under, Mapping) else {}
    return kept | {key: merge_patches(kept.get(key), value) for key, value in over.items()}


_Gathered = dict[Key, tuple[Object, FieldPath]]


def _gathered(suite: Suite, case: Case, at: int, kind: str) -> _Gathered:
    """Return objects of a kind by namespace and name: those of the suite, patched by those of the case."""
    found: _Gathered = {}
    for of, where in ((suite, ()), (case, ("cases", at))):
        own: set[Key] = set()
        for index, written in enumerate(getattr(of, kind)):
            path: FieldPath = (*where, kind, index)
            for key, one in _named(written, suite, path, namespaced=kind in ("pods", "waiting")):
                if key in own:
                    _fail((*path, "metadata", "name"), f"{key[1]!r} exists already", "give it another name")
                own.add(key)
                found[key] = merge_patches(found.get(key, ({}, ()))[0], one), path
    return found


def _named(written: Object, suite: Suite, path: FieldPath, *, namespaced: bool) -> Iterator[tuple[Key, Object]]:
    one = _resolved(written, suite, path)
    metadata = one.get("metadata") or {}
    name = metadata.get("name")
    if not name:
        _fail((*path, "metadata", "name"), "is missing", "name it: cases refer to it by name")
    copies = written.get("copies")
    if copies is None:
        names = [name]
    elif isinstance(copies, int) and not isinstance(copies, bool) and 1 <= copies <= COPIES_MAX:
        names = [f"{name}-{number}" for number in range(1, copies + 1)]
    else:
        _fail((*path, "copies"), f"must be a whole number from 1 to {COPIES_MAX}, not {copies!r}", "")
    for each in names:
        renamed = one | {"metadata": metadata | {"name": each}}
        yield ((_namespace(one) if namespaced else ""), each), renamed


def _resolved(written: Object, suite: Suite, path: FieldPath) -> Object:
    """Return an object merged over its template, with amounts as the API returns them."""
    template = written.get("from")
    own = {key: value for key, value in written.items() if key not in OURS}
    if template is not None:
        if not isinstance(template, str) or template not in suite.templates:
            near = closest_name(str(template), suite.templates)
            hint = f"did you mean {near}?" if near else f"the templates are {', '.join(suite.templates) or 'none'}"
            _fail((*path, "from"), f"there is no template {template!r}", hint)
        own = merge_patches(suite.templates[template], own)
    values = {key: value for key, value in own.items() if key == FIELD}  # its keys are names, not fields
    found: Object = with_text_amounts({key: value for key, value in own.items() if key != FIELD})
    return found | values


def _whole_node(name: str, obj: Object, now: int) -> Object:
    metadata = {"uid": f"node-{name}", "creationTimestamp": timestamp_to_string(now - _DAY)}
    own = {key: value for key, value in obj.items() if key != FIELD}
    # A node that says only what is allocatable keeps nothing for itself: measured shares are of its capacity.
    status = own.get("status")
    allocatable = apply_patch(_ROOM, status.get("allocatable") or {}) if isinstance(status, Mapping) else _ROOM
    usual = {
        "metadata": {**metadata, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": _ROOM, "capacity": allocatable},
    }
    return {"apiVersion": "v1", "kind": "Node", **apply_patch(usual, own)}


def _whole_placed(key: Key, obj: Object, now: int) -> Object:
    since = timestamp_to_string(now - _HOUR)
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    usual = {
        "metadata": {"namespace": key[0], "uid": f"pod-{key[0]}-{key[1]}", "creationTimestamp": since},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": ready},
    }
    return with_default_requests({"apiVersion": "v1", "kind": "Pod", **apply_patch(usual, obj)})


def _whole_pod(obj: Object, scheduler: str, now: int) -> Object:
    metadata = {"name": "pod", "namespace": "default", "uid": "pod", "creationTimestamp": timestamp_to_string(now)}
    spec = {"schedulerName": scheduler, "containers": [{"name": "main"}]}
    usual = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    return with_default_requests({"apiVersion": "v1", "kind": "Pod", **apply_patch(usual, obj)})


def _whole_waiting(key: Key, obj: Object, scheduler: str, now: int) -> Object:
    own = {"metadata": {"namespace": key[0], "uid": f"waiting-{key[0]}-{key[1]}"}}
    return _whole_pod(apply_patch(own, obj), scheduler, now)


def _whole_namespace(name: str, obj: Object) -> Object:
    usual = {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
    return {"apiVersion": "v1", "kind": "Namespace", **apply_patch(usual, obj)}


def _namespace(obj: Object) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or "default")


def _check_nodes(placed: _Gathered, nodes: _Gathered, case: Case) -> None:
    names = [name for _, name in nodes]
    for (_, name), (one, path) in placed.items():
        node = (one.get("spec") or {}).get("nodeName")
        where: FieldPath = (*path, "spec", "nodeName")
        if not node:
            _fail(where, "is missing", f"name the node of the pod {name}")
        if node not in names:
            near = closest_name(str(node), names)
            hint = f"did you mean {near}?" if near else f"the nodes are {', '.join(names) or 'none'}"
            _fail(where, f"there is no node {node!r} in the case {case.name!r}", hint)


def _check_waiting(waiting: _Gathered, placed: _Gathered, pod: Object) -> None:
    own = pod["metadata"]["namespace"], pod["metadata"]["name"]
    for key, (one, path) in waiting.items():
        if (one.get("spec") or {}).get("nodeName"):
            _fail((*path, "spec", "nodeName"), "is set, but these pods have no node", "list the pod under `pods`")
        if key == own or key in placed:
            which = "the pod of the case" if key == own else "a placed pod"
            _fail((*path, "metadata", "name"), f"{key[1]!r} is the name of {which}", "give it another name")


def _fail(path: FieldPath, message: str, hint: str) -> NoReturn:
    raise InvalidObjectError([FieldError(path, message, hint)])
