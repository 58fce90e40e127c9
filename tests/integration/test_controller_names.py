"""The leader on a real API server, with names as long as they may be."""

from collections.abc import Callable

import pytest

from fairlead.render.object_names import ObjectNames
from support.control.leader import LeaderSetup
from support.control.scheduler import FILTER, config_of, event_reasons, pods_of, run_until_ready
from testbed.api import wait_for

LONG = {"f" * 63: "p" * 63, "f" * 62 + "g": "p" * 62 + "q"}
"""Schedulers, and policies that are for them."""
HOST_MAX = 63
"""A pod's host is called as the pod, up to here; by its name the scheduler holds its Lease."""


@pytest.mark.parametrize(
    ("policy", "scheduler"),
    [
        ("p" * 63, "s" * 30),
        ("p", "s" * 31),
        ("1" * 63, "s" * 63),
        ("p", "s" * 17 + "-" + "s" * 45),
        ("p", "1" * 63),
    ],
)
def test_it_runs_and_is_told_of(at_work: Callable[..., LeaderSetup], policy: str, scheduler: str) -> None:
    ground = at_work()
    ground.apply(policy, schedulerName=scheduler, filters=FILTER)
    run_until_ready(ground, policy, scheduler)
    pods, _ = pods_of(ground, scheduler, "")
    assert pods
    assert max(len(one["metadata"]["name"]) for one in pods) <= HOST_MAX
    wait_for("the event", lambda: "Ready" in event_reasons(ground, policy))  # it is posted after the status


def test_names_that_differ_at_their_end_are_two(at_work: Callable[..., LeaderSetup]) -> None:
    ground = at_work()
    for scheduler, policy in LONG.items():
        ground.apply(policy, schedulerName=scheduler, filters=FILTER)
    for scheduler, policy in LONG.items():
        run_until_ready(ground, policy, scheduler)
    assert all(config_of(ground, one) for one in LONG)
    assert len({ObjectNames(one, ground.namespace).object_name for one in LONG}) == len(LONG)
