"""Warnings about a single expression: strings compared as numbers, and entries read that may be absent.

Quantities, labels and annotations are strings to Kubernetes: `'9' > '10'` is true.

Reading an absent entry raises an error. In a condition an error makes the policy's filters reject the pod, in a filter
it rejects the node, in a protection it protects. There is no warning where another value of the entry would come to the
same: a filter that requires a value rejects a node without the label either way.
"""

import re
from collections.abc import Generator, Iterator
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.api.rules import MatchSpec
from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import Call, Select, children, walk
from fairlead.cel.syntax.diagnostics import place
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.absent_keys import AMOUNTS, QUANTITIES, MapEntry, OutcomePairs, all_of, entries, outcomes
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.lint.match_checks import required_labels
from fairlead.policy.symbolic.terms import Term, TooLargeError, read, read_optionally, term_of

_ORDERS: Final = ("_<_", "_<=_", "_>_", "_>=_")
_NODES_PER_PAUSE: Final = 50
_STRINGS: Final = ("labels", "annotations")
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?")  # leading zeros may be there for the order
_VERSION: Final = re.compile(r"v?(?P<major>0|[1-9][0-9]{0,5})\.(?P<minor>0|[1-9][0-9]{0,5})(\.(0|[1-9][0-9]{0,5}))?")
_SEMVERS: Final = ("kubeletVersion", "kubeProxyVersion")
_VERSIONS: Final = (*_SEMVERS, "kernelVersion", "containerRuntimeVersion")


def check_comparisons(path: FieldPath, expression: CompiledExpression) -> LintWarnings:
    """Yield a warning for each comparison of strings that are numbers."""
    checked = expression.expression.checked
    for at, node in enumerate(walk(checked.root)):
        if at % _NODES_PER_PAUSE == 0:
            yield None
        if isinstance(node, Call) and node.function in _ORDERS and (found := _numbers(expression, node)):
            what, hint = found
            message = f"{what} are strings, and `{node.function.strip('_')}` compares them character by character"
            here = place(expression.expression.text, checked.positions.get(node.id, 0))
            yield LintWarning(LintCode.COMPARED_AS_TEXT, path, message, hint, here)


def _numbers(expression: CompiledExpression, node: Call) -> tuple[str, str] | None:
    """Return what a comparison of strings compares, if these are numbers, and what to write instead."""
    whole = term_of(expression)
    if not any(overload.endswith("_string") for overload in whole.checked.overloads.get(node.id, ())):
        return None
    sign = node.function.strip("_")
    try:
        one, other = (whole.at(side) for side in node.args)
        ways = ((_entry(one), other.constant(), False), (_entry(other), one.constant(), True))
    except TooLargeError:
        return None
    left, right = map(text, node.args)
    for side, value, is_turned in ((one, other.constant(), False), (other, one.constant(), True)):
        if isinstance(side.node, Select) and side.node.field in _VERSIONS and isinstance(value, str):
            return "versions", _as_versions(side.node, value, sign, is_turned=is_turned)
    for entry, value, is_turned in ways:
        if entry is None:
            continue
        holder, key = entry
        if holder.field in QUANTITIES:
            hint = f"write `quantity({left}).compareTo(quantity({right})) {sign} 0`"
            number = to_float(value) if isinstance(value, str) else None
            if text(holder) == "node.status.allocatable" and number is not None:
                amount = f"allocatable[{key!r}]"
                hint += f", or `{number!r} {sign} {amount}`" if is_turned else f", or `{amount} {sign} {number!r}`"
            return "quantities", hint
        if holder.field in _STRINGS and isinstance(value, str) and _NUMBER.fullmatch(value):
            convert = "double" if "." in value else "int"
            better = f"{value} {sign} {convert}({right})" if is_turned else f"{convert}({left}) {sign} {value}"
            version = "; for versions, compare the parts as numbers" if "." in value else ""
            return holder.field, f"write `{better}`{version}"
        if holder.field in _STRINGS and isinstance(value, str) and _VERSION.fullmatch(value):
            read_by = right if is_turned else left
            return holder.field, f"write `{_semver(read_by, value, sign, is_turned=is_turned)}`"
    return None


def _as_versions(field: Select, value: str, sign: str, *, is_turned: bool) -> str:
    """Return what to write for a version of the node that is compared with a text."""
    what = text(field)
    if field.field in _SEMVERS and _VERSION.fullmatch(value):
        return f"write `{_semver(what, value, sign, is_turned=is_turned)}`"
    if (found := _VERSION.fullmatch(value)) and field.field == "kernelVersion":  # it may have more than a version has
        parts = [f"int({what}.split('.')[{at}])" for at in range(2)]
        number = int(found["major"]) * 1000 + int(found["minor"])
        ways = (f"{parts[0]} * 1000 + {parts[1]}", str(number))
        return f"write `{f' {sign} '.join(ways[::-1] if is_turned else ways)}`"
    return "compare the parts as numbers"


