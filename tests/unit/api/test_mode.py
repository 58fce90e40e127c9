"""Mode of a policy."""

from itertools import product
from typing import Any, Final

import pytest

from fairlead.api.mode import MODES, Mode, are_all_in_shadow, decides_nothing, mode_of, weaker

WRITTEN: Final[list[tuple[Any, Mode | None]]] = [
    ({"spec": {}}, "Enforce"),
    ({"spec": {"mode": None}}, "Enforce"),
    ({"spec": {"mode": "Enforce"}}, "Enforce"),
    ({"spec": {"mode": "Disabled"}}, "Disabled"),
    ({"spec": {"mode": False}}, "Disabled"),  # `off` in YAML
    ({"spec": {"mode": True}}, None),
    ({"spec": {"mode": "disabled"}}, None),
    ({"spec": {"mode": ["Disabled"]}}, None),
    ({"spec": 7}, None),
    ({}, None),
]


@pytest.mark.parametrize(("written", "mode"), WRITTEN)
def test_mode_is_read_from_the_object_alone(written: dict[str, Any], mode: Mode | None) -> None:
    assert mode_of(written) == mode


_ONE: Final = [{"name": "f", "mode": "Shadow", "expression": "true"}]
RULES: Final[list[tuple[Any, bool]]] = [
    ({"filters": _ONE}, True),
    ({"scores": _ONE}, True),
    ({"preemption": {"protect": _ONE}}, True),
    ({"binding": {"annotations": _ONE}}, True),
    ({"filters": [{"mode": "Shadow", "topology": {"require": "zone"}}]}, True),
    ({"filters": _ONE, "scores": None, "preemption": {}, "binding": {"gang": []}}, True),
    ({"filters": _ONE, "mode": "Enforce", "failurePolicy": "Fail"}, True),
    ({"filters": [{"mode": "Shadow"}, {"mode": "Enforce"}]}, False),
    ({"filters": [{"mode": "Shadow"}, {}]}, False),
    ({"filters": _ONE, "scores": [{}]}, False),
    ({"filters": _ONE, "preemption": {"protect": [{}]}}, False),
    ({"filters": _ONE, "binding": {"annotations": [{}]}}, False),
    ({"filters": _ONE, "binding": {"deviceShare": [{"name": "gpu"}]}}, False),
    ({"filters": _ONE, "binding": {"gang": [{"mode": "Shadow"}]}}, False),
    ({"filters": _ONE, "binding": {"later": True}}, False),
    ({"filters": _ONE, "binding": 7}, False),
    ({"filters": _ONE, "preemption": [7]}, False),
    ({"filters": _ONE, "scores": 7}, False),
    ({"filters": ["Shadow"]}, False),
    ({"filters": {"mode": "Shadow"}}, False),
    ({"filters": []}, False),
    ({}, False),
    (7, False),
    (None, False),
]


@pytest.mark.parametrize(("spec", "are"), RULES)
def test_the_rules_that_are_written_are_all_in_shadow(spec: Any, are: bool) -> None:
    assert are_all_in_shadow({"spec": spec}) == are


@pytest.mark.parametrize(
    ("spec", "nothing"),
    [
        ({"mode": "Shadow"}, True),
        ({"mode": "Disabled", "filters": 7}, True),
        ({"mode": "Observe", "filters": _ONE}, True),
        ({"filters": _ONE}, True),
        ({"mode": "Observe"}, False),
        ({"filters": 7}, False),
        ({}, False),
    ],
)
def test_nothing_decides_by_the_mode_of_a_policy_or_by_those_of_its_rules(spec: Any, nothing: bool) -> None:
    assert decides_nothing({"spec": spec}) == nothing


@pytest.mark.parametrize(("one", "other"), [*product(MODES, MODES)])
def test_weaker_of_two_modes(one: Mode, other: Mode) -> None:
    assert weaker(one, other) == weaker(other, one) == (one if MODES.index(one) > MODES.index(other) else other)


def test_disabled_is_the_weakest() -> None:
    assert all(weaker("Disabled", mode) == "Disabled" for mode in MODES)
