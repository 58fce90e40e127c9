"""Warnings about a policy that compiles: what is legal but hardly meant, and what will surprise its owner.

The severity follows from the reason: `warning` for what is surely or very likely a mistake, `note` for what is meant
but behaves in a way that the owner should know. There is no warning about what is only perhaps a mistake.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, Spec
from fairlead.cooperative import Steps, at_path, finish, gather_items
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy, DeviceShareRule, GangRule
from fairlead.policy.compile.modes import undivided
from fairlead.policy.lint.amount_checks import check_amounts
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.lint.device_checks import check_cards, check_device_shares
from fairlead.policy.lint.expression_checks import AbsentKeyChecks, check_comparisons
from fairlead.policy.lint.gang_checks import check_gang
from fairlead.policy.lint.match_checks import check_match
from fairlead.policy.lint.measured_checks import check_measured_values
from fairlead.policy.lint.publication_checks import check_publication
from fairlead.policy.lint.rule_checks import check_engine, check_filter, check_protection, check_score
from fairlead.policy.lint.shadow_checks import check_shadow
from fairlead.strategies.reads import EVERY

_EXPRESSIONS: Final = ("cards", "group", "size")
"""Fields that are expressions, beside those that are called so."""
_ORDER: Final = {str(field.alias): at for at, field in enumerate(Spec.model_fields.values())}


def warnings(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> list[LintWarning]:
    """Return all warnings about a policy that compiles, in the order of its fields."""
    return finish(warnings_steps(compiled, policy))


def warnings_steps(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Steps[list[LintWarning]]:
    """Do what `warnings` does, but pause after each rule, so that calls are served meanwhile."""
    spec = policy.spec
    every = undivided(compiled)  # by their positions in the spec, whichever of them are in shadow
    expressions = dict(_expressions(every, policy))
    found = [*_whole(every), *check_shadow(compiled, spec), *_unused(every, policy, [*expressions.values()])]
    yield
    found += check_measured_values(every, policy)
    yield
    found += yield from at_path(("spec", "match"), gather_items(check_match(every, spec.match)))
    found += yield from at_path(("spec", "publish"), gather_items(check_publication(compiled)))
    for path, checks in _of_each(every, policy, expressions):
        yield path
        found += yield from at_path(path, gather_items(checks))
    return sorted(found, key=_position)


def _of_each(
    compiled: CompiledPolicy, policy: SchedulerExtenderPolicy, expressions: Mapping[FieldPath, CompiledExpression]
) -> Iterator[tuple[FieldPath, LintWarnings]]:
    """Yield the checks of each rule, not run yet."""
    spec = policy.spec
    for at, filter_ in enumerate(compiled.filters[: len(spec.filters)]):
        path: FieldPath = ("spec", "filters", at)
        yield path, check_filter(path, filter_, spec.filters[at].resolvable, publishes=compiled.publishes)
    for at, score in enumerate(compiled.scores):
        path = ("spec", "scores", at)
        yield path, check_score(path, score)
    for at, protection in enumerate(compiled.protections):
        path = ("spec", "preemption", "protect", at, "expression")
        yield path, check_protection(path, protection.expression)
    for at, annotation in enumerate(compiled.annotations):
        path = ("spec", "binding", "annotations", at, "expression")
        yield path, check_engine(path, annotation.expression)
    absent = AbsentKeyChecks(compiled, spec.match)
    yield ("spec", "binding"), check_device_shares(spec.binding.device_share if spec.binding else ())
    for path, share in _cards(compiled, policy):
        if share.expression is not None:
            yield path, check_cards(path, share.expression)
    for path, gang in _gangs(compiled, policy):
        yield path, check_gang(path, gang)
    for path, expression in expressions.items():
        yield path, check_comparisons(path, expression)
        yield path, check_amounts(path, expression)
        yield path, absent.check(path, expression)


def _whole(compiled: CompiledPolicy) -> Iterator[LintWarning]:
    if compiled.scheduler_name == CLUSTERS_OWN_SCHEDULER:
        message = (
            f"Fairlead never manages {CLUSTERS_OWN_SCHEDULER}: the policy has an effect only where the operator's "
            "settings list that scheduler as ConfigOnly and its own configuration calls Fairlead"
        )
        hint = "for a scheduler that Fairlead runs, use another name here and in the pods, such as fairlead"
        yield LintWarning(LintCode.DEFAULT_SCHEDULER, ("spec", "schedulerName"), message, hint)
    if not compiled.evaluated:
        message = "the policy is compiled and reported on, but not applied to any pod"
        yield LintWarning(LintCode.DISABLED, ("spec", "mode"), message, "write Enforce to apply it")
    if not (compiled.filters or compiled.scores or compiled.protections or compiled.annotations or compiled.gangs):
        hint = "add filters, scores, preemption.protect or binding.annotations"
        yield LintWarning(LintCode.HAS_NO_EFFECT, ("spec",), "the policy has no rules and changes nothing", hint)


def _unused(
    compiled: CompiledPolicy, policy: SchedulerExtenderPolicy, expressions: Sequence[CompiledExpression]
) -> Iterator[LintWarning]:
    used = {name for expression in expressions for name in expression.variables}
    for at, variable in enumerate(policy.spec.variables):
        if variable.name not in used:
            path = ("spec", "variables", at, "name")
            yield LintWarning(LintCode.UNUSED_VARIABLE, path, f"no rule uses variables.{variable.name}", "remove it")
    read = set(compiled.reads.data)
    for expression in expressions:
        read |= {path[1] if len(path) > 1 else EVERY for path in expression.paths if path[0] == "data"}
    for at, entry in enumerate(policy.spec.data):
        if entry.name not in read and EVERY not in read:
            path = ("spec", "data", at, "name")
            yield LintWarning(LintCode.UNUSED_DATA, path, f"no rule reads data.{entry.name}", "remove it")


def _expressions(
    compiled: CompiledPolicy, policy: SchedulerExtenderPolicy
) -> Iterator[tuple[FieldPath, CompiledExpression]]:
    """Yield the expressions of all rules, and of the variables that they use."""
    rules: list[tuple[FieldPath, CompiledExpression | None]] = [
        *((("spec", "match", "conditions", at), rule.expression) for at, rule in enumerate(compiled.match.conditions)),
        *((("spec", "filters", at), rule.expression) for at, rule in enumerate(compiled.filters)),
        *((("spec", "scores", at), rule.expression) for at, rule in enumerate(compiled.scores)),
        *((("spec", "preemption", "protect", at), rule.expression) for at, rule in enumerate(compiled.protections)),
        *((("spec", "binding", "annotations", at), rule.expression) for at, rule in enumerate(compiled.annotations)),
        *((path, rule.expression) for path, rule in _cards(compiled, policy)),
        *(((*path, "group"), rule.group) for path, rule in _gangs(compiled, policy)),
        *(((*path, "size"), rule.size) for path, rule in _gangs(compiled, policy)),
    ]
    used: dict[str, CompiledExpression] = {}
    for path, expression in rules:
        if expression is not None:
            used |= expression.variables
            yield path if path[-1] in _EXPRESSIONS else (*path, "expression"), expression
    for at, variable in enumerate(policy.spec.variables):
        if variable.name in used:
            yield ("spec", "variables", at, "expression"), used[variable.name]


def _cards(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[tuple[FieldPath, DeviceShareRule]]:
    entries = policy.spec.binding.device_share if policy.spec.binding else ()
    at = {str(entry.name): at for at, entry in enumerate(entries)}
    for rule in compiled.device_shares:
        yield ("spec", "binding", "deviceShare", at[rule.name], "cards"), rule


def _gangs(compiled: CompiledPolicy, policy: SchedulerExtenderPolicy) -> Iterator[tuple[FieldPath, GangRule]]:
    entries = policy.spec.binding.gang if policy.spec.binding else ()
    at = {str(entry.name): at for at, entry in enumerate(entries)}
    for rule in compiled.gangs:
        yield ("spec", "binding", "gang", at[rule.name]), rule


def _position(warning: LintWarning) -> tuple[int, ...]:
    """Return the sort key of a warning: the order of the fields of a spec, then of the rules."""
    field = warning.path[1] if len(warning.path) > 1 else ""
    return _ORDER.get(str(field), -1), *(segment for segment in warning.path if isinstance(segment, int))
