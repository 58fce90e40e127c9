"""Label selectors, compiled to functions."""

from collections.abc import Callable, Mapping

from fairlead.api.selectors import LabelSelector, Requirement

Labels = Mapping[str, str]


def compile_selector(selector: LabelSelector) -> Callable[[Labels], bool]:
    """Return a function that matches labels as Kubernetes does: NotIn also matches if the label is missing."""
    exact = tuple(selector.match_labels.items())
    conditions = tuple(_condition(one) for one in selector.match_expressions)

    def matches(labels: Labels) -> bool:
        for key, value in exact:
            if labels.get(key) != value:
                return False
        return all(condition(labels) for condition in conditions)

    return matches


def _condition(requirement: Requirement) -> Callable[[Labels], bool]:
    key, values = requirement.key, frozenset(requirement.values)
    match requirement.operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
