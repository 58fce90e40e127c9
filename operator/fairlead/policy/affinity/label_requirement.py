"""Requirements on labels of nodes, as terms of node affinity have them: what they select, and their text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

Labels = Mapping[str, str]
Matches = Callable[[Labels, str], bool]
"""Predicate of a node's labels and name."""
_OPERATORS: Final = {"Exists": "", "DoesNotExist": "!"}


class LabelRequirement(NamedTuple):
    """Requirement on one label, or on the name of the node."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> "LabelRequirement":
        """Return the requirement of a manifest."""
        return cls(written.get("key") or "", written.get("operator") or "", tuple(written.get("values") or ()))

    def holds(self, labels: Labels) -> bool:
        """Report whether labels meet it, as kube-scheduler decides."""
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "Gt" | "Lt" if len(self.values) == 1:
                wanted, found = _whole(self.values[0]), _whole(labels.get(self.key, ""))
                sign = 1 if self.operator == "Gt" else -1
                return wanted is not None and found is not None and (found - wanted) * sign > 0
        return False  # the API server rejects other operators

    def __str__(self) -> str:
        match self.operator:
            case "Exists" | "DoesNotExist":
                return f"{_OPERATORS[self.operator]}{self.key}"
            case "In" | "NotIn" if len(self.values) == 1:
                return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
            case "Gt" | "Lt":
                return f"{self.key} {'>' if self.operator == 'Gt' else '<'} {', '.join(self.values)}"
        return f"{self.key} {'in' if self.operator == 'In' else 'not in'} ({', '.join(sorted(self.values))})"


def node_selection(selector: Labels, required: Any) -> tuple[Matches, str]:
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


def _term(term: Any) -> tuple[Matches, str] | None:
    """Return a term that needs all its requirements; None for one without any, which selects nothing."""
    labelled, named = _requirements(term.matchExpressions), _requirements(term.matchFields)
    if not labelled and not named:
        return None
    written = " and ".join(map(str, (*labelled, *named)))

    def matches(labels: Labels, name: str) -> bool:
        return all(one.holds(labels) for one in labelled) and all(one.holds({"metadata.name": name}) for one in named)

    return matches, written


def _requirements(values: Sequence[Any]) -> list[LabelRequirement]:
    return [LabelRequirement(str(one.key), str(one.operator), tuple(one.values)) for one in values]


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
