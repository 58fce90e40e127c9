"""What a status says after the operator was uninstalled."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.control.status.uninstalled import uninstalled_status

BEFORE, NOW = "2026-01-01T00:00:00Z", datetime(2026, 2, 1, tzinfo=UTC)
MESSAGE = "the operator was uninstalled: nothing enforces this policy until it is installed again"


def condition(kind: str, status: str = "True", reason: str = "", **more: str) -> dict[str, Any]:
    fields = {"status": status, "observedGeneration": 3, "lastTransitionTime": BEFORE}
    return {"type": kind, "reason": reason or kind, "message": "", **fields, **more}


def policy(*conditions: dict[str, Any], **status: object) -> dict[str, Any]:
    known = {"observedGeneration": 3, "servingGeneration": 3, "conditions": [*conditions], **status}
    return {"metadata": {"name": "p", "generation": 4}, "spec": {"schedulerName": "s"}, "status": known}


def test_nothing_says_any_more_that_it_is_in_effect() -> None:
    ready = [condition(one) for one in ("Accepted", "Compiled", "Programmed", "DataReady", "Ready")]
    following = [condition(one, "False", "Ready") for one in ("Reconciling", "Stalled")]
    made = uninstalled_status(policy(*ready, *following, rules=[{"kind": "Filter", "name": "f"}]), NOW)
    assert made is not None
    assert {one["type"]: (one["status"], one["reason"], one["message"]) for one in made["conditions"]} == {
        "Accepted": ("True", "Accepted", ""),
        "Compiled": ("True", "Compiled", ""),
        "Programmed": ("False", "Uninstalled", MESSAGE),
        "DataReady": ("Unknown", "Uninstalled", MESSAGE),
        "Ready": ("False", "Uninstalled", MESSAGE),
        "Reconciling": ("False", "Uninstalled", ""),
        "Stalled": ("False", "Uninstalled", ""),
    }
    assert {one["type"]: one["lastTransitionTime"] for one in made["conditions"]} == {
        **dict.fromkeys(("Accepted", "Compiled", "Reconciling", "Stalled"), BEFORE),
        **dict.fromkeys(("Programmed", "DataReady", "Ready"), "2026-02-01T00:00:00Z"),
    }
    assert {one["observedGeneration"] for one in made["conditions"]} == {3}
    assert made["observedGeneration"] == 3
    assert made["scheduler"] == {"name": "s"}
    assert made.keys() == {"observedGeneration", "conditions", "scheduler"}


@pytest.mark.parametrize(
    "one",
    [
        pytest.param({"metadata": {"name": "p", "generation": 1}, "spec": {}}, id="no status yet"),
        pytest.param(policy(), id="no conditions"),
        pytest.param(policy(condition("Ready", "False", "Uninstalled", message=MESSAGE)), id="it says so already"),
    ],
)
def test_what_says_nothing_else_is_left_alone(one: dict[str, Any]) -> None:
    assert uninstalled_status(one, NOW) is None
