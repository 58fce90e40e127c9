"""What the operator has to know of a scheduler after a restart, as a ConfigMap; pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.control.decide.retention import Lasting
from fairlead.control.decide.rollout import Memory
from fairlead.render.object_names import Names
from fairlead.render.templates import Object

_KEY: Final = "state.json"


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    rollout: Memory = msgspec.field(default_factory=Memory)
    lasting: Lasting = msgspec.field(default_factory=Lasting)


def remembered(config_map: Mapping[str, Any] | None) -> Remembered:
    """What it holds. One that somebody has spoilt holds nothing: whatever runs is then verified once more."""
    try:
        return msgspec.json.decode(((config_map or {}).get("data") or {})[_KEY], type=Remembered)
    except (KeyError, TypeError, msgspec.DecodeError):
        return Remembered()


def as_config_map(names: Names, what: Remembered) -> Object:
    """To be applied."""
    metadata = {"name": names.memory, "namespace": names.namespace, "labels": dict(names.labels)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {_KEY: msgspec.json.encode(what, order="sorted").decode()},
    }
