"""What happens to pods and nodes that lack a label which an expression reads without asking for it.

In a condition an error makes the policy's filters refuse, in a filter it refuses the node, in a protection it protects.
Nothing is said where that comes to the same as another value of the label would: a filter that wants a value refuses a
node without the label either way.
"""

from collections.abc import Generator
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.api.rules import Match
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.absent_keys import MapEntry, OutcomePairs, all_of, entries, outcomes
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.expression_checks import QUANTITIES
from fairlead.policy.lint.match_checks import always_there
from fairlead.policy.lint.rule_checks import Said

_OF_NODES: Final = frozenset(
    {
        *(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "hostname", "os")),
        *(f"topology.kubernetes.io/{name}" for name in ("region", "zone")),
        "node.kubernetes.io/instance-type",
    }
)
_LISTS: Final = (".containers", ".addresses", ".conditions")
_ROOTS: Final = {"pod": "a pod", "node": "a node", "victim": "a victim", "namespaceObject": "a namespace"}
_ENTRIES_MAX: Final = 8
_OF_NAMESPACES: Final = frozenset({"kubernetes.io/metadata.name"})
_RESOURCES: Final = frozenset({"cpu", "ephemeral-storage", "memory", "pods"})


class AbsentLabels:
    """What a policy says of what is not there."""

    def __init__(self, compiled: CompiledPolicy, written: Match) -> None:
        self._compiled = compiled
        self._conditions = [condition.expression for condition in compiled.match.conditions]
        self._known: dict[MapEntry, OutcomePairs] = {}
        self._there = {
            "pod.metadata.labels": always_there(written.pod_selector),
            "namespaceObject.metadata.labels": always_there(written.namespace_selector) | _OF_NAMESPACES,
            "node.metadata.labels": _OF_NODES,
            "node.status.allocatable": _RESOURCES,
            "node.status.capacity": _RESOURCES,
        }

    def of(self, path: FieldPath, expression: CompiledExpression) -> Said:
        """What is said of an expression of the policy."""
        match path[1:]:
            case ("match", *_):
                yield from self._in_condition(path, expression)
            case ("filters", int(at), *_) if self._compiled.filters[at].rejects_on_error:
                yield from self._in_filter(path, expression)
            case ("preemption", *_):
                yield from self._in_protection(path, expression)

    def _in_condition(self, path: FieldPath, expression: CompiledExpression) -> Said:
        compiled = self._compiled
        if not compiled.filters and not compiled.protections:
            return  # scores and annotations are left out, as they would be for a pod that the policy is not for
        then = "protections then hold for every victim"
        if compiled.filters:
            then = "filters then refuse it on every node"
        for entry in self._entries(expression):
            if any(absent is None for absent, _ in (yield from self._matching(entry))):
                yield _warning(path, entry, f"the policy's {then}")

    def _in_filter(self, path: FieldPath, expression: CompiledExpression) -> Said:
        for entry in self._entries(expression):
            if (None, True) in (yield from self._outcomes(expression, entry)):
                yield _warning(path, entry, "what raises refuses the node (onError: Reject)")

    def _in_protection(self, path: FieldPath, expression: CompiledExpression) -> Said:
        for entry in self._entries(expression):
            if (None, False) in (yield from self._outcomes(expression, entry)):
                yield _warning(path, entry, "what raises protects")

    def _entries(self, expression: CompiledExpression) -> list[MapEntry]:
        """What it reads that may be absent, as many as anybody would read of."""
        found = [one for one in entries(expression) if one.key not in self._there.get(one.map, ())]
        return [one for one in found if one.key is not None or not one.map.endswith(_LISTS)][:_ENTRIES_MAX]

    def _outcomes(self, expression: CompiledExpression, entry: MapEntry) -> Generator[None, None, OutcomePairs]:
        """What a rule comes to for the pods that the policy is for."""
        yield
        if not any(absent for absent, _ in (yield from self._matching(entry))):
            return frozenset()
        return outcomes(expression, entry)

    def _matching(self, entry: MapEntry) -> Generator[None, None, OutcomePairs]:
        """What the conditions come to that have to do with it."""
        if entry not in self._known:
            about = self._conditions
            if entry.root in _ROOTS and entry.key is not None:  # of what macros go over, paths do not know the keys
                about = [one for one in about if any(entry.key in path for path in one.paths)]
            come_to = list[OutcomePairs]()
            for condition in about:
                yield
                come_to.append(outcomes(condition, entry))
            self._known[entry] = all_of(come_to)
        return self._known[entry]


def _warning(path: FieldPath, entry: MapEntry, then: str) -> LintWarning:
    said = f"this raises {_where_absent(entry)}, and {then}"
    return LintWarning(LintCode.ABSENT_RAISES, path, said, _cure(entry))


def _where_absent(entry: MapEntry) -> str:
    """Who lacks the entry."""
    if entry.key is None:
        return f"where {entry.map} is empty"
    kinds = {"labels": "label", "annotations": "annotation"}
    holder, _, field = entry.map.rpartition(".")
    if entry.root in _ROOTS and holder == f"{entry.root}.metadata" and field in kinds:
        return f"for {_ROOTS[entry.root]} without the {kinds[field]} {entry.key!r}"
    return f"where {entry.map} has no {entry.key!r}"


def _cure(entry: MapEntry) -> str:
    if entry.key is None:
        return f"ask `{entry.map}.size() > 0` first, or use `{entry.map}.exists(...)`"
    default = "'0'" if entry.map.rpartition(".")[2] in QUANTITIES else "''"
    return f"write `{entry.map}[?{entry.key!r}].orValue({default})`, or ask `{entry.key!r} in {entry.map}` first"
