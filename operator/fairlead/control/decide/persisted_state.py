"""What the operator has to know of a scheduler after a restart, as a ConfigMap; pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.control.decide.retention import RetentionState
from fairlead.control.decide.rollout import RolloutState
from fairlead.render.object_names import Names
from fairlead.render.templates import Object

_KEY: Final = "state.json"


class PersistedState(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    rollout: RolloutState = msgspec.field(default_factory=RolloutState)
    lasting: RetentionState = msgspec.field(default_factory=RetentionState)


def load(config_map: Mapping[str, Any] | None) -> PersistedState:
    """What it holds. One that somebody has spoilt holds nothing: whatever runs is then verified once more."""
    try:
        return msgspec.json.decode(((config_map or {}).get("data") or {})[_KEY], type=PersistedState)
    except (KeyError, TypeError, msgspec.DecodeError):
        return PersistedState()


def to_config_map(names: Names, what: PersistedState) -> Object:
    """To be applied."""
    metadata = {"name": names.state, "namespace": names.namespace, "labels": dict(names.labels)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {_KEY: msgspec.json.encode(what, order="sorted").decode()},
    }
