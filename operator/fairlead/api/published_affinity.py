"""The PublishedAffinity: node affinity that the policies of a scheduler publish, as data of an admission policy.

The operator writes it, and people only read it. A wrong requirement in it would keep pods from being created, so the
schema checks each key, operator and value.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from fairlead.api.params import FieldCheck, Listed, Params, exactly_one_of
from fairlead.api.values import Name

POLICIES_MAX = 64
TERMS_MAX = 16
REQUIREMENTS_MAX = 16
VALUES_MAX = 32
GUARD_VALUES_MAX = 64
_KEY = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"

_SOURCES = ("label", "annotation", "namespaceLabel", "namespace")

Key = Annotated[str, Field(min_length=1, max_length=317, pattern=_KEY)]
Value = Annotated[str, Field(max_length=63, pattern=_VALUE)]
Text = Annotated[str, Field(max_length=256)]


class PodPart(Params):
    """The part of a pod that is read."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    label: Key | None = None
    """Key of a label of the pod."""
    annotation: Key | None = None
    """Key of an annotation of the pod."""
    namespace_label: Key | None = None
    """Key of a label of its namespace."""
    namespace: Literal[True] | None = None
    """Set to read the name of its namespace."""
    default: Text | None = None
    """Value if it has none."""

    @property
    def sources(self) -> list[object]:
        """Return what is set of the parts that can be read."""
        found = self.label, self.annotation, self.namespace_label, self.namespace
        return [one for one in found if one is not None]


class Guard(PodPart):
    """A condition on a pod."""

    resource: Key | None = None
    """Resource that one of its containers limits."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Relation between what is read and the values."""
    values: Annotated[Listed[Text], Field(min_length=1, max_length=GUARD_VALUES_MAX)] | None = None
    """Values for In and NotIn."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require one source, and what the operator needs: without it an admission policy would fail for the pod."""
        return (
            exactly_one_of("label", "annotation", "namespaceLabel", "namespace", "resource"),
            FieldCheck(
                rule="(self.operator in ['In', 'NotIn']) == has(self.values)",
                holds=lambda self: (self.operator in ("In", "NotIn")) == (self.values is not None),
                message="the operators In and NotIn take values, and the others none",
                field="values",
            ),
            FieldCheck(
                rule="!has(self.values) || has(self.namespace) || (has(self.default) && !has(self.resource))",
                holds=lambda self: (
                    self.values is None
                    or self.namespace is not None
                    or (self.default is not None and self.resource is None)
                ),
                message="a value that is compared needs a default, and a resource has none",
                field="default",
            ),
        )


class PublishedRequirementSpec(PodPart):
    """A requirement on a label of a node. In and NotIn without values take the pod's."""

    key: Key
    """Key of the node's label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """Relation between the label and the values."""
    values: Annotated[Listed[Value], Field(min_length=1, max_length=VALUES_MAX)] | None = None
    """Values for In and NotIn, or the number for Gt and Lt."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require what the API server requires of a pod: it would refuse every pod that was given anything else."""
        sources = " + ".join(f"(has(self.{one}) ? 1 : 0)" for one in _SOURCES)
        return (
            FieldCheck(
                rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values)",
                holds=lambda self: self.operator not in ("Exists", "DoesNotExist") or self.values is None,
                message="the operators Exists and DoesNotExist take no values",
                field="values",
            ),
            FieldCheck(
                rule=f"{sources} == (self.operator in ['In', 'NotIn'] && !has(self.values) ? 1 : 0)",
                holds=lambda self: len(self.sources) == (self.operator in ("In", "NotIn") and self.values is None),
                message="the operators In and NotIn take values, or one part of the pod",
                field="values",
            ),
            FieldCheck(
                rule="!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1"
                " && self.values[0].matches('^(0|[1-9][0-9]{0,17})$'))",
                holds=lambda self: (
                    self.operator not in ("Gt", "Lt")
                    or (self.values is not None and len(self.values) == 1 and _is_number(self.values[0]))
                ),
                message="the operators Gt and Lt take one whole number",
                field="values",
            ),
        )


class PublishedTermSpec(Params):
    """One of several alternatives."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    when: Annotated[Listed[Guard], Field(max_length=REQUIREMENTS_MAX)] = ()
    """Conditions on the pod, without which the term does not count. All must hold."""
    match_expressions: (
        Annotated[Listed[PublishedRequirementSpec], Field(min_length=1, max_length=REQUIREMENTS_MAX)] | None
    ) = None
    """Requirements on the node, all of which must hold. Absent: the policy asks for nothing."""


class PublishedPolicySpec(Params):
    """Node affinity that one policy publishes."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Name of the policy."""
    uid: Annotated[str, Field(max_length=63)]
    """Unique ID of the policy."""
    generation: Annotated[int, Field(ge=0)]
    """Generation whose filters these are."""
    when: Annotated[Listed[Guard], Field(max_length=REQUIREMENTS_MAX)] = ()
    """Conditions on the pods that the policy matches. All must hold."""
    terms: Annotated[Listed[PublishedTermSpec], Field(max_length=TERMS_MAX)] = ()
    """Alternatives, of which a node must meet one."""


class PublishedSpec(Params):
    """Node affinity that the policies of a scheduler publish."""

    scheduler_name: Name
    """Name of the scheduler."""
    hash: Annotated[str, Field(min_length=1, max_length=63)]
    """Hash of the rest. Pods that get requirements have it in the annotation fairlead.dev/published-affinity."""
    policies: Annotated[Listed[PublishedPolicySpec], Field(max_length=POLICIES_MAX)] = ()
    """Policies, each with what it publishes."""


class PublishedMetadata(Params):
    """The metadata that is read."""

    model_config = ConfigDict(extra="ignore")

    name: Name
    """Name of the object, which is that of its scheduler."""


class PublishedAffinity(Params):
    """Node affinity that pods of a scheduler get as they are created. The operator writes it: edits are undone."""

    api_version: Literal["fairlead.dev/v1alpha1"]
    """API version of the resource, fairlead.dev/v1alpha1."""
    kind: Literal["PublishedAffinity"]
    """Kind of the resource, PublishedAffinity."""
    metadata: PublishedMetadata
    """Standard metadata of the object."""
    spec: PublishedSpec
    """Content of the object."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and (text == "0" or not text.startswith("0")) and len(text) <= 18
