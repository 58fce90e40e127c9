"""Node selectors and tolerations of pods, with the semantics of kube-scheduler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Labels = Mapping[str, str]
Matches = Callable[[Labels, str], bool]
"""Predicate of a node's labels and name."""
_OPERATORS: Final = {"Exists": "", "DoesNotExist": "!"}


def node_affinity(selector: Labels, required: Any) -> tuple[Matches, str]:
    """Return a predicate for the nodes that a pod selects, and its text."""
    exact = sorted(selector.items())
    written = [f"{key}={value}" for key, value in exact]
    if not required:
        return lambda labels, _: all(labels.get(key) == value for key, value in exact), ", ".join(written)
    terms = [one for one in map(_term, required.nodeSelectorTerms) if one is not None]
    written.append(" or ".join(text for _, text in terms) or "no term")

    def matches(labels: Labels, name: str) -> bool:
        return all(labels.get(key) == value for key, value in exact) and any(term(labels, name) for term, _ in terms)

    return matches, ", ".join(written)


def tolerates(tolerations: Sequence[Any], key: str, value: str, effect: str) -> bool:
    """Return whether a toleration matches a taint."""
    return any(_tolerates(one, key, value, effect) for one in tolerations)


def _tolerates(one: Any, key: str, value: str, effect: str) -> bool:
    if one.effect and one.effect != effect:
        return False
    if one.key and one.key != key:
        return False
    if one.operator == "Exists":
        return True
    # Without a key only `Exists` works. Lt and Gt are behind a feature gate that is off.
    return bool(one.key) and one.operator in ("", "Equal") and one.value == value


def _term(term: Any) -> tuple[Matches, str] | None:
    """Return a term that needs all its requirements; None for one without any, which selects nothing."""
    labelled = [_requirement(one) for one in term.matchExpressions]
    named = [_requirement(one) for one in term.matchFields]
    if not labelled and not named:
        return None
    written = " and ".join([_text(one) for one in (*term.matchExpressions, *term.matchFields)])

    def matches(labels: Labels, name: str) -> bool:
        return all(one(labels) for one in labelled) and all(one({"metadata.name": name}) for one in named)

    return matches, written


def _requirement(one: Any) -> Callable[[Labels], bool]:
    key, values = str(one.key), frozenset(one.values)
    match one.operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case "Gt" | "Lt" if len(one.values) == 1:
            wanted, sign = _whole(one.values[0]), 1 if one.operator == "Gt" else -1

            def is_beyond(labels: Labels) -> bool:
                found = _whole(labels.get(key, ""))
                return wanted is not None and found is not None and (found - wanted) * sign > 0

            return is_beyond
    return lambda _: False  # the API server rejects other operators


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _text(one: Any) -> str:
    match one.operator:
        case "Exists" | "DoesNotExist":
            return f"{_OPERATORS[one.operator]}{one.key}"
        case "In" | "NotIn" if len(one.values) == 1:
            return f"{one.key}{'=' if one.operator == 'In' else '!='}{one.values[0]}"
        case "Gt" | "Lt":
            return f"{one.key} {'>' if one.operator == 'Gt' else '<'} {', '.join(one.values)}"
    return f"{one.key} {'in' if one.operator == 'In' else 'not in'} ({', '.join(sorted(one.values))})"
