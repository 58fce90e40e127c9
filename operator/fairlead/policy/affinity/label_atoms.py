"""Parts of expressions that are comparisons of labels, of nodes and of what is known of a pod when it is created."""

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairlead.api.names import LATE_LABELS
from fairlead.cel.syntax.ast import Call, Comprehension, Const, Ident, ListExpr, Node, Select
from fairlead.policy.symbolic.label_sets import (
    ABSENT,
    NAME,
    PRESENT,
    LabelValues,
    PodFact,
    Requirements,
    SameValue,
    Subject,
    Terms,
    simplify,
)
from fairlead.policy.symbolic.terms import TURNED, UNKNOWN, Term, read, read_optionally, tested_for

_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_FACT_VALUE_MAX: Final = 256
"""Length of a text that an annotation may be compared with."""
_COMPARE: Final = {"_<_": operator.lt, "_<=_": operator.le, "_>_": operator.gt, "_>=_": operator.ge}
_BEFORE: Final = {"_>=_": -1, "_<=_": 1}
_REFUSED_BY_KARPENTER: Final = "karpenter.sh/"
_KNOWN_TO_KARPENTER: Final = ("karpenter.sh/nodepool", "karpenter.sh/capacity-type")
_HOSTNAME: Final = "kubernetes.io/hostname"


class NotSaidError(Exception):
    """A part of an expression cannot be said by labels; its message is why, or empty."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Labels and facts that affinity may speak of."""

    names: bool = False
    """Whether it may name nodes, which makes Karpenter ignore a pod."""
    all_keys: bool = False
    """Whether it may have labels that Karpenter refuses."""
    facts: bool = True
    """Whether it may depend on facts about the pod."""
    late_labels: tuple[str, ...] = LATE_LABELS
    """Prefixes of labels that it leaves out."""

    def refuse(self, key: str) -> None:
        """Raise NotSaidError for a label that affinity may not have."""
        if not self.names and key == NAME:
            raise NotSaidError("Karpenter ignores pods that name nodes")
        is_refused = key.startswith(_REFUSED_BY_KARPENTER) and key not in _KNOWN_TO_KARPENTER
        if not self.all_keys and (key == _HOSTNAME or is_refused):
            raise NotSaidError(f"Karpenter ignores pods that ask for the label {key}")
        if key.startswith(self.late_labels):
            raise NotSaidError(f"{key} is a late label: nodes get it after they have joined")


EXACTLY: Final = Vocabulary(names=True, all_keys=True, facts=False, late_labels=())
"""Of nodes everything that a nodeAffinity can say."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Reading of a label of the node or of a fact about the pod."""

    of: str | PodFact
    default: str | None
    """Value if it is absent; None: that raises an error."""


def atom_sets(term: Term, vocabulary: Vocabulary) -> tuple[Terms, Terms]:
    """Return where a comparison or a test for presence is true, and where it is false. Raises NotSaidError."""
    if (subject := _tested_for(term, vocabulary)) is not None:
        return simplify([{subject: PRESENT}]), simplify([{subject: ABSENT}])
    if not (sides := term.args("_==_", "_!=_", "@in")):
        raise NotSaidError
    what, values = sides
    found, other = _read(what, vocabulary), None
    if term.function != "@in":
        other = _read(values, vocabulary)
        if found is None:
            found, other, values = other, None, what
    if found is None:
        raise NotSaidError
    if other is None:
        texts = frozenset(_texts(values, is_list=term.function == "@in", of_fact=isinstance(found.of, PodFact)))
        true, false = _constants(found, texts)
    else:
        true, false = _same(found, other)
    return (false, true) if term.function == "_!=_" else (true, false)


def _constants(label: _Read, wanted: frozenset[str]) -> tuple[Terms, Terms]:
    true = LabelValues(label.default in wanted, wanted)
    false = ~true
    if label.default is None:  # reading an absent label raises an error
        true, false = true & PRESENT, false & PRESENT
    return simplify([{label.of: true}]), simplify([{label.of: false}])


def _same(left: _Read, right: _Read) -> tuple[Terms, Terms]:
    """Return where a label of the node is equal to a fact about the pod, and where it is not. Raises NotSaidError."""
    node, pod = (right, left) if isinstance(left.of, PodFact) else (left, right)
    if not isinstance(node.of, str) or not isinstance(pod.of, PodFact) or node.of == NAME:
        raise NotSaidError
    same = SameValue(node.of, pod.of, pod.default)
    known: Requirements = {pod.of: PRESENT} if pod.default is None else {}
    true: list[Requirements] = [{same: PRESENT, **known}]
    false: list[Requirements] = [{same: ABSENT, node.of: PRESENT, **known}]
    if node.default is not None:  # of a node without the label the default is compared
        equal = LabelValues(pod.default == node.default, frozenset({node.default}))
        differs = ~equal if pod.default is not None else ~equal & PRESENT
        true.append({pod.of: equal, node.of: ABSENT})
        false.append({pod.of: differs, node.of: ABSENT})
    return simplify(true), simplify(false)


