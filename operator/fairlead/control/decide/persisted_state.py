"""State of a scheduler that must survive a restart of the operator, as a ConfigMap; pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fairlead.control.decide.retention import RetentionState
from fairlead.control.decide.rollout import RolloutState
from fairlead.render.object_names import Names
from fairlead.render.templates import Object

_KEY: Final = "state.json"


class PersistedState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one scheduler that must survive a restart; stored in the ConfigMap `<object name>.state`."""

    rollout: RolloutState = msgspec.field(default_factory=RolloutState)
    retention: RetentionState = msgspec.field(default_factory=RetentionState)


def load(config_map: Mapping[str, Any] | None) -> PersistedState:
    """Return the state in a ConfigMap. If it is unreadable the state is empty, and what runs is verified again."""
    try:
        return msgspec.json.decode(((config_map or {}).get("data") or {})[_KEY], type=PersistedState)
    except (KeyError, TypeError, msgspec.DecodeError):
        return PersistedState()


def to_config_map(names: Names, state: PersistedState) -> Object:
    """Return the ConfigMap to apply."""
    metadata = {"name": names.state, "namespace": names.namespace, "labels": dict(names.labels)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {_KEY: msgspec.json.encode(state, order="sorted").decode()},
    }
