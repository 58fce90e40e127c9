"""Whose certificate is whose."""

from typing import Any

import pytest

from fairlead.pki.identities import OPERATOR, scheduler_identity
from fairlead.policy.evaluate.matching import policy_set
from fairlead.render.operator_settings import parse_settings
from fairlead.webhook.extender.call import Caller
from fairlead.webhook.extender.callers import Callers, callers, expected, longest_bind_s
from support.policy import policy

LONG = "a" * 46
NAMES = ["gpu", "fairlead", "a" * 45, LONG, "a" * 47, "a" * 63, f"{'a' * 62}b", "a" * 253]


def test_each_scheduler_has_a_name_of_its_own_that_fits() -> None:
    identities = {scheduler_identity(name) for name in NAMES}
    assert len(identities) == len(NAMES)
    assert max(map(len, identities)) == 64
    assert scheduler_identity("gpu") == "fairlead:scheduler:gpu"
    assert scheduler_identity(LONG) == f"fairlead:scheduler:{'a' * 28}~6643110c5628fff5"


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduler_is_known_by_its_certificate(name: str) -> None:
    wanted = {one: Caller(schedulers=frozenset({one}), wants_all_reasons=one == "gpu") for one in NAMES}
    known = Callers(lambda: [*wanted.values()])
    assert known(scheduler_identity(name), "filter") == wanted[name]


@pytest.mark.parametrize("name", ["", "gpu", "fairlead:scheduler:", "fairlead:scheduler:gpu2", "fairlead:webhook"])
def test_nobody_else_is(name: str) -> None:
    assert Callers(lambda: [Caller(schedulers=frozenset({"gpu"}))])(name, "filter") is None


def test_the_operator_may_call_and_places_nothing() -> None:
    assert Callers(list)(OPERATOR, "filter") == Caller(schedulers=frozenset())


def test_who_is_allowed_changes_when_the_schedulers_do() -> None:
    there = [Caller(schedulers=frozenset({"gpu"}))]
    known = Callers(lambda: there)
    assert known(scheduler_identity("gpu"), "bind") == there[0]
    there = [Caller(schedulers=frozenset({"web"}))]
    assert known(scheduler_identity("gpu"), "bind") is None
    assert known(scheduler_identity("web"), "bind") == there[0]


def test_how_long_a_scheduler_waits_for_binds_follows_from_its_policies() -> None:
    policies = [
        policy("a", schedulerName="gpu", **gang("10s")),
        policy("b", schedulerName="gpu", **gang("31s")),
        policy("c", schedulerName="gpu", mode="Disabled", **gang("2m")),
        policy("d", schedulerName="web", annotations={"fairlead.dev/a": "'x'"}),
        policy("e", schedulerName="api", **gang("5s")),
    ]
    made = callers(["gpu", "web", "api"], parse_settings("{}"), policies, "fairlead-system")
    assert {next(iter(one.schedulers)): one.bind_timeout_s for one in made} == {"api": 35, "gpu": 65, "web": None}
    holds = policy_set(policies).hold_s
    assert holds == {"gpu": 31, "api": 5}
    assert [longest_bind_s(one, holds) for one in (["gpu", "api"], ["api", "web"], ["web"], [])] == [65, 35, None, None]


def gang(hold_for: str) -> dict[str, Any]:
    return {"binding": {"gang": [{"name": "g", "group": "pod.metadata.name", "size": "2", "holdFor": hold_for}]}}


@pytest.mark.parametrize(
    ("settings", "there", "may"),
    [
        ("{}", "", "a b"),
        ("{}", "c", "a b c"),
        ("unlistedSchedulers: Deny", "", ""),
        ("unlistedSchedulers: Deny", "a", "a"),  # until it is gone: else its pods would be placed unasked
        ("{unlistedSchedulers: Deny, schedulers: [{name: b}]}", "", "b"),
        ("maxUnlistedSchedulers: 0", "", ""),
        ("maxUnlistedSchedulers: 2", "c", "a b c"),
        ("maxUnlistedSchedulers: 2", "c d", "c d"),
        ("{maxUnlistedSchedulers: 2, schedulers: [{name: d}]}", "c d", "a b c d"),
    ],
)
def test_which_schedulers_may_call(settings: str, there: str, may: str) -> None:
    assert expected(parse_settings(settings), {*there.split()}, ["a", "b"]) == {*may.split()}
