"""Label selectors as in Kubernetes, and their compilation to functions.

Their lists are short: a strategy may hold a selector in each of its items, and the API server estimates the cost of
validating a policy as if all lists were full.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.values import LabelValue, QualifiedKey

_WITH_VALUES = ("In", "NotIn")


class Requirement(Params):
    """A requirement on one label."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    key: QualifiedKey
    """Key of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Relation between the label and the values. In and NotIn need values, Exists and DoesNotExist take none."""
    values: Annotated[Listed[LabelValue], Field(max_length=16)] = ()
    """Values for In and NotIn."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require values for In and NotIn, and none for the other operators."""
        return (
            FieldCheck(
                rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
                holds=lambda self: self.operator not in _WITH_VALUES or bool(self.values),
                message="the operators In and NotIn need at least one value",
                field="values",
            ),
            FieldCheck(
                rule="self.operator in ['In', 'NotIn'] || !has(self.values) || self.values.size() == 0",
                holds=lambda self: self.operator in _WITH_VALUES or not self.values,
                message="the operators Exists and DoesNotExist take no values: leave them out",
                field="values",
            ),
        )


class LabelSelector(Params):
    """A selector of objects by label. Every part must match; an empty selector matches every object."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    match_labels: Annotated[dict[QualifiedKey, LabelValue], Field(max_length=16)] = Field(default_factory=dict)
    """Labels with their required values."""
    match_expressions: Annotated[Listed[Requirement], Field(max_length=6)] = ()
    """Requirements on labels."""

    def __hash__(self) -> int:
        return hash((frozenset(self.match_labels.items()), self.match_expressions))

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the labels that it looks at."""
        return frozenset((*self.match_labels, *(each.key for each in self.match_expressions)))

    def wanted_values(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the labels that must have one of some values, with the values."""
        for key, value in self.match_labels.items():
            yield key, frozenset({value})
        for each in self.match_expressions:
            if each.operator == "In":
                yield each.key, frozenset(each.values)


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