def _semver(what: str, value: str, sign: str, *, is_turned: bool) -> str:
    """Return a comparison of versions; builds of vendors, such as 1.30.0-eks-1, count for the version itself."""
    version = ".".join([*value.removeprefix("v").split("."), "0"][:3])
    from_it = ("<", ">=") if not is_turned else (">", "<=")
    sides = [f"semver({what}, true)", f"semver('{version}{'-0' if sign in from_it else ''}')"]
    one, other = sides[::-1] if is_turned else sides
    return f"{one}.compareTo({other}) {sign} 0"


def _entry(term: Term) -> tuple[Select, str] | None:
    """Return the map and the key that a string is read from; None if it is not read from a map."""
    if found := term.args("orValue", "value"):
        term = found[0]
    entry = read(term) or read_optionally(term)
    if entry is None or not isinstance(entry[0].node, Select):
        return None
    return entry[0].node, str(entry[1])


_NODE_LABELS: Final = frozenset(
    {
        *(f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("arch", "hostname", "os")),
        *(f"topology.kubernetes.io/{name}" for name in ("region", "zone")),
        "node.kubernetes.io/instance-type",
    }
)
"""Labels that every node has."""
_LISTS: Final = (".containers", ".addresses", ".conditions")
"""Lists that are never empty."""
_ROOTS: Final = {"pod": "a pod", "node": "a node", "victim": "a victim", "namespaceObject": "a namespace"}
_ENTRIES_MAX: Final = 8
"""Entries per expression that are worth a warning."""
_NAMESPACE_LABELS: Final = frozenset({"kubernetes.io/metadata.name"})
_RESOURCES: Final = frozenset({"cpu", "ephemeral-storage", "memory", "pods"})


class AbsentKeyChecks:
    """Checks of one policy's expressions for entries that may be absent."""

    def __init__(self, compiled: CompiledPolicy, match: MatchSpec) -> None:
        self._compiled = compiled
        self._conditions = [condition.expression for condition in compiled.match.conditions]
        self._known: dict[MapEntry, OutcomePairs] = {}
        self._present = {
            "pod.metadata.labels": required_labels(match.pod_selector),
            "namespaceObject.metadata.labels": required_labels(match.namespace_selector) | _NAMESPACE_LABELS,
            "node.metadata.labels": _NODE_LABELS,
            "node.status.allocatable": _RESOURCES,
            "node.status.capacity": _RESOURCES,
            **dict.fromkeys(AMOUNTS, _RESOURCES),
        }

    def check(self, path: FieldPath, expression: CompiledExpression) -> LintWarnings:
        """Yield the warnings about an expression of the policy."""
        match path[1:]:
            case ("match", *_):
                yield from self._in_condition(path, expression)
            case ("filters", int(at), *_) if self._compiled.filters[at].rejects_on_error:
                yield from self._in_filter(path, expression)
            case ("preemption", *_) if "victim" in expression.roots:
                yield from self._in_protection(path, expression)
            case ("binding", "gang", *_, field):
                yield from self._in_gang(path, expression, "it" if field == "group" else "a pod with a group")

    def _in_condition(self, path: FieldPath, expression: CompiledExpression) -> LintWarnings:
        compiled = self._compiled
        if not compiled.filters and not compiled.protections:
            return  # scores and annotations are left out, as they would be for a pod that does not match
        then = "protections then hold for every victim"
        if compiled.filters:
            then = "filters then reject it on every node"
        for entry in self._entries(expression):
            if any(absent is None for absent, _ in (yield from self._matching(entry))):
                yield _warning(path, expression, entry, f"the policy's {then}")

    def _in_filter(self, path: FieldPath, expression: CompiledExpression) -> LintWarnings:
        for entry in self._entries(expression):
            found = yield from self._outcomes(expression, entry)
            is_meant_empty = any(absent is None for absent, _ in found) and _is_compared_with_nothing(expression, entry)
            if (None, True) in found or is_meant_empty:
                yield _warning(path, expression, entry, "an error rejects the node (onError: Reject)")

    def _in_protection(self, path: FieldPath, expression: CompiledExpression) -> LintWarnings:
        for entry in self._entries(expression):
            if (None, False) in (yield from self._outcomes(expression, entry)):
                yield _warning(path, expression, entry, "an error protects the victim")

    def _in_gang(self, path: FieldPath, expression: CompiledExpression, rejected: str) -> LintWarnings:
        for entry in self._entries(expression):
            found = yield from self._outcomes(expression, entry)
            if found and all(absent is None for absent, _ in found):
                yield _warning(path, expression, entry, f"{rejected} is then rejected on every node")

    def _entries(self, expression: CompiledExpression) -> list[MapEntry]:
        """Return the entries that the expression reads and that may be absent, at most `_ENTRIES_MAX`."""
        found = [one for one in entries(expression) if one.key not in self._present.get(one.map, ())]
        return [one for one in found if one.key is not None or not one.map.endswith(_LISTS)][:_ENTRIES_MAX]

    def _outcomes(self, expression: CompiledExpression, entry: MapEntry) -> Generator[None, None, OutcomePairs]:
        """Return the outcomes of a rule for the pods that match."""
        yield
        if entry.map == "request" and any(entry.key in one.written for one in self._conditions):
            return frozenset()  # conditions cannot read `request`: they ask the containers for the resource
        if not any(absent for absent, _ in (yield from self._matching(entry))):
            return frozenset()
        return outcomes(expression, entry)

    def _matching(self, entry: MapEntry) -> Generator[None, None, OutcomePairs]:
        """Return the outcomes of all conditions that read the entry, taken together."""
        if entry not in self._known:
            about = self._conditions
            if entry.root in _ROOTS and entry.key is not None:  # paths do not have the keys that macros go over
                about = [one for one in about if any(entry.key in path for path in one.paths)]
            found = list[OutcomePairs]()
            for condition in about:
                yield
                found.append(outcomes(condition, entry))
            self._known[entry] = all_of(found)
        return self._known[entry]


