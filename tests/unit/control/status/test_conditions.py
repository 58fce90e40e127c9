"""What the operator says about a policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.mode import MODES
from fairlead.api.status import StatusCondition
from fairlead.control.status.conditions import (
    Condition,
    ConditionInputs,
    ReplicaSummary,
    conditions,
    serving_generation,
)

BEFORE, NOW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
ONE, TWO = ReplicaSummary(name="one", serving="7"), ReplicaSummary(name="two", serving="7")
FINE = ConditionInputs(generation=7, compiled="Compiled", replicas=(ONE, TWO), phase="Steady")
OFF = tuple(ReplicaSummary(name=name, serving="6", mode="Disabled") for name in ("one", "two"))
IN_SHADOW = tuple(ReplicaSummary(name=name, serving="7", mode="Shadow") for name in ("one", "two"))
SILENT = replace(TWO, serving=None, silent="no answer within 1 s")


def by_type(found: Sequence[Condition]) -> Mapping[str, Condition]:
    return {one["type"]: one for one in found}


@pytest.mark.parametrize(
    ("known", "ready", "reason", "message", "moves", "stalls"),
    [
        pytest.param(FINE, "True", "Ready", "its rules serve", False, False, id="fine"),
        pytest.param(replace(FINE, mode="Disabled"), "True", "Disabled", "never applied", False, False, id="off"),
        pytest.param(
            replace(FINE, mode="Disabled", phase=None), "True", "Disabled", "", False, False, id="off, and no scheduler"
        ),
        pytest.param(
            replace(FINE, phase=None),
            "Unknown",
            "Pending",
            "has not been reconciled yet",
            True,
            False,
            id="no scheduler yet",
        ),
        pytest.param(
            replace(FINE, mode="Disabled", paused=True, phase=None),
            "False",
            "Paused",
            "nothing of its scheduler is updated",
            False,
            False,
            id="off, and paused",
        ),
        pytest.param(
            replace(FINE, mode="Disabled", missing_permission="may not create configmaps"),
            "False",
            "Forbidden",
            "configmaps",
            False,
            False,
            id="off, and its scheduler cannot be kept",
        ),
        pytest.param(
            replace(FINE, refused="tls.mode: no ca.crt\n  tls.mode: no tls.key\n"),
            "False",
            "SchedulerRefused",
            "tls.mode: no ca.crt; tls.mode: no tls.key",
            False,
            True,
            id="several things, in one line",
        ),
        pytest.param(ConditionInputs(generation=7), "Unknown", "Pending", "being compiled", True, False, id="new"),
        pytest.param(
            replace(FINE, refused="default-scheduler is the cluster's own"),
            "False",
            "SchedulerRefused",
            "the cluster's own",
            False,
            True,
            id="no scheduler of ours",
        ),
        pytest.param(
            replace(FINE, invalid="key x: no prefix of it"), "False", "InvalidSpec", "key x", False, True, id="invalid"
        ),
        pytest.param(
            replace(FINE, crd_outdated="nothing decides in spec.filters[0]", compiled="LastGoodServes", fault="x"),
            "False",
            "CRDOutdated",
            "spec.filters[0]",
            False,
            True,
            id="the CRD has removed it",
        ),
        pytest.param(
            replace(FINE, compiled="LastGoodServes", fault="spec.filters[0]: no such field"),
            "False",
            "LastGoodServes",
            "spec.filters[0]",
            False,
            True,
            id="does not compile",
        ),
        pytest.param(
            replace(
                FINE, mode="Disabled", compiled="NotCompiled", fault="spec.filters[0]: no such field", replicas=OFF
            ),
            "False",
            "NotCompiled",
            "it is disabled, and no rule of it is applied; it does not compile: spec.filters[0]: no such field",
            False,
            True,
            id="off, and does not compile",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=IN_SHADOW),
            "True",
            "Shadow",
            "decide nothing",
            False,
            False,
            id="in shadow",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=IN_SHADOW, phase="RolledBack", rollout_message="it does not start"),
            "True",
            "Shadow",
            "",
            False,
            False,
            id="in shadow, and the last good configuration of its scheduler runs",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=IN_SHADOW, phase="Rolling", rollout_message="1 of 2 pods"),
            "True",
            "Shadow",
            "",
            False,
            False,
            id="in shadow, while its scheduler is rolled for others",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=IN_SHADOW, phase="Rejected", rollout_message="it does not start"),
            "False",
            "ConfigurationRejected",
            "it does not start",
            False,
            True,
            id="in shadow, and its scheduler never ran",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=IN_SHADOW, phase=None),
            "Unknown",
            "Pending",
            "has not been reconciled yet",
            True,
            False,
            id="in shadow, and no scheduler yet",
        ),
        pytest.param(
            replace(
                FINE,
                mode="Shadow",
                compiled="NotCompiled",
                fault="spec.filters[0]: no such field",
                replicas=tuple(replace(one, serving="6") for one in IN_SHADOW),
            ),
            "False",
            "NotCompiled",
            "it is in shadow, and no rule of it decides; it does not compile: spec.filters[0]: no such field",
            False,
            True,
            id="in shadow, and does not compile",
        ),
        pytest.param(
            replace(
                FINE,
                mode="Shadow",
                compiled="NotCompiled",
                fault="x",
                replicas=tuple(replace(one, serving=None) for one in IN_SHADOW),
            ),
            "False",
            "NotCompiled",
            "no rule of it decides; it does not compile: x",
            False,
            True,
            id="in shadow, and no generation ever compiled",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=(IN_SHADOW[0], replace(TWO, serving="6", mode="Enforce"))),
            "False",
            "ReplicaBehind",
            "two: still applies generation 6, although it is in shadow",
            True,
            False,
            id="in shadow, and a replica has not heard it, or does not know the word",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=(IN_SHADOW[0], TWO)),
            "False",
            "ReplicaBehind",
            "two: still applies generation 7, although it is in shadow",
            True,
            False,
            id="in shadow, and a replica is too old to say a mode",
        ),
        pytest.param(
            replace(FINE, mode="Shadow", replicas=(IN_SHADOW[0], replace(TWO, serving=None))),
            "False",
            "ReplicaBehind",
            "two: does not serve it",
            True,
            False,
            id="in shadow, and a replica has just started",
        ),
        pytest.param(
            replace(FINE, mode="Disabled", replicas=IN_SHADOW),
            "False",
            "ReplicaBehind",
            "one, two: still has it in mode Shadow",
            True,
            False,
            id="off, and replicas still have it in shadow",
        ),
        pytest.param(
            replace(FINE, mode="Disabled", replicas=(OFF[0], replace(OFF[1], mode="Enforce"))),
            "False",
            "ReplicaBehind",
            "two: still applies generation 6, although it is disabled",
            True,
            False,
            id="off, and a replica has not heard it",
        ),
        pytest.param(
            replace(FINE, mode="Disabled", replicas=(replace(OFF[1], serving=None, mode="Enforce"),)),
            "False",
            "ReplicaBehind",
            "two: still applies its failurePolicy, although it is disabled",
            True,
            False,
            id="off, and a replica that has no generation of it has not heard it",
        ),
        pytest.param(
            replace(FINE, replicas=(ONE, replace(TWO, mode="Disabled"))),
            "False",
            "ReplicaBehind",
            "two: still has it disabled",
            True,
            False,
            id="on, and a replica has not heard it",
        ),
        pytest.param(
            replace(FINE, replicas=(ONE, SILENT)),
            "Unknown",
            "ReplicaSilent",
            "two: no answer",
            False,
            False,
            id="silent",
        ),
        pytest.param(
            replace(FINE, compiled=None, replicas=(SILENT,)),
            "Unknown",
            "ReplicaSilent",
            "two: no answer",
            False,
            False,
            id="all are silent",
        ),
        pytest.param(
            replace(FINE, replicas=(ONE, replace(TWO, serving="6"))),
            "False",
            "ReplicaBehind",
            "two: serves generation 6",
            True,
            False,
            id="behind",
        ),
        pytest.param(
            replace(FINE, replicas=(ONE, replace(TWO, slow=True))), "False", "TooSlow", "two: ", False, False, id="slow"
        ),
        pytest.param(
            replace(FINE, phase="Rolling", rollout_message="1 of 2 pods"),
            "False",
            "Rolling",
            "1 of 2",
            True,
            False,
            id="rolls",
        ),
        pytest.param(
            replace(FINE, phase="RolledBack", rollout_message="no plugin x"),
            "False",
            "ConfigurationRejected",
            "no plugin x",
            False,
            True,
            id="rolled back",
        ),
        pytest.param(
            replace(FINE, rollout_message="0 of 2 pods are ready"),
            "False",
            "SchedulerUnavailable",
            "0 of 2",
            False,
            False,
            id="was fine once",
        ),
        pytest.param(
            replace(FINE, paused=True), "False", "Paused", "nothing of its scheduler", False, False, id="paused"
        ),
        pytest.param(
            replace(FINE, failure="create deployments: 507: disk full", paused=True),
            "False",
            "ReconcileFailed",
            "create deployments: 507: disk full; it will be retried",
            False,
            False,
            id="failed",
        ),
        pytest.param(
            replace(FINE, missing_permission="may not create deployments"),
            "False",
            "Forbidden",
            "deployments",
            False,
            False,
            id="not allowed",
        ),
        pytest.param(
            replace(FINE, missing_permissions=["events cannot be posted: may not"]),
            "False",
            "Forbidden",
            "events cannot be posted: may not",
            False,
            False,
            id="not allowed something beside",
        ),
        pytest.param(
            replace(FINE, replicas=(ONE, replace(TWO, missing="may not list nodes", serving=None))),
            "False",
            "Forbidden",
            "two: may not list nodes; two: does not serve it",
            False,
            False,
            id="a replica is not allowed",
        ),
        pytest.param(
            replace(FINE, phase="Rolling", rollout_message="1 of 2 pods", replicas=(ONE, SILENT)),
            "Unknown",
            "ReplicaSilent",
            "no answer within 1 s; 1 of 2 pods",
            False,
            False,
            id="what does not pass by itself comes first",
        ),
    ],
)
def test_what_is_said(
    known: ConditionInputs, ready: str, reason: str, message: str, *, moves: bool, stalls: bool
) -> None:
    found = by_type(conditions(known, (), NOW))
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == (ready, reason)
    assert message in found["Ready"]["message"]
    assert (found["Reconciling"]["status"], found["Stalled"]["status"]) == (str(moves), str(stalls))


def test_a_time_changes_only_with_its_status() -> None:
    first = conditions(replace(FINE, phase="Rolling", rollout_message="1 of 2"), (), BEFORE)
    second = conditions(replace(FINE, phase="Rolling", rollout_message="2 of 2", generation=8), first, NOW)
    assert {one["lastTransitionTime"] for one in second} == {BEFORE}
    assert {one["observedGeneration"] for one in second} == {8}
    third = by_type(conditions(FINE, first, NOW))
    changed = {name for name, one in third.items() if one["lastTransitionTime"] == NOW}
    assert changed == {"Programmed", "Ready", "Reconciling"}


@pytest.mark.parametrize(
    ("replicas", "serving"),
    [
        ((ONE, TWO), 7),
        ((ONE, SILENT), 7),
        ((ONE, replace(TWO, serving="6")), None),
        ((ONE, replace(TWO, serving=None)), None),
        ((SILENT,), None),
        ((), None),
    ],
)
def test_the_generation_that_serves(replicas: Sequence[ReplicaSummary], serving: int | None) -> None:
    assert serving_generation(replace(FINE, replicas=replicas)) == serving


def kstatus(obj: Mapping[str, Any]) -> str:
    """How kstatus, and with it Flux and Helm, reads an object that is not being deleted."""
    status = obj.get("status", {})
    if status.get("observedGeneration") != obj["metadata"]["generation"]:
        return "InProgress"
    found = {one["type"]: one["status"] for one in status.get("conditions", [])}
    if found.get("Reconciling") == "True":
        return "InProgress"
    if found.get("Stalled") == "True":
        return "Failed"
    return "Current" if found.get("Ready", "True") == "True" else "InProgress"


TEXT = st.sampled_from(["", "why"])
KNOWN = st.builds(
    ConditionInputs,
    generation=st.just(7),
    mode=st.sampled_from(MODES),
    refused=TEXT,
    invalid=TEXT,
    compiled=st.sampled_from([None, "Compiled", "LastGoodServes", "NothingServes"]),
    fault=TEXT,
    replicas=st.lists(
        st.builds(
            ReplicaSummary,
            name=TEXT,
            silent=TEXT,
            serving=st.sampled_from([None, "6", "7"]),
            mode=st.sampled_from(["", *MODES, "OfANewerVersion"]),
            slow=st.booleans(),
            missing=TEXT,
        ),
        max_size=5,
    ),
    phase=st.sampled_from([None, "Steady", "Rolling", "RolledBack", "Rejected"]),
    rollout_message=TEXT,
    missing_permission=TEXT,
    missing_permissions=st.lists(TEXT, max_size=2),
    paused=st.booleans(),
)


@given(KNOWN)
def test_whatever_is_known(known: ConditionInputs) -> None:
    """Ready is what all the others come to; tools that wait see it as done exactly then, and never as two things."""
    listed = conditions(known, (), NOW)
    for one in listed:
        StatusCondition.model_validate(one)
    found = by_type(listed)
    parts = [found[name]["status"] for name in ("Accepted", "Compiled", "Programmed")]
    assert (found["Ready"]["status"] == "True") == (set(parts) == {"True"})
    assert not found["Reconciling"]["status"] == found["Stalled"]["status"] == "True"
    read = kstatus(
        {
            "metadata": {"generation": 7},
            "status": {"observedGeneration": 7, "conditions": [dict(one) for one in listed]},
        }
    )
    assert (read == "Current") == (found["Ready"]["status"] == "True")
    assert (read == "Failed") == (found["Stalled"]["status"] == "True")


def test_nothing_of_a_disabled_policy_has_to_serve() -> None:
    """Whichever generation a replica has compiled last, it applies none: that is what was asked for."""
    known = replace(FINE, mode="Disabled", compiled="NotCompiled", fault="x", replicas=OFF)
    found = by_type(conditions(known, (), NOW))
    assert {name: (one["status"], one["reason"]) for name, one in found.items()} == {
        "Accepted": ("True", "Accepted"),
        "Compiled": ("False", "NotCompiled"),
        "Programmed": ("True", "Disabled"),
        "Ready": ("False", "NotCompiled"),
        "Reconciling": ("False", "NotCompiled"),
        "Stalled": ("True", "NotCompiled"),
    }
