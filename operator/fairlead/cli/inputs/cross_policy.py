"""What is said of several policies: of one name, and of one annotation that two of them write."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.api.parse import shown
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cli.inputs.findings import Finding
from fairlead.cli.inputs.locations import PolicyLocation
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.annotations import conflicts
from fairlead.policy.lint.codes import LintCode
from fairlead.policy.lint.match_checks import are_apart
from fairlead.policy.lint.symbolic import can_be_together

_NAME = ("metadata", "name")


@dataclass(slots=True)
class CrossPolicyChecks:
    """Remembers what was read."""

    _names: dict[str, dict[str, int]] = field(default_factory=dict)
    """The line in which each file has a name first."""
    _writing: list[tuple[PolicyLocation, SchedulerExtenderPolicy, CompiledPolicy]] = field(default_factory=list)

    def same_name(self, place: PolicyLocation) -> Iterator[Finding]:
        """Within a file two policies of one name are a mistake; of two files often only one is ever applied."""
        if not place.name:
            return
        files = self._names.setdefault(place.name, {})
        line, _ = place.of(_NAME)
        if place.file in files:
            said = f"another policy has the name {shown(place.name)}: {place.file}:{files[place.file]}"
            yield place.finding(_NAME, said, "rename one of them")
        elif files:
            file, there = next(iter(files.items()))
            said = f"another policy has the name {shown(place.name)}: {file}:{there}"
            hint = "if both are applied, the later one replaces the other: rename one of them"
            yield place.finding(_NAME, said, hint, severity="warning", reason=LintCode.SAME_NAME.value)
        files.setdefault(place.file, line)

    def remember(self, place: PolicyLocation, policy: SchedulerExtenderPolicy, compiled: CompiledPolicy) -> None:
        """Remember a policy that compiles."""
        if compiled.annotations:
            self._writing.append((place, policy, compiled))

    def conflicts(self) -> Iterator[Finding]:
        """Annotations that a pod does not get from a policy, because another writes them that may match it, too."""
        ordered = sorted(self._writing, key=lambda one: one[2].order)
        for at, (place, policy, compiled) in enumerate(ordered):
            told = set[str]()
            for earlier, its_policy, its_compiled in ordered[:at]:
                new = {one.key for one in conflicts([its_compiled, compiled])} - told
                if not new or compiled.name == its_compiled.name or are_apart(policy.spec.match, its_policy.spec.match):
                    continue
                conditions = (*compiled.match.conditions, *its_compiled.match.conditions)
                if can_be_together(condition.expression for condition in conditions):
                    told |= new
                    for key in sorted(new):
                        yield _conflict(place, compiled, key, earlier, its_compiled)


def _conflict(
    place: PolicyLocation, compiled: CompiledPolicy, key: str, earlier: PolicyLocation, winner: CompiledPolicy
) -> Finding:
    at = [rule.key for rule in compiled.annotations].index(key)
    why = "its priority is higher" if winner.priority > compiled.priority else "its name comes first"
    line, _ = earlier.of(_NAME)
    said = f"{shown(winner.name)} ({earlier.file}:{line}) also writes {key} and wins where both match a pod: {why}"
    hint = "write another key, or let no pod match both"
    path = ("spec", "binding", "annotations", at, "key")
    return place.finding(path, said, hint, severity="warning", reason=LintCode.CONFLICT.value)
