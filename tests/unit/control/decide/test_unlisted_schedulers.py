"""Which schedulers that no setting lists may be there."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from fairlead.control.decide.desired import PAUSED, is_paused
from fairlead.control.decide.unlisted_schedulers import denial_reason, no_room_reason, requested_since
from fairlead.render.operator_settings import parse_settings


def policy(scheduler: str, created: str = "", **metadata: Any) -> Mapping[str, Any]:
    return {"metadata": {"creationTimestamp": created, **metadata}, "spec": {"schedulerName": scheduler}}


ASKED = {"old": "2026-01", "b": "2026-02", "a": "2026-02", "new": "2026-03", "default-scheduler": "2025-01"}
"""Two of them at once, and one that is never managed."""


@pytest.mark.parametrize(
    ("settings", "there", "begin"),
    [
        ("maxUnlistedSchedulers: 10", "", "old a b new"),
        ("maxUnlistedSchedulers: 3", "", "old a b"),
        ("maxUnlistedSchedulers: 1", "", "old"),
        ("maxUnlistedSchedulers: 0", "", ""),
        ("maxUnlistedSchedulers: 2", "new", "old new"),  # one that runs is never stopped because an older one came
        ("maxUnlistedSchedulers: 2", "new other", "new"),  # one of which only something is left keeps its place, too
        ("maxUnlistedSchedulers: 2", "new b a", "a b new"),  # nor because fewer may be there from now on
        ("{maxUnlistedSchedulers: 1, schedulers: [{name: b}, {name: other}]}", "other", "old b"),
        ("{maxUnlistedSchedulers: 1, schedulers: [{name: b}]}", "b", "old b"),
    ],
)
def test_so_many_may_begin(settings: str, there: str, begin: str) -> None:
    told, runs = parse_settings(settings), {*there.split()}
    for asked in (ASKED, dict(reversed(ASKED.items()))):
        found = {one for one in asked if not no_room_reason(one, told, runs, partial(dict, asked))}
        assert found == {*begin.split(), "default-scheduler"}, "it waits for no room, because it never starts"


def test_why_it_may_not_begin_is_said_with_the_cure() -> None:
    said = no_room_reason("new", parse_settings("maxUnlistedSchedulers: 3"), {"x"}, lambda: ASKED)
    assert said == (
        "new is not listed in the operator's setting schedulers, and maxUnlistedSchedulers is 3: 1 unlisted ones "
        "exist, 3 more were requested earlier; list it there, or ask the operator's administrator"
    )


NOT_LISTED = (
    "s is not listed in the operator's setting schedulers, and unlistedSchedulers is Deny: list it there, or ask "
    "the operator's administrator"
)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("{}", ""),
        ("unlistedSchedulers: Allow", ""),
        ("unlistedSchedulers: Deny", NOT_LISTED),
        ("{unlistedSchedulers: Deny, schedulers: [{name: s}]}", ""),
    ],
)
def test_one_that_is_not_listed_may_be_denied(settings: str, says: str) -> None:
    assert denial_reason("s", parse_settings(settings)) == says


def test_a_scheduler_is_asked_for_since_the_oldest_policy_that_stays() -> None:
    policies = [
        policy("s", "3"),
        policy("s", "2"),
        policy("s", "1", deletionTimestamp="4"),
        policy("t", "1", deletionTimestamp="4"),
        policy("", "5"),
    ]
    assert requested_since(policies) == {"s": "2", "fairlead": "5"}


NOTED = {"annotations": {PAUSED: "true"}}


@pytest.mark.parametrize(
    ("mode", "metadata", "pauses"),
    [
        ("Enforce", NOTED, True),
        (None, NOTED, True),
        ("Disabled", NOTED, False),
        ("Enforce", {**NOTED, "deletionTimestamp": "1"}, False),
        ("Enforce", {"annotations": {PAUSED: "yes"}}, False),
        ("Enforce", {}, False),
    ],
)
def test_a_policy_that_is_off_or_goes_pauses_nothing(
    mode: str | None, metadata: dict[str, Any], *, pauses: bool
) -> None:
    spec = {"mode": mode} if mode else {}
    one = {"metadata": metadata, "spec": spec}
    assert is_paused([{"metadata": {}, "spec": {}}, one]) is pauses
