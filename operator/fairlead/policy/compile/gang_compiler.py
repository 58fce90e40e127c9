"""Groups of a policy: the expressions of their value and their size, and what keeps these from being told."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from fairlead.api.errors import FieldPath
from fairlead.api.gangs import Gang
from fairlead.api.rules import FilterSpec
from fairlead.api.topologies import TopologyFilter, TopologyScore
from fairlead.cel.check import INT, STRING
from fairlead.cel.engine.environment import GROUP_SIZE, GROUP_VALUE
from fairlead.cel.values.schema import POD
from fairlead.cel.values.structs import empty
from fairlead.cooperative import Steps
from fairlead.groups.group import SIZE_MAX, VALUE_MAX
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_compiler import ExpressionCompiler
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.compile.model import DomainRule, GangRule, is_kept_of_placed
from fairlead.policy.compile.policy_errors import Fault, in_field
from fairlead.policy.views.faults import RAISED, RuleError
from fairlead.policy.views.pod_view import PodView

_MAY_READ: Final = "name, namespace, uid, labels and ownerReferences, and annotations with their keys written out"
_ANY_POD: Final = PodView(empty(POD))


def gang_rules(entries: Sequence[Gang], expressions: ExpressionCompiler) -> Steps[list[GangRule]]:
    """Compile the entries of `binding.gang`; faults are added to those of the expressions."""
    made = list[GangRule]()
    for at, entry in enumerate(entries):
        path: FieldPath = ("spec", "binding", "gang", at)
        group = yield from expressions.compile((*path, "group"), entry.group, GROUP_VALUE, STRING)
        size = yield from expressions.compile((*path, "size"), entry.size, GROUP_SIZE, INT)
        faults = list[Fault]()
        yield  # a constant is evaluated, which may cost what an evaluation may cost
        if group is not None:
            faults += _group_faults((*path, "group"), group)
        yield
        if size is not None:
            faults += _size_faults((*path, "size"), size)
        expressions.faults += faults
        if group is not None and size is not None and not faults:
            made.append(GangRule(entry.name, group, size, entry.hold_for.seconds))
    return made


def domain_rule(
    path: FieldPath,
    rule: FilterSpec,
    params: TopologyFilter,
    gangs: Sequence[Gang],
    expressions: ExpressionCompiler,
) -> Steps[DomainRule | None]:
    """Compile the group of a filter `topology` at a path; faults are added to those of the expressions.

    What it leaves out is that of the policy's only gang, else the pod's controller, and 1.
    """
    made = yield from group_texts(path, params, gangs, expressions)
    return None if made is None else DomainRule(rule.name, params.shared, rule.on_error == "Reject", *made)


class GroupTexts(NamedTuple):
    """Expressions of the group of a `topology`, as it has them or its policy's only gang."""

    group: CompiledExpression | None
    """None: the UID of the pod's controller."""
    size: CompiledExpression | None
    """None: 1."""


def group_texts(
    path: FieldPath, params: TopologyFilter | TopologyScore, gangs: Sequence[Gang], expressions: ExpressionCompiler
) -> Steps[GroupTexts | None]:
    """Compile the group of a `topology` at a path; faults are added to those of the expressions."""
    group, size, made_group, made_size = params.group, params.size, None, None
    written_group, written_size = (gangs[0].group, gangs[0].size) if len(gangs) == 1 else (None, None)
    written_group, written_size = group or written_group, size or written_size
    faults = list[Fault]()
    if written_group is not None:
        made_group = yield from expressions.compile((*path, "group"), written_group, GROUP_VALUE, STRING)
        yield
        if made_group is not None and group is not None:
            faults += _group_faults((*path, "group"), made_group)
    if written_size is not None:
        made_size = yield from expressions.compile((*path, "size"), written_size, GROUP_SIZE, INT)
        yield
        if made_size is not None and size is not None:
            faults += _size_faults((*path, "size"), made_size)
    expressions.faults += faults
    if faults or (written_group and made_group is None) or (written_size and made_size is None):
        return None
    return GroupTexts(made_group, made_size)


def functions_of(rule: str, texts: GroupTexts) -> dict[str, Callable[[Any], Any]]:
    """Return the functions that give the group of a pod, placed or not, and its size, for the parameters of a rule."""
    what, what_size = f"the group of rule {rule}", f"the size of rule {rule}"

    def group(pod: PodView) -> str | RuleError:
        if texts.group is None:
            return controller_uid(pod)
        value = evaluated(texts.group, pod, what)
        if isinstance(value, str) and len(value) > VALUE_MAX:
            return RuleError(what, f"has more than {VALUE_MAX} characters")
        return value if isinstance(value, RuleError) else str(value)

    def size(pod: PodView) -> int | RuleError:
        if texts.size is None:
            return 1
        value = evaluated(texts.size, pod, what_size)
        if isinstance(value, RuleError) or 1 <= int(value) <= SIZE_MAX:
            return value if isinstance(value, RuleError) else int(value)
        return RuleError(what_size, f"is not from 1 to {SIZE_MAX}")

    return {"group": group, "size": size}


def controller_uid(pod: PodView) -> str:
    """Return the UID of a pod's controller; "" if it has none."""
    return next((str(one.uid) for one in pod.pod.metadata.ownerReferences if one.controller), "")


def evaluated(expression: CompiledExpression, pod: PodView, what: str) -> Any:
    """Return the value of an expression for a pod, or its error."""
    try:
        return expression.for_pod(pod)(None, 0)
    except RAISED as error:
        return error_verdict(error, rule=what, written=expression.written)


def _group_faults(path: FieldPath, group: CompiledExpression) -> Iterator[Fault]:
    """Yield why a group cannot be told of every pod, or never can be."""
    if others := sorted(".".join(read) for read in group.paths if not is_kept_of_placed(read)):
        listed = " and ".join(others)
        does = "is" if len(others) == 1 else "are"
        fault = f"reads {listed}, which {does} not kept of pods on nodes, and these tell which groups have started"
        yield in_field(path, fault, f"of the pod's metadata it may read {_MAY_READ}")
    match _constant(group):
        case RuleError() as error:
            yield in_field(path, f"always raises an error: {error.detail}", "give a string, or ''")
        case "":
            yield in_field(path, "is blank for every pod, so none is in a group", "read a label, or remove the entry")
        case str(value) if len(value) > VALUE_MAX:
            fault = f"has {len(value)} characters, {VALUE_MAX} are allowed"
            yield in_field(path, fault, "give a shorter string")


def _size_faults(path: FieldPath, size: CompiledExpression) -> Iterator[Fault]:
    """Yield why no group can have a size that is the same for all pods."""
    hint = f"give a number from 1 to {SIZE_MAX}"
    match _constant(size):
        case RuleError() as error:
            yield in_field(path, f"always raises an error: {error.detail}", hint)
        case int(value) if not 1 <= value <= SIZE_MAX:
            yield in_field(path, f"is {value}, but a group has 1 to {SIZE_MAX} members", hint)


def _constant(expression: CompiledExpression) -> object:
    """Return the value of an expression that reads nothing, or its error; None for one that reads something."""
    if expression.paths:
        return None
    try:
        return expression.for_pod(_ANY_POD)(None, 0)
    except RAISED as error:
        return error_verdict(error, written=expression.written)
