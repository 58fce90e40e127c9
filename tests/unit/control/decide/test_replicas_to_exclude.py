"""Which replicas are asked to step aside."""

from collections.abc import Mapping

import pytest

from fairlead.control.decide.replicas_to_exclude import replicas_to_exclude
from fairlead.replica_state import DataEntryState, FaultState, PolicyState, ReplicaState


def entry(name: str = "load", *, without: int = 0, on_default: int = 0, error: str = "") -> DataEntryState:
    faults = (FaultState(why="is stale", nodes=without),) if without else ()
    return DataEntryState(
        name=name,
        source="prometheus default",
        nodes=3,
        error=error,
        with_value=3 - without - on_default,
        on_default=on_default,
        faults=faults,
    )


WELL = entry()
CUT = entry(without=3, error="refused")


def replica(*entries: DataEntryState, serving: str = "1") -> ReplicaState:
    return ReplicaState(
        policies={"p": PolicyState(uid="u", generation="1", serving=serving, reason="Compiled", data=entries)}
    )


@pytest.mark.parametrize(
    ("states", "ready", "asked"),
    [
        pytest.param({"a": replica(WELL), "b": replica(CUT)}, "ab", "b", id="one alone is cut off"),
        pytest.param({"a": replica(WELL), "b": replica(CUT)}, "a", "b", id="it is asked again while it is not ready"),
        pytest.param({"a": replica(WELL), "b": replica(CUT)}, "b", "", id="the other one is not ready"),
        pytest.param({"a": replica(CUT), "b": replica(CUT)}, "ab", "", id="both are"),
        pytest.param({"b": replica(CUT)}, "b", "", id="it is the only one"),
        pytest.param({"a": "no answer", "b": replica(CUT)}, "ab", "", id="the other one does not answer"),
        pytest.param({"a": replica(WELL), "b": replica(CUT), "c": replica(CUT)}, "abc", "bc", id="two of three are"),
        pytest.param({"a": replica(WELL), "b": replica(entry(without=2, error="e"))}, "ab", "", id="some values left"),
        pytest.param(
            {"a": replica(WELL), "b": replica(entry(without=2, on_default=1, error="e"))},
            "ab",
            "b",
            id="the only node with anything has the default",
        ),
        pytest.param(
            {"a": replica(entry(on_default=3)), "b": replica(CUT)}, "ab", "", id="the other one has defaults only"
        ),
        pytest.param({"a": replica(WELL), "b": replica(entry(without=3))}, "ab", "", id="its polls succeed"),
        pytest.param({"a": replica(WELL), "b": replica(entry(error="e"))}, "ab", "", id="values still fresh"),
        pytest.param(
            {"a": replica(WELL, entry("other", without=3, error="e")), "b": replica(CUT, entry("other"))},
            "ab",
            "",
            id="each lacks another entry",
        ),
        pytest.param({"a": replica(WELL, serving="2"), "b": replica(CUT)}, "ab", "", id="other generations serve"),
        pytest.param({"a": replica(), "b": replica(CUT)}, "ab", "", id="the other one does not measure"),
        pytest.param({}, "", "", id="nobody"),
    ],
)
def test_who_is_asked(states: Mapping[str, ReplicaState | str], ready: str, asked: str) -> None:
    assert replicas_to_exclude(states, {*ready}) == {*asked}
