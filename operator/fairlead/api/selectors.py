"""Label selectors as Kubernetes writes them.

Their lists are short, because a strategy may hold a selector in each of its items, and the API server reckons the cost
of checking a policy from all lists being full.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import Check, Listed, Params
from fairlead.api.values import LabelValue, QualifiedKey

_WITH_VALUES = ("In", "NotIn")


class Requirement(Params):
    """One condition on a label."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    key: QualifiedKey
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label relates to the values. In and NotIn need values, Exists and DoesNotExist take none."""
    values: Annotated[Listed[LabelValue], Field(max_length=16)] = ()
    """The values that In and NotIn compare with."""

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """Values belong to In and NotIn."""
        return (
            Check(
                rule="!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
                holds=lambda self: self.operator not in _WITH_VALUES or bool(self.values),
                message="the operators In and NotIn need at least one value",
                field="values",
            ),
            Check(
                rule="self.operator in ['In', 'NotIn'] || !has(self.values) || self.values.size() == 0",
                holds=lambda self: self.operator in _WITH_VALUES or not self.values,
                message="the operators Exists and DoesNotExist take no values: leave them out",
                field="values",
            ),
        )


class LabelSelector(Params):
    """Which labels an object must have. Every part must hold; an empty selector is every object."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    match_labels: Annotated[dict[QualifiedKey, LabelValue], Field(max_length=16)] = Field(default_factory=dict)
    """Labels with the value each must have."""
    match_expressions: Annotated[Listed[Requirement], Field(max_length=6)] = ()
    """Conditions on labels."""
