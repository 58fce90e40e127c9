"""Published state: ConfigMaps of the operator's namespace, each of which can be read by itself.

Replicas answer from what is published, and only from that, so that they agree. A ConfigMap belongs to a rule by its
annotations, not by its name, and to what gives its numbers their meaning.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from fairlead.api.names import (
    API_VERSION,
    KIND,
    POLICY_ANNOTATION,
    POLICY_GENERATION_ANNOTATION,
    POLICY_UID_ANNOTATION,
)
from fairlead.documents import Document
from fairlead.learned.content import Content, read

PREFIX: Final = "fairlead-learned-"
LABEL: Final = "fairlead.dev/learned"
RULE: Final = "fairlead.dev/rule"
MEANING: Final = "fairlead.dev/meaning"
PUBLISHED: Final = "fairlead.dev/published"
LATE: Final = "fairlead.dev/late"
_HASH: Final = 12  # hex digits
_NAME_MAX: Final = 253
_DIGITS_MAX: Final = 15
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


class LearningRule(Struct, frozen=True):
    """Rule that learns, as a generation of its policy has it."""

    policy: str
    uid: str
    """UID of the policy."""
    name: str
    meaning: str
    """Hash of what gives the numbers their meaning."""
    generation: int = 0

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what the state belongs to; a rule with another one begins from nothing."""
        return self.uid, self.name, self.meaning


class Publication(Struct, frozen=True):
    """Account that a publication gives of itself, for people: nothing is decided by it."""

    at: int | None = None
    """Time in seconds since 1970; None if it does not say."""
    late: int = 0
    """Outcomes that came too late to be counted, since the state began. If the answer to a write is lost, those that it
    told may be told twice."""


_UNSAID: Final = Publication()


class LearnedState(Struct, frozen=True):
    """One version of a ConfigMap: a shard of pairs, or the demands of pods."""

    name: str
    rule: LearningRule
    number: int
    document: Document[Content]
    size: int
    """Bytes of its text."""
    publication: Publication = _UNSAID

    @property
    def rv(self) -> str:
        """Return its resourceVersion."""
        return self.document.resource_version

    @property
    def content(self) -> Content | None:
        """Return what it says; None if that cannot be read."""
        return None if self.document.fault else self.document.value or {}


def names_of(rule: LearningRule, number: int) -> tuple[str, str]:
    """Return the names that a ConfigMap may have; the second is for a first one that another has, or that is long."""
    name, ending = f"{PREFIX}{rule.policy}-{rule.name}", hashlib.sha256(f"{rule.policy}\0{rule.name}".encode())
    hashed = f"-{ending.hexdigest()[:_HASH]}-{number}"
    longer = f"{name[: _NAME_MAX - len(hashed)].rstrip('-.')}{hashed}"
    plain = f"{name}-{number}"
    return plain if len(plain) <= _NAME_MAX else longer, longer


def decode(config_map: Mapping[str, Any]) -> LearnedState | None:
    """Read a ConfigMap; None if it does not say which rule it belongs to."""
    metadata = config_map["metadata"]
    told = metadata.get("annotations") or {}
    number, generation = (str(metadata["name"]).rpartition("-")[2], told.get(POLICY_GENERATION_ANNOTATION, ""))
    if not {POLICY_ANNOTATION, POLICY_UID_ANNOTATION, RULE, MEANING} <= told.keys() or not (
        _is_number(number) and _is_number(generation)
    ):
        return None
    rule = LearningRule(
        told[POLICY_ANNOTATION], told[POLICY_UID_ANNOTATION], told[RULE], told[MEANING], int(generation)
    )
    data = config_map.get("data") or {}
    size = sum(len(text.encode()) for text in data.values())
    document = read(f"ConfigMap {metadata['name']}", data, metadata["resourceVersion"])
    return LearnedState(metadata["name"], rule, int(number), document, size, _publication(told))


def _publication(annotations: Mapping[str, str]) -> Publication:
    late = annotations.get(LATE, "")
    try:
        at = int(datetime.strptime(annotations.get(PUBLISHED, ""), _TIME).replace(tzinfo=UTC).timestamp())
    except ValueError:
        at = None
    return Publication(at, int(late) if _is_number(late) else 0)


def config_map(
    rule: LearningRule, name: str, data: Mapping[str, str], publication: Publication = _UNSAID
) -> dict[str, Any]:
    """Return the ConfigMap to write. It ends with its policy."""
    owner = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": rule.policy,
        "uid": rule.uid,
    }
    annotations = {
        POLICY_ANNOTATION: rule.policy,
        POLICY_UID_ANNOTATION: rule.uid,
        POLICY_GENERATION_ANNOTATION: str(rule.generation),
        RULE: rule.name,
        MEANING: rule.meaning,
    }
    if publication.at is not None:
        annotations[PUBLISHED] = datetime.fromtimestamp(publication.at, UTC).strftime(_TIME)
        annotations[LATE] = str(publication.late)
    metadata = {"name": name, "labels": {LABEL: ""}, "annotations": annotations, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
