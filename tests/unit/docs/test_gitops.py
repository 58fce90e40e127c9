"""What Argo CD makes of a policy by the health check of the guide, on statuses as the operator writes them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from lupa import LuaRuntime

from fairlead.control.status.conditions import ConditionInputs, ReplicaSummary, conditions
from support.docs.pages import CHECKOUT, Page

_PAGE = Page(CHECKOUT / "docs" / "guide" / "gitops.md")
_KEY = "resource.customizations.health.fairlead.dev_SchedulerExtenderPolicy"
_FINE = ConditionInputs(
    generation=7, compiled="Compiled", replicas=(ReplicaSummary(name="a", serving="7"),), phase="Steady"
)

CASES: dict[str, tuple[ConditionInputs | None, str]] = {
    "nobody has seen it yet": (None, "Progressing"),
    "it serves": (_FINE, "Healthy"),
    "it is off": (replace(_FINE, mode="Disabled"), "Healthy"),
    "its scheduler is being rolled": (replace(_FINE, phase="Rolling", rollout_message="1 of 2 pods"), "Progressing"),
    "it does not compile": (replace(_FINE, compiled="LastGoodServes", fault="no such field"), "Degraded"),
    "its configuration was refused": (replace(_FINE, phase="RolledBack", rollout_message="no such plugin"), "Degraded"),
    "somebody else has its scheduler": (replace(_FINE, refused="it is not ours"), "Degraded"),
    "it is paused": (replace(_FINE, paused=True), "Suspended"),
    "a replica is silent": (replace(_FINE, replicas=(ReplicaSummary(name="a", silent="no answer"),)), "Progressing"),
}


def script() -> str:
    (found,) = [block.text for block in _PAGE.blocks() if _KEY in block.text]
    return str(yaml.safe_load(found)["data"][_KEY])


def health(policy: Mapping[str, Any]) -> tuple[str, str]:
    lua = LuaRuntime()

    def table(value: Any) -> Any:
        if isinstance(value, Mapping):
            return lua.table_from({key: table(one) for key, one in value.items()})
        return lua.table_from([table(one) for one in value]) if isinstance(value, list) else value

    lua.globals().obj = table(policy)
    said = lua.execute(script())
    return str(said["status"]), str(said["message"])


def policy(known: ConditionInputs | None, *, generation: int = 7) -> dict[str, Any]:
    if known is None:  # what the API server fills in
        ready = {"type": "Ready", "status": "Unknown", "reason": "Pending", "message": "Waiting for the operator"}
        return {"metadata": {"generation": generation}, "status": {"conditions": [ready]}}
    made = [dict(one) for one in conditions(known, (), "2027-01-01T00:00:00Z")]
    return {"metadata": {"generation": generation}, "status": {"observedGeneration": 7, "conditions": made}}


@pytest.mark.parametrize(("known", "want"), CASES.values(), ids=CASES)
def test_health_is_what_the_status_says(known: ConditionInputs | None, want: str) -> None:
    assert health(policy(known))[0] == want


def test_an_edit_that_nobody_has_seen_is_not_healthy() -> None:
    assert health(policy(_FINE, generation=8)) == ("Progressing", "Waiting for the operator")
    assert health({"metadata": {"generation": 1}})[0] == "Progressing"


def test_it_says_why() -> None:
    assert health(policy(replace(_FINE, compiled="LastGoodServes", fault="no such field")))[1] == (
        "LastGoodServes: no such field"
    )
