"""A policy in the making, with comments on what it cannot say. Pure.

Names of foreign objects become names of a policy: the rules for these are those of `fairlead.api.values`, asked here
and not repeated.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from fairlead.api.errors import FieldPath
from fairlead.api.names import API_VERSION, CLUSTERS_OWN_SCHEDULER, KIND
from fairlead.api.v1alpha1 import RULES_MAX
from fairlead.api.values import Identifier, ObjectName
from fairlead.cli.imports.foreign import one_error

DATA_MAX: Final = 16
LOAD_WEIGHT: Final = 5
"""Weight for rules about load where the original has none: scores reach the scheduler in steps of ten points."""
WEIGHT_MAX: Final = 1000
BURST: Final = (
    "When a node passes again, all waiting pods may go to it at once. To limit them, add a filter with "
    "hotSpot: {windows: [{within: 1m, limit: 5}]}."
)
_NAME_MAX: Final = 63
_ORDER: Final = ("schedulerName", "match", "data", "filters", "scores")
_IDENTIFIER: Final = TypeAdapter[str](Identifier)
_OBJECT_NAME: Final = TypeAdapter[str](ObjectName)

DraftRule = dict[str, Any]


@dataclass(slots=True)
class PolicyNames:
    """Names of the policies of one import, each used once."""

    _taken: set[str] = field(default_factory=set)

    def take(self, *wanted: str) -> str:
        """Return the first of these names that is free, or the last with a number."""
        names = [_object_name(one) for one in wanted]
        name = next((one for one in names if one not in self._taken), None) or _numbered(names[-1], self._taken, "-")
        self._taken.add(name)
        return name


@dataclass(slots=True)
class PolicyDraft:
    """A policy, or only the comments that say why there is none."""

    name: str
    notes: list[str]
    """Comments above the policy."""
    comments: dict[FieldPath, list[str]] = field(default_factory=dict)
    """Comments above its fields."""
    _spec: dict[str, Any] = field(default_factory=dict)
    _data: dict[str, str] = field(default_factory=dict)
    """Names of data entries by what they stand for."""

    @property
    def has_rules(self) -> bool:
        """True if there is a policy."""
        return bool(self._spec.get("filters") or self._spec.get("scores"))

    @property
    def policy(self) -> dict[str, Any]:
        """The policy as plain data."""
        spec = {name: self._spec[name] for name in _ORDER if name in self._spec}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.name}, "spec": spec}

    def note(self, text: str) -> None:
        """Add a comment above the policy, once."""
        if text not in self.notes:
            self.notes.append(text)

    def comment(self, path: FieldPath, text: str) -> None:
        """Add a comment above a field of the spec."""
        self.comments.setdefault(("spec", *path), []).append(text)

    def match(self, **fields: Any) -> None:
        """Set which pods match."""
        self._spec["match"] = fields

    def scheduler(self, name: str) -> None:
        """Set the name of the scheduler."""
        self._spec["schedulerName"] = name
        if name == CLUSTERS_OWN_SCHEDULER:
            self.note(
                f"{name} is the cluster's own scheduler, which Fairlead never manages. List it with management: "
                "ConfigOnly in the operator's settings, or choose another name: it cannot be changed later."
            )

    def data(self, of: str, path: FieldPath, entry: Mapping[str, Any], *comments: str, name: str = "") -> str:
        """Return the name of the data entry for something foreign; adds it the first time.

        `path` is the foreign field to blame if there are too many.
        """
        if of not in self._data:
            if len(self._data) == DATA_MAX:
                hint = "split the object, so that each policy reads fewer"
                raise one_error(path, f"reads more than {DATA_MAX} metrics, which is as many as a policy has", hint)
            self._data[of] = found = _identifier(name or of, {*self._data.values()})
            entries = self._spec.setdefault("data", [])
            entries.append({"name": found, **entry})
            for text in comments:
                self.comment(("data", len(entries) - 1), text)
        return self._data[of]

    def add(self, kind: str, name: str, rule: Mapping[str, Any], *comments: str) -> None:
        """Add a rule to `filters` or `scores`. Raises InvalidObjectError if there are too many."""
        rules = self._spec.setdefault(kind, [])
        if len(rules) == RULES_MAX:
            hint = "split the object, so that each policy has fewer"
            raise one_error(("spec",), f"needs more than {RULES_MAX} {kind}, which is as many as a policy has", hint)
        name = rule_name(name)
        taken = {one["name"] for each in ("filters", "scores") for one in self._spec.get(each, ())}
        rules.append({"name": _numbered(name, taken, "-") if name in taken else name, **rule})
        for text in comments:
            self.comment((kind, len(rules) - 1), text)


def rule_weight(plugin: str, weight: int | None) -> tuple[int, str]:
    """Return the weight of a rule for that of a plugin, None if it has none, and a comment on the difference."""
    if weight is None:
        return LOAD_WEIGHT, (
            f"{plugin} has no weight, which is 1 for kube-scheduler. Scores of a policy reach it in steps of ten "
            "points, and a weight of 1 would leave 11 different scores."
        )
    if weight > WEIGHT_MAX:
        return WEIGHT_MAX, f"{plugin} has the weight {weight}; {WEIGHT_MAX} is the greatest."
    if weight < LOAD_WEIGHT:
        return weight, (
            f"Scores of a policy reach the scheduler in steps of ten points: the weight {weight} leaves "
            f"{10 * weight + 1} different scores. Multiply the weights of the policy if that is too coarse."
        )
    return weight, ""


def rule_name(text: str) -> str:
    """Return a name of a rule, such as cpu-usage for cpu_usage."""
    return re.sub("[^a-z0-9]+", "-", text.lower())[: _NAME_MAX - 4].strip("-") or "rule"


def _identifier(text: str, taken: Iterable[str]) -> str:
    """Return a name for expressions, such as cpuUsage for cpu_usage."""
    first, *rest = [part for part in re.split("[^A-Za-z0-9]+", text) if part] or ["metric"]
    name = first[:1].lower() + first[1:] + "".join(part[:1].upper() + part[1:] for part in rest)
    name = name if name[:1].isalpha() else f"metric{name}"
    name = name[: _NAME_MAX - 3]
    if not _is(name, _IDENTIFIER):  # a word of CEL
        name = f"{name}Value"
    return _numbered(name, taken, "") if name in taken else name


def _object_name(text: str) -> str:
    """Return a name of an object, such as my-scheduler for My_Scheduler."""
    name = re.sub("[^a-z0-9.]+", "-", text.lower())[:_NAME_MAX].strip("-.")
    return name if _is(name, _OBJECT_NAME) else rule_name(name)


def _numbered(name: str, taken: Iterable[str], separator: str) -> str:
    number = 2
    while (found := f"{name[: _NAME_MAX - 4]}{separator}{number}") in taken:
        number += 1
    return found


def _is(name: str, kind: TypeAdapter[str]) -> bool:
    try:
        kind.validate_python(name)
    except ValidationError:
        return False
    return True
