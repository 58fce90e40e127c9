"""Notes about what is in shadow: it decides nothing, and some of it is not even compared."""

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.api.mode import RuleMode
from fairlead.api.rules import Binding
from fairlead.api.v1alpha1 import Spec
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import compared
from fairlead.policy.lint.codes import LintCode, LintWarning

_SIMULATE: Final = "`fairlead simulate --as-enforced` shows what it would do to the pods of now"


def check_shadow(compiled: CompiledPolicy, spec: Spec) -> Iterator[LintWarning]:
    """Yield the notes about what a policy has in shadow, and a warning for each mode without an effect."""
    look = f"`fairlead shadow {compiled.name}` shows what enforcing it would change"
    if compiled.mode == "Shadow":
        if compiled.shadow is None or compared(compiled) is not None:
            unpublished = ", and nothing is published" if spec.publish == "NodeAffinity" else ""
            message = f"the rules are evaluated for real calls and decide nothing{unpublished}"
            yield LintWarning(LintCode.SHADOW, ("spec", "mode"), message, look)
        for path, mode in _modes(spec):
            if mode == "Enforce":
                message = "the policy is in shadow, and so is this rule: of both modes, the weaker one holds"
                hint = "write mode: Enforce for the policy, and mode: Shadow for the rules that are to stay in shadow"
                yield LintWarning(LintCode.HAS_NO_EFFECT, (*path, "mode"), message, hint)
    elif compiled.enforced:
        requiring = {rule.name for rule in compiled.shadow.domain_rules} if compiled.shadow is not None else set()
        uncompared = {("spec", "filters", at) for at, rule in enumerate(spec.filters) if rule.name in requiring}
        for path, mode in _modes(spec):
            if mode == "Shadow" and path not in uncompared:
                message = "the rule is evaluated for real calls and decides nothing"
                yield LintWarning(LintCode.SHADOW, (*path, "mode"), message, look)
    if compiled.evaluated and compiled.shadow is not None:
        yield from _not_compared(compiled.shadow, spec)


def _not_compared(shadow: CompiledPolicy, spec: Spec) -> Iterator[LintWarning]:
    """Yield a note for each rule whose say depends on what it holds or has written, as in shadow it does neither."""
    requiring = {rule.name for rule in shadow.domain_rules}
    for at, rule in enumerate(spec.filters):
        if rule.name in requiring and rule.strategy is not None:
            message = "in shadow this is not compared: it decides by the domains that it has written"
            yield LintWarning(LintCode.NOT_COMPARED, ("spec", "filters", at, rule.strategy[0]), message, _SIMULATE)
    if shadow.gangs:
        message = "in shadow this is not compared: it decides by the pods that it holds"
        yield LintWarning(LintCode.NOT_COMPARED, ("spec", "binding", "gang"), message, _SIMULATE)


def _modes(spec: Spec) -> Iterator[tuple[FieldPath, RuleMode | None]]:
    """Yield the mode of each rule that may have one."""
    binding = spec.binding or Binding()
    rules: Mapping[FieldPath, list[RuleMode | None]] = {
        ("spec", "filters"): [one.mode for one in spec.filters],
        ("spec", "scores"): [one.mode for one in spec.scores],
        ("spec", "preemption", "protect"): [one.mode for one in spec.preemption.protect],
        ("spec", "binding", "annotations"): [one.mode for one in binding.annotations],
    }
    for path, modes in rules.items():
        yield from (((*path, at), mode) for at, mode in enumerate(modes))
