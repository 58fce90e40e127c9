"""State of a scheduler that must survive a restart of the operator, as a ConfigMap; pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.control.decide.retention import RetentionState
from fairlead.control.decide.rollout import RolloutState
from fairlead.documents import Format
from fairlead.render.object_names import Object, ObjectNames

_KEY: Final = "state.json"


class PersistedState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one scheduler that must survive a restart; stored in the ConfigMap `<object name>.state`."""

    rollout: RolloutState = msgspec.field(default_factory=RolloutState)
    retention: RetentionState = msgspec.field(default_factory=RetentionState)


def _decode(data: Mapping[str, str]) -> PersistedState:
    return msgspec.json.decode(data[_KEY], type=PersistedState) if _KEY in data else PersistedState()


STATE: Final = Format("the state of a scheduler", _decode, "delete it, and what runs is verified again")


def to_config_map(names: ObjectNames, state: PersistedState) -> Object:
    """Return the ConfigMap to write."""
    metadata = {"name": names.state, "namespace": names.namespace, "labels": dict(names.labels)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {_KEY: msgspec.json.encode(state, order="sorted").decode()},
    }
