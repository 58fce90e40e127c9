"""Publication of a policy in words."""

from collections.abc import Mapping
from typing import Any, Final

from fairlead.policy.affinity.node_terms import PublishedGuard, PublishedTerm

_FACTS: Final = {
    "label": "label",
    "annotation": "annotation",
    "namespaceLabel": "namespace's label",
    "resource": "limit of",
}
_SIGNS: Final = {"In": "in", "NotIn": "not in", "Gt": ">", "Lt": "<"}


def term_text(term: PublishedTerm) -> str:
    """Return an alternative in words."""
    asked = " and ".join(map(requirement_text, term.get("matchExpressions", ()))) or "any node"
    guards = " and ".join(map(guard_text, term.get("when", ())))
    return f"{asked}, for pods with {guards}" if guards else asked


def requirement_text(requirement: Mapping[str, Any]) -> str:
    """Return a requirement in words."""
    key, operator = requirement["key"], requirement["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return f"{key} is {'there' if operator == 'Exists' else 'absent'}"
    if "values" in requirement:
        return (
            f"{key} {_SIGNS.get(operator, operator)} {_values(requirement['values'])}"  # of a pod in a file, any text
        )
    return f"{key} {'is' if operator == 'In' else 'is not'} the {_fact(requirement)}"


def guard_text(guard: PublishedGuard) -> str:
    """Return a condition on a pod in words."""
    operator = guard["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return f"{'' if operator == 'Exists' else 'no '}{_fact(guard)}"
    return f"{_fact(guard)} {_SIGNS[operator]} {_values(guard['values'])}"


def _fact(reading: Mapping[str, Any]) -> str:
    for source, word in _FACTS.items():
        if source in reading:
            default = f" (absent: {reading['default'] or repr('')})" if "default" in reading else ""
            return f"{word} {reading[source]}{default}"
    return "namespace"


def _values(values: list[str]) -> str:
    return ", ".join(one or repr("") for one in values)
