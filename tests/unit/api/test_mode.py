"""Mode of a policy."""

from itertools import product
from typing import Any, Final

import pytest

from fairlead.api.mode import MODES, Mode, mode_of, weaker

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


@pytest.mark.parametrize(("one", "other"), [*product(MODES, MODES)])
def test_weaker_of_two_modes(one: Mode, other: Mode) -> None:
    assert weaker(one, other) == weaker(other, one) == (one if MODES.index(one) > MODES.index(other) else other)


def test_disabled_is_the_weakest() -> None:
    assert all(weaker("Disabled", mode) == "Disabled" for mode in MODES)
