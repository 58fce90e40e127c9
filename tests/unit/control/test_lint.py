"""What lint says of a policy is looked for once, in pieces, and never stops who asks."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.cel.pausing import Share
from fairlead.control.lint import Linted
from fairlead.policy.compile import Rules
from policykit import MODEL, obj
from policykit.building import INSTALLED


def policy(generation: int = 1) -> dict[str, Any]:
    return obj("p", generation=generation, uid="u", filters={"f": "1 > 0", "g": "pod.spec.priority > 1"})


def test_it_gives_the_time_away_between_its_stretches_and_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slept, now = list[float](), [0.0]

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    rules = Rules(INSTALLED)
    linted = Linted(MODEL, lambda: rules, Share(clock))
    monkeypatch.setattr("fairlead.control.lint.sleep", slept.append)
    said = linted(policy())
    assert [reason for reason, _ in said] == ["AlwaysPasses", "SameForEveryNode"]
    assert len(slept) > 20
    assert sum(slept) > 0.1
    slept.clear()
    assert (linted(policy()), slept) == (said, [])
    linted(policy(2))
    assert slept


def test_of_what_takes_too_long_or_fails_nothing_is_said_and_it_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, looked = [0.0], list[object]()

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    rules = Rules(INSTALLED, clock=clock)
    linted = Linted(MODEL, lambda: rules)
    assert linted(policy()) == []
    before = now[0]
    assert linted(policy()) == []
    assert now[0] == before

    def fails(*given: object) -> Iterator[None]:
        looked.append(given)
        raise MemoryError
        yield

    monkeypatch.setattr("fairlead.control.lint.inspect_steps", fails)
    assert linted(policy(2)) == []
    assert linted(policy(2)) == []
    assert len(looked) == 1