def number_limit(term: Term, vocabulary: Vocabulary) -> dict[str, object] | None:
    """Return a requirement Gt or Lt: a label compared as a number, false if it is absent or none; None if it is not.

    Raises NotSaidError.
    """
    for sign, turned in ((term.function, False), (TURNED.get(term.function, ""), True)):
        if not (sides := term.args(*_COMPARE)):
            return None
        what, limit = sides[::-1] if turned else sides
        number = limit.constant()
        if not (parsed := what.args("int")) or type(number) is not int:
            continue
        if (label := _read(parsed[0], vocabulary)) is None or not isinstance(label.of, str) or label.of == NAME:
            continue
        default, bound = label.default, number + _BEFORE.get(sign, 0)
        passes_by_default = default is not None and default.isdigit() and _COMPARE[sign](int(default), number)
        if not passes_by_default and 0 <= bound < 1 << 63:
            return {"key": label.of, "operator": "Gt" if ">" in sign else "Lt", "values": [str(bound)]}
    return None


def _texts(term: Term, *, is_list: bool, of_fact: bool) -> Iterator[str]:
    if is_list:
        if not isinstance(term.node, ListExpr) or term.node.optional:
            raise NotSaidError
        terms = [term.at(element) for element in term.node.elements]
    else:
        terms = [term]
    for one in terms:
        value = one.constant()
        if value is UNKNOWN or not isinstance(value, str):
            raise NotSaidError
        if not (len(value) <= _FACT_VALUE_MAX if of_fact else _VALUE.fullmatch(value)):
            raise NotSaidError
        yield value


def _tested_for(term: Term, vocabulary: Vocabulary) -> Subject | None:
    """Return the label or the fact whose presence a term tests; None if it tests none."""
    if found := tested_for(term):
        return _entry(*found, vocabulary)
    resource = _limited(term)
    if resource is None or not vocabulary.facts:
        return None
    if not _KEY.fullmatch(resource) or "/" not in resource:  # of others an admission plugin may still write limits
        raise NotSaidError
    return PodFact("resource", resource)


def _read(term: Term, vocabulary: Vocabulary) -> _Read | None:
    """Return the label or the fact that a term reads; None if it reads none."""
    if found := read(term):
        entry = _entry(*found, vocabulary)
        return None if entry is None else _Read(entry, None)
    match term.node:
        case Select(operand=holder, field=name, test_only=False):
            return _named(_path(term.at(holder)), name, vocabulary)
    if (chosen := term.args("orValue")) and (found := read_optionally(chosen[0])):
        entry, default = _entry(*found, vocabulary), chosen[1].constant()
        return _Read(entry, default) if entry is not None and isinstance(default, str) else None
    return None


def _named(path: tuple[str, ...], name: str, vocabulary: Vocabulary) -> _Read | None:
    match (*path, name):
        case ("node", "metadata", "name"):
            vocabulary.refuse(NAME)
            return _Read(NAME, None)
        case ("pod", "metadata", "namespace") | ("namespaceObject", "metadata", "name") if vocabulary.facts:
            return _Read(PodFact("namespace"), None)
    return None


def _entry(holder: Term, key: object, vocabulary: Vocabulary) -> str | PodFact | None:
    """Return the label or the fact that an entry of a map is; None if it is none. Raises NotSaidError."""
    path = _path(holder)
    if path == ("node", "metadata", "labels"):
        vocabulary.refuse(name := _key(key))
        return name
    if not vocabulary.facts:
        return None
    match path:
        case ("pod", "metadata", "labels"):
            return PodFact("label", _key(key))
        case ("pod", "metadata", "annotations"):
            return PodFact("annotation", _key(key))
        case ("namespaceObject", "metadata", "labels"):
            return PodFact("namespaceLabel", _key(key))
    return None


def _path(term: Term) -> tuple[str, ...]:
    """Return the root of the environment and the fields that a term reads; empty if it is more than that."""
    fields: list[str] = []
    while isinstance(node := term.node, Select) and not node.test_only:
        fields.append(node.field)
        term = term.at(node.operand)
    root = term.checked.names.get(node.id, "") if isinstance(node, Ident) else ""
    return (root, *reversed(fields)) if root else ()


def _key(key: object) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise NotSaidError
    return key


def _limited(term: Term) -> str | None:
    """Return the resource of `pod.spec.containers.exists(one, 'RESOURCE' in one.resources.limits)`; None for others."""
    match term.node:
        case (
            Comprehension(init=Const(value=False), step=Call(function="_||_", args=(Ident(name=so_far), asked))) as loop
        ):
            is_exists = so_far == loop.accumulator and isinstance(loop.result, Ident) and loop.result.name == so_far
            if is_exists and _path(term.at(loop.range)) == ("pod", "spec", "containers"):
                return _in_limits(asked, loop.variable)
    return None


def _in_limits(node: Node, container: str) -> str | None:
    match node:
        case Call(
            function="@in", args=(Const(value=str() as resource), Select(field="limits", test_only=False) as limits)
        ):
            match limits.operand:
                case Select(field="resources", test_only=False, operand=Ident(name=name)) if name == container:
                    return resource
    return None
