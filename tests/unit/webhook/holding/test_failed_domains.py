"""Domains in which an attempt failed are published, and avoided by the next one."""

from fairlead.grants.group_domain import RequiredDomain
from fairlead.groups.group import Group, group_hash
from fairlead.groups.member_calls import AttemptEnded, AttemptResult
from fairlead.groups.turns import NO_TURNS, read_turns, turns_body
from fairlead.webhook.holding.failed_domains import FailedDomains

GROUP = Group("fairlead", "ml", "train")
A, B = {"rack": "a"}, {"rack": "b"}


def ended(result: AttemptResult, group: Group = GROUP) -> AttemptEnded:
    return AttemptEnded(group, 1, result, 1, 2, 0)


def required(domain: dict[str, str]) -> list[RequiredDomain]:
    return [RequiredDomain("ml/train", domain, "policy")]


def avoided(failed: FailedDomains) -> dict[str, str] | None:
    """Return what other replicas read of it."""
    body = turns_body("fairlead", failed.added_to(NO_TURNS))
    turns = read_turns(body).value
    assert turns is not None
    found = turns.avoided.get(group_hash(GROUP))
    return None if found is None else dict(found)


def test_the_last_failure_counts_until_the_group_has_started() -> None:
    failed = FailedDomains(lambda _: True)
    assert avoided(failed) is None
    for domain in (A, B):
        failed.committed(required(domain))
        before = failed.revision
        failed.ended(ended(AttemptResult.UNSCHEDULABLE))
        assert (avoided(failed), failed.revision > before) == (domain, True)
    failed.ended(ended(AttemptResult.NONE_FURTHER))
    assert avoided(failed) == B, "an attempt in which nothing was committed tells nothing"
    failed.committed(required(A))
    failed.ended(ended(AttemptResult.STARTED))
    assert avoided(failed) is None


def test_an_attempt_that_was_abandoned_avoids_nothing() -> None:
    failed = FailedDomains(lambda _: True)
    failed.committed(required(A))
    failed.ended(ended(AttemptResult.ABANDONED))
    assert avoided(failed) is None


def test_a_group_without_members_is_forgotten() -> None:
    known = {GROUP}
    failed = FailedDomains(known.__contains__)
    failed.committed(required(A))
    failed.ended(ended(AttemptResult.OUT_OF_TIME))
    known.clear()
    failed.ended(ended(AttemptResult.STARTED, Group("fairlead", "ml", "other")))
    assert avoided(failed) is None
