"""Values of a replica's page, as the sources gave them."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.data import DataEntry
from fairlead.cli.inputs import replica_values
from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.cli.inputs.replica_values import Pages, add_replica_values, reading_of
from fairlead.policy.nodes.measured_table import FUTURE, MISSING, NO_NUMBER, SEVERAL, STALE, TableKey
from fairlead.policy.nodes.polls import poll_of
from support.policy import policy

AT = "2027-01-15T08:00:00Z"
AT_NS = 1_800_000_000 * 10**9


def _entry(**more: Any) -> DataEntry:
    return DataEntry.model_validate({"name": "load", "prometheus": {"query": "load"}, **more}, by_alias=True)


@pytest.mark.parametrize(
    ("said", "value", "at", "fault"),
    {
        "a value": ({"value": 0.95, "time": AT, "ageSeconds": 3.0}, 0.95, AT_NS, ""),
        "without a time": ({"value": 0.95}, 0.95, None, ""),
        "too old": ({"fault": STALE, "time": AT}, 0.0, AT_NS, ""),
        "ahead of the clock": ({"fault": FUTURE, "time": AT}, 0.0, AT_NS, ""),
        "missing": ({"fault": MISSING}, None, None, ""),
        "a default, which the entry has": ({"value": 0.5, "default": True}, None, None, ""),
        "several": ({"fault": SEVERAL}, None, None, "several"),
        "no number": ({"fault": NO_NUMBER}, None, None, "no_number"),
    }.values(),
)
def test_a_node_of_a_page_is_read(said: dict[str, Any], value: float | None, at: int | None, fault: str) -> None:
    found = reading_of({"nodes": {"n": said}}, _entry())
    assert (found.values.get("n"), found.time_of("n")) == (value, at)
    assert {name for name in ("several", "no_number") if "n" in getattr(found, name)} == ({fault} if fault else set())


@given(
    measured=st.floats(-1e12, 1e12, allow_nan=False),
    factor=st.sampled_from([1.0, 0.01, 1024.0, -3.0, 1e-9, 1 / 3]),
    step=st.sampled_from([None, 0.05, 1.0]),
)
def test_what_was_multiplied_and_rounded_comes_out_the_same(measured: float, factor: float, step: float | None) -> None:
    entry = _entry(factor=factor, round=step)
    poll = poll_of(entry)
    assert poll is not None
    key = TableKey(poll, factor, step)
    shown = key.changed(measured)
    found = reading_of({"nodes": {"n": {"value": shown}}}, entry)
    assert math.isclose(key.changed(found.values["n"]), shown, rel_tol=1e-15, abs_tol=1e-300)


def test_only_values_of_what_the_entry_asks_for_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [{"name": "load", "prometheus": {"query": "load"}}, {"name": "heat", "prometheus": {"query": "heat"}}]
    one = policy("p", data=data)
    asked, client = list[str](), cast("Any", object())

    async def ask(_: object, paths: Sequence[str]) -> tuple[str, Pages]:
        asked.extend(paths)
        told = {"nodes": {"n": {"value": 0.5}}}
        return "fairlead-a", {
            "/data/p/load": told | {"source": "prometheus default: load"},
            "/data/p/heat": told | {"source": "prometheus default: an_earlier_query"},
        }

    monkeypatch.setattr(replica_values, "ask_replica", ask)
    found = MeasuredInput()
    asyncio.run(add_replica_values(found, client, [one]))
    assert asked == ["/data/p/load", "/data/p/heat"]
    assert [(poll_of(one.data[0]) in found.readings), (poll_of(one.data[1]) in found.readings)] == [True, False]
    assert found.notes == ["prometheus default: load: values of the replica fairlead-a"]
    asyncio.run(add_replica_values(found, client, [policy("p", data=data[:1])]))
    assert len(asked) == 2, "what is known already is not asked for"
