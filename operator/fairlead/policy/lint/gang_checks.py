"""Warnings about the groups of a policy."""

from fairlead.api.errors import FieldPath
from fairlead.groups.group import SIZE_MAX
from fairlead.policy.compile.model import GangRule
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.lint.rule_checks import check_engine
from fairlead.policy.symbolic.terms import term_outcomes


def check_gang(path: FieldPath, gang: GangRule) -> LintWarnings:
    """Yield the warnings about an entry: sizes that no group can have, and what runs on the engine."""
    where = (*path, "size")
    sizes = term_outcomes(gang.size) or frozenset()
    yield None
    if outside := sorted(value for value in sizes if not 1 <= value <= SIZE_MAX):
        listed = " and ".join(f"{value:g}" for value in outside)
        message = f"a group has 1 to {SIZE_MAX} members, so with {listed} the pod is rejected on every node"
        yield LintWarning(LintCode.NEVER_PASSES, where, message, f"give a number from 1 to {SIZE_MAX}")
    elif sizes == {1}:
        message = "a pod whose group has one member waits for no other"
        yield LintWarning(LintCode.HAS_NO_EFFECT, where, message, "give the number of pods that start together")
    yield None
    yield from check_engine((*path, "group"), gang.group)
    yield from check_engine(where, gang.size)