def _is_compared_with_nothing(expression: CompiledExpression, entry: MapEntry) -> bool:
    """Report whether an expression asks for an empty text where it means that there is none: `labels['a'] == ''`."""
    try:
        return any(_is_empty(term, entry) for term in _parts(term_of(expression)))
    except TooLargeError:
        return False


def _parts(term: Term) -> Iterator[Term]:
    yield term
    for child in children(term.node):
        yield from _parts(term.at(child))


def _is_empty(term: Term, entry: MapEntry) -> bool:
    sides = term.args("_==_")
    if not any(side.constant() == "" for side in sides):
        return False
    return (entry.holder, entry.key) in [(holder.key(), key) for holder, key in filter(None, map(read, sides))]


def _warning(path: FieldPath, expression: CompiledExpression, entry: MapEntry, then: str) -> LintWarning:
    message = f"this raises an error {_where_absent(entry)}, and {then}"
    return LintWarning(LintCode.ABSENT_RAISES, path, message, _hint(expression, entry))


def _where_absent(entry: MapEntry) -> str:
    """Return in words which objects do not have the entry."""
    if entry.key is None:
        return f"where {entry.map} is empty"
    if entry.is_of_variable:
        return (
            f"for a pod that requests no {entry.key!r}"
            if entry.map == "request"
            else f"on a node without {entry.key!r}"
        )
    kinds = {"labels": "label", "annotations": "annotation"}
    holder, _, field = entry.map.rpartition(".")
    if entry.root in _ROOTS and holder == f"{entry.root}.metadata" and field in kinds:
        return f"for {_ROOTS[entry.root]} without the {kinds[field]} {entry.key!r}"
    return f"where {entry.map} has no {entry.key!r}"


_DEFAULTS: Final = {
    "int": "'0'",
    "uint": "'0'",
    "double": "'0'",
    "quantity": "'0'",
    "bool": "'false'",
    "duration": "'0s'",
}
"""Texts that these conversions take; for an empty one they raise, too."""


def _hint(expression: CompiledExpression, entry: MapEntry) -> str:
    if entry.key is None:
        return f"check `{entry.map}.size() > 0` first, or use `{entry.map}.exists(...)`"
    written, of_quantity = expression.expression.text, entry.map.rpartition(".")[2] in QUANTITIES
    taken = (default for conversion, default in _DEFAULTS.items() if f"{conversion}({entry.map}" in written)
    reads = (f"{entry.map}['{entry.key}']", f"{entry.map}.{entry.key}")
    of_quantity = of_quantity and not any(f"{one} {sign} ''" in written for one in reads for sign in ("==", "!="))
    default = "0.0" if entry.is_of_variable else next(taken, "'0'" if of_quantity else "''")
    return f"write `{entry.map}[?{entry.key!r}].orValue({default})`, or check `{entry.key!r} in {entry.map}` first"
