"""What owners are told of measured values, so that they need no other page at night."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.api.status import DataStatus
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import StatusInputs, build_status, status_change
from fairlead.control.status.data_condition import data_condition, data_status, measured_entries
from fairlead.replica_state import DataEntryState, FaultState, PolicyState, ReplicaState

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
AWAY = "connection refused"


def entry(*faults: FaultState, name: str = "load", **known: Any) -> DataEntryState:
    without = sum(one.nodes for one in faults)
    fine = {"interval_s": 15, "greatest_age_s": 60, "answered": True, "succeeded_s_ago": 5, "nodes": 40}
    fine |= {"with_value": 40 - without, "oldest_s": 5, "median_s": 5}
    return DataEntryState(name=name, source="prometheus default: load", faults=faults, **fine | known)


def lacking(why: str, nodes: int, *names: str) -> FaultState:
    return FaultState(why=why, nodes=nodes, names=names)


STALE = lacking("is stale", 3, "w-1 7m", "w-2 6m", "w-3 5m")
ALL_STALE = lacking("is stale", 40, "w-1 7m", "w-2 7m", "w-3 7m", "w-4 7m")
NEW = lacking("is missing", 2, "w-8", "w-9")


@pytest.mark.parametrize(
    ("told", "value", "reason", "message"),
    [
        pytest.param(entry(), "True", "DataReady", "", id="fine"),
        pytest.param(entry(note="warnings: x"), "True", "DataReady", "load: warnings: x", id="fine, with a note"),
        pytest.param(
            entry(STALE),
            "False",
            "DataStale",
            "load: of 40 nodes 3 have values older than 60s (w-1 7m, w-2 6m, w-3 5m)",
            id="some are stale",
        ),
        pytest.param(
            entry(lacking("has a time in the future", 1, "w-1 8h ahead")),
            "False",
            "DataStale",
            "load: of 40 nodes 1 has a value with a time in the future (w-1 8h ahead)",
            id="one is ahead",
        ),
        pytest.param(
            entry(lacking("is missing", 4, "w-1", "w-2", "w-3", "w-4")),
            "False",
            "DataMissing",
            "load: of 40 nodes 4 have no value (w-1, w-2, w-3, ...)",
            id="some are missing",
        ),
        pytest.param(
            entry(
                lacking("has several values", 1, "w-1"),
                lacking("is not a number", 2, "w-2", "w-3"),
                note="sum them",
            ),
            "False",
            "DataMissing",
            "load: of 40 nodes 1 has several values (w-1), 2 have values that are not numbers (w-2, w-3); sum them",
            id="several, and no number",
        ),
        pytest.param(entry(NEW, young=2), "True", "DataReady", "", id="missing because they have just joined"),
        pytest.param(
            entry(NEW, young=1),
            "False",
            "DataMissing",
            "load: of 40 nodes 2 have no value (w-8, w-9)",
            id="not all new",
        ),
        pytest.param(
            entry(lacking("is missing", 40, "w-1"), young=40, note="of 9 series none names a node"),
            "False",
            "DataMissing",
            "load: of 40 nodes 40 have no value (w-1, ...); of 9 series none names a node",
            id="a new cluster whose query names no node",
        ),
        pytest.param(
            entry(with_value=0, on_default=40, note="of 9 series none names a node"),
            "False",
            "DataMissing",
            "load: no node has a value; of 9 series none names a node",
            id="a query that names no node, hidden by a default",
        ),
        pytest.param(entry(with_value=0, on_default=40), "True", "DataReady", "", id="all have the default"),
        pytest.param(entry(error=AWAY, succeeded_s_ago=29), "True", "DataReady", "", id="one poll failed"),
        pytest.param(
            entry(error=AWAY, succeeded_s_ago=31),
            "False",
            "PollFailed",
            "load: the poll of prometheus default: load last succeeded 31s ago: connection refused",
            id="two polls failed",
        ),
        pytest.param(
            entry(ALL_STALE, error=AWAY, succeeded_s_ago=420),
            "False",
            "PollFailed",
            "load: the poll of prometheus default: load last succeeded 7m ago: connection refused; of 40 nodes 40 have"
            " values older than 60s (w-1 7m, w-2 7m, w-3 7m, ...)",
            id="polls fail, and values are stale for it",
        ),
        pytest.param(
            entry(error=AWAY, succeeded_s_ago=None),
            "False",
            "PollFailed",
            "load: the poll of prometheus default: load never succeeded: connection refused",
            id="never",
        ),
        pytest.param(entry(answered=False), "Unknown", "Pending", "not measured yet: load", id="not asked yet"),
    ],
)
def test_the_condition(told: DataEntryState, value: str, reason: str, message: str) -> None:
    found = data_condition(["load"], {"one": (told,)}, "Enforce")
    assert found is not None
    assert (found.value, found.reason, found.message) == (value, reason, message)


def test_what_a_server_says_of_a_wrong_query_is_shown_from_the_first_poll_on() -> None:
    said = 'http://p answers 400 Bad Request: bad_data: invalid parameter "query": 1:17: parse error: unclosed left'
    wrong = entry(lacking("is missing", 40), error=said, failures=1, succeeded_s_ago=None, oldest_s=None, median_s=None)
    found = data_condition(["load"], {"one": (wrong,)}, "Enforce")
    assert found is not None
    assert (found.value, found.reason) == ("False", "PollFailed")
    assert said in found.message
    (made,) = data_status({"one": (wrong,)}, NOW)
    assert made["replicas"][0]["lastError"] == said


def test_the_worst_replica_speaks() -> None:
    worse = (entry(ALL_STALE), entry(error=AWAY, succeeded_s_ago=None, name="heat"))
    found = data_condition(["load", "heat"], {"a": (entry(STALE),), "b": worse, "c": (entry(),)}, "Enforce")
    assert found is not None
    assert found.reason == "PollFailed"
    assert found.message.startswith("heat: the poll")
    assert "; load: of 40 nodes 40 have" in found.message
    assert found.message.endswith(" (on b; 1 of 3 replicas are unaffected)")


def test_who_measures_nothing_has_no_condition_and_who_is_off_is_not_measured() -> None:
    assert data_condition([], {}, "Enforce") is None
    off = data_condition(["load"], {}, "Disabled")
    assert off is not None
    assert (off.value, off.reason) == ("True", "Disabled")
    data = [{"name": "a", "prometheus": {}}, {"name": "b", "nodeLabel": {}}, {"name": "c", "configMap": {}}]
    assert measured_entries({"data": data}) == ["a", "c"]


def test_the_status_is_what_the_crd_keeps() -> None:
    (made,) = data_status({"one": (entry(STALE, error=AWAY, failures=2),), "two": (entry(),)}, NOW)
    kept = DataStatus.model_validate(made).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert kept == made
    assert made["replicas"][0]["withoutValue"] == [{"reason": "Stale", "nodes": 3, "names": "w-1 7m, w-2 6m, w-3 5m"}]
    assert made["replicas"][0]["lastSuccess"] == "2026-01-01T00:09:55Z"


@pytest.mark.parametrize(
    ("later", "change"),
    [
        pytest.param(entry(oldest_s=9, median_s=8, succeeded_s_ago=1), "ages", id="ages"),
        pytest.param(entry(failures=1), "counters", id="a failed poll"),
        pytest.param(entry(STALE), "all", id="the condition"),
    ],
)
def test_ages_alone_are_seldom_written(later: DataEntryState, change: str) -> None:
    def status(one: DataEntryState) -> dict[str, Any]:
        spec = {"data": [{"name": "load", "prometheus": {"query": "load"}}]}
        served = PolicyState(uid="u", generation="1", serving="1", reason="Compiled", data=(one,))
        policy = {"metadata": {"name": "p", "uid": "u", "generation": 1}, "spec": spec}
        states: dict[str, ReplicaState | str] = {"one": ReplicaState(policies={"p": served})}
        return build_status(StatusInputs(policy=policy, states=states, result=ReconcileResult(), paused=False), NOW)

    assert status_change(status(entry()), status(later)) == change
