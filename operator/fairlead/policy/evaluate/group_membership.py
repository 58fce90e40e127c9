"""Groups that pods belong to, by the policies that apply to them.

Of a pod's entries, in the order of the policies, the first one counts that gives the pod a group. What cannot be
decided there ends the search, too: the group must not come from one entry today and from another tomorrow.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairlead.cel.values.structs import empty
from fairlead.groups.group import SIZE_MAX, VALUE_MAX, Group, Membership, UndecidedGroup
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.gang_compiler import controller_uid, evaluated
from fairlead.policy.compile.model import CompiledPolicy, DomainRule, GangRule
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.evaluate.matching import Matched, selects, watch
from fairlead.policy.views.faults import RAISED, RuleError
from fairlead.policy.views.placed_pod import PlacedPod
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import ANNOTATIONS, LABELS

UNDECIDED: Final = "the group of the pod cannot be decided"
"""Text for users; it never varies."""


class GangValues(NamedTuple):
    """Values of an entry for a pod, as far as they can be computed."""

    value: str = ""
    """Value of the group; "" if the pod is in none by this entry."""
    size: int | None = None
    """None: it was not computed."""
    error: RuleError | None = None
    """Error that keeps the group from being decided. It has no values of the pod in it."""


def gang_values(rule: GangRule, pod: PodView, *, with_size: bool = True) -> GangValues:
    """Return the values of an entry for a pod; the size only if the pod is in a group."""
    value = evaluated(rule.group, pod, f"the group of {rule.name}")
    return _with_size(value, rule.size if with_size else None, pod, rule.name)


def _with_size(value: Any, expression: CompiledExpression | None, pod: PodView, name: str) -> GangValues:
    """Return what was evaluated, and the size by an expression; a group that cannot be, or is none, has no size."""
    if isinstance(value, RuleError):
        return GangValues(error=value)
    value = str(value)
    if len(value) > VALUE_MAX:
        return GangValues(value, error=RuleError(f"the group of {name}", f"has more than {VALUE_MAX} characters"))
    if not value or expression is None:
        return GangValues(value)
    size = evaluated(expression, pod, f"the size of {name}")
    if isinstance(size, RuleError):
        return GangValues(value, error=size)
    size = int(size)
    if not 1 <= size <= SIZE_MAX:
        return GangValues(value, size, RuleError(f"the size of {name}", f"is not from 1 to {SIZE_MAX}"))
    return GangValues(value, size)


def membership_of(
    pod: PodView,
    matched: Sequence[Matched],
    *,
    tally: RuleErrorTally | None = None,
    clock: Clock | None = None,
    deadline_ns: int = 0,
    spent: dict[str, int] | None = None,
) -> Membership | UndecidedGroup | None:
    """Return the group of an unplaced pod, why it cannot be told, or None for a pod in no group.

    `matched` are the policies that apply to it, in their order. A policy of which that is not sure, or that its failure
    policy replaces, is not asked: it may be the one that counts. With a clock, raises TooSlowError; the time of each
    policy is added to `spent`. Errors are added to `tally`, except those of conditions, which are there already.
    """
    if pod.pod.spec.schedulingGroup:
        return None
    for each in matched:
        policy = each.policy
        if not policy.gangs:
            continue
        if each.undecided is not None or each.switched:
            why = f"policy {policy.name} {'is too slow' if each.switched else 'cannot be decided'}"
            return UndecidedGroup(policy.name, policy.gangs[0].name, why)
        late = None if clock is None else watch(policy.name, clock, deadline_ns, {} if spent is None else spent)
        for rule in policy.gangs:
            value, size, error = gang_values(rule, pod)
            if late is not None:
                late()
            if error is not None:
                if tally is not None:
                    tally.count_error(policy.name, rule.rule, error)
                return UndecidedGroup(policy.name, rule.name, f"policy {policy.name}: {error}")
            if size == 1:
                return None
            if value and size is not None:
                group = Group(policy.scheduler_name, pod.namespace, value)
                return Membership(group, size, rule.hold_s, policy.name, rule.name)
    return None


class RequiredGroup(NamedTuple):
    """Group whose members share a domain, as a filter requires it of a pod."""

    policy: str
    rule: DomainRule
    key: str = ""
    """Namespace and value of the group, with a slash between them."""
    size: int = 1
    error: RuleError | None = None
    """Error that keeps the group from being decided."""


def required_groups(pod: PodView, matched: Sequence[Matched]) -> list[RequiredGroup]:
    """Return the groups of an unplaced pod that have to share a domain, by the policies that apply to it."""
    found = list[RequiredGroup]()
    for each in matched:
        for rule in each.policy.domain_rules:
            if each.undecided is not None or each.switched:
                why = "is too slow" if each.switched else "cannot be decided"
                found.append(RequiredGroup(each.policy.name, rule, error=RuleError("the policy", why)))
                continue
            value, size, error = _domain_values(rule, pod)
            if error is None and value:
                found.append(RequiredGroup(each.policy.name, rule, f"{pod.namespace}/{value}", size or 1))
            elif error is not None and rule.rejects_on_error:
                found.append(RequiredGroup(each.policy.name, rule, error=error))
    return found


def _domain_values(rule: DomainRule, pod: PodView) -> GangValues:
    if rule.group is None:
        value: Any = controller_uid(pod)
    else:
        value = evaluated(rule.group, pod, f"the group of {rule.name}")
    return _with_size(value, rule.size, pod, rule.name)


_GangsOfPolicy = tuple[CompiledPolicy, Sequence[tuple[GangRule, bool]]]
"""A policy and its gangs, each with whether the size of a placed pod is known."""


class PlacedGroups:
    """Groups of placed pods, by the policies of one set.

    Placed pods do not say which scheduler placed them, so each may be in a group of every scheduler. Conditions are
    taken as true. A pod of which a group cannot be told is in none: what is not known must not start a group.
    """

    def __init__(self, policies: Iterable[CompiledPolicy]) -> None:
        """Take those that are enforced and have gangs."""
        with_gangs = sorted((one for one in policies if one.enforced and one.gangs), key=lambda one: one.order)
        by_scheduler = dict[str, list[_GangsOfPolicy]]()
        for one in with_gangs:
            rules = [(rule, rule.knows_size_of_placed) for rule in one.gangs]
            by_scheduler.setdefault(one.scheduler_name, []).append((one, rules))
        self._by_scheduler: Final[Mapping[str, Sequence[_GangsOfPolicy]]] = by_scheduler
        self._key: Final = _key_of(with_gangs)
        self._known: Final[dict[Hashable, tuple[Group, ...]]] = {}
        self.meaning: Final[Hashable] = tuple((one.order, one.uid, one.generation) for one in with_gangs)
        """Equal for sets by which all placed pods are in the same groups."""
        self.reads_namespaces: Final = any(one.match.namespace_selector is not None for one in with_gangs)
        """Whether a change of a namespace may change the groups of its pods."""

    def __bool__(self) -> bool:
        return bool(self._by_scheduler)

    @property
    def schedulers(self) -> Iterable[str]:
        """Return the schedulers whose policies have groups."""
        return self._by_scheduler.keys()

    def of(self, pod: PlacedPod, namespace: Any | None) -> tuple[Group, ...]:
        """Return the groups of a placed pod, at most one of each scheduler; None is a namespace that is not known.

        Pods that no policy can tell apart get the same tuple.
        """
        if pod.spec.schedulingGroup is not _NO_NATIVE_GROUP and pod.spec.schedulingGroup:
            return ()
        key = self._key(pod.metadata, namespace if self.reads_namespaces else None)
        if (known := self._known.get(key)) is not None:
            return known
        view = PodView(pod, namespace)
        values = ((scheduler, _value_of_placed(view, asked)) for scheduler, asked in self._by_scheduler.items())
        groups = tuple(Group(scheduler, view.namespace, value) for scheduler, value in values if value)
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = groups
        return groups


_NO_NATIVE_GROUP: Final = empty("PodSchedulingGroup")
_KNOWN_MAX: Final = 8192


def _key_of(policies: Iterable[CompiledPolicy]) -> Callable[[Any, Any], Hashable]:
    """Return a function of the metadata of a placed pod, and its namespace, that gives a key of what is read of it."""
    read = {path[1:] for one in policies for rule in one.gangs for path in rule.paths_of_placed}
    selectors = [selector for one in policies if (selector := one.match.written.pod_selector) is not None]
    read |= {(*LABELS, key) for selector in selectors for key in selector.keys}
    whole = LABELS in read
    labels = () if whole else tuple(sorted(path[2] for path in read if path[:2] == LABELS))
    annotations = tuple(sorted(path[2] for path in read if path[:2] == ANNOTATIONS))
    others = tuple(sorted({path[1] for path in read if path[1] not in ("labels", "annotations", "namespace")}))

    def key(metadata: Any, namespace: Any) -> Hashable:
        has_labels, has_annotations = metadata.labels, metadata.annotations
        values = [metadata.namespace, namespace]
        values += [has_labels.get(name) for name in labels]
        values += [has_annotations.get(name) for name in annotations]
        if whole:
            values.append(frozenset(has_labels.items()))
        for name in others:  # owners are a list, or a tuple that pods share
            value = getattr(metadata, name)
            values.append(value if isinstance(value, str) else tuple(value))
        return tuple(values)

    return key


def _value_of_placed(pod: PodView, policies: Sequence[_GangsOfPolicy]) -> str:
    """Return the value of the group that a placed pod is in; "" if it is in none, or that cannot be told."""
    for policy, rules in policies:
        try:
            selected = selects(policy.match, pod)
        except RAISED:
            return ""
        if selected is False:
            continue
        if selected is not True:
            return ""
        for rule, knows_size in rules:
            value, size, error = gang_values(rule, pod, with_size=knows_size)
            if error is not None or size == 1:
                return ""
            if value:
                return value
    return ""
