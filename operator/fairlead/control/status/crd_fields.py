"""Fields of rules that the CustomResourceDefinition in the cluster lacks, because it is older than the operator.

The API server removes such a field from policies as it reads them, and the rule is left with nothing that decides.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.api.errors import render_path
from fairlead.api.names import KIND

Fields = Mapping[str, Collection[str]]
"""Fields of which a rule has exactly one, by the list of rules."""


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, "_Schema"] = {}
    items: "_Schema | None" = None

    def at(self, *names: str) -> "_Schema | None":
        """Return the schema below these properties."""
        here: _Schema | None = self
        for name in names:
            here = here.properties.get(name) if here is not None else None
        return here


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, _Schema] = {}


class OpenApiDocument(msgspec.Struct, frozen=True):
    """Schemas of an API group version, as the API server describes them."""

    components: _Components = _Components()

    def rule_fields(self, rules: str) -> Collection[str] | None:
        """Return the fields of the rules in a list of a policy; None if they are not described."""
        for name, schema in self.components.schemas.items():
            if name.endswith(f".{KIND}"):
                listed = schema.at("spec", rules)
                return None if listed is None or listed.items is None else listed.items.properties
        return None


decode_document: Final = msgspec.json.Decoder(OpenApiDocument).decode


@dataclass(slots=True, eq=False)
class CrdFields:
    """Fields of this version's rules, and those that the served CRD lacks."""

    own: Fields
    missing: Fields | None = None
    """None until the API server has told."""

    def compare(self, document: OpenApiDocument) -> bool:
        """Compare with what the API server describes; return whether what is missing changed."""
        found = {rules: document.rule_fields(rules) for rules in self.own}
        missing = dict[str, Collection[str]]()
        for rules, names in self.own.items():
            served = found[rules]
            if served is None:
                return False  # no CRD, or one without a schema
            if lacks := [name for name in names if name not in served]:
                missing[rules] = lacks
        before, self.missing = self.missing, missing
        return missing != (before or {})

    @property
    def names(self) -> list[str]:
        """Paths of the missing fields."""
        return [render_path(("spec", rules, name)) for rules, names in (self.missing or {}).items() for name in names]

    def describe_loss(self, policy: Mapping[str, Any]) -> str:
        """Return what a policy has lost, and what to do about it; empty if nothing."""
        lost = [
            render_path(("spec", rules, at))
            for rules in self.missing or ()
            for at, rule in enumerate(policy.get("spec", {}).get(rules) or ())
            if all(rule.get(name) is None for name in self.own[rules])
        ]
        if not lost:
            return ""
        return (
            f"nothing decides in {', '.join(lost)}: the CustomResourceDefinition is older than the operator and lacks "
            f"{', '.join(self.names)}, so the API server has removed that; apply the one of the operator's version, "
            "and then the policy again"
        )
