"""What is written as the status of a policy."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.control.passes import Passed
from fairlead.control.status import About, status


@pytest.mark.parametrize(("spec", "scheduler"), [({}, "fairlead"), ({"schedulerName": "s"}, "s")])
def test_the_scheduler_is_named_whether_or_not_the_policy_names_it(spec: dict[str, Any], scheduler: str) -> None:
    policy = {"metadata": {"name": "p", "uid": "u", "generation": 1}, "spec": spec}
    about = About(policy=policy, answers={}, passed=Passed(), managed=True, paused=False)
    assert status(about, datetime(2026, 1, 1, tzinfo=UTC))["scheduler"] == {"name": scheduler}
