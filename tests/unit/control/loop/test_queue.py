"""Passes over one scheduler, and what is said of those that fail."""

import asyncio

import msgspec
import pytest

from fairlead.control.loop.queue import Worker
from fairlead.control.reconcile.reconciler import ReconcileResult
from fairlead.kube.errors import refusal
from fairlead.kube.resources import PODS

RIGHT = 'pods is forbidden: he cannot create resource "pods" in API group "" in the namespace "n"'


@pytest.mark.parametrize(
    ("said", "lacks"), [(RIGHT, True), ("exceeded quota: q", False), ("denied by a webhook of others", False)]
)
def test_not_all_that_is_forbidden_is_for_want_of_a_right(said: str, *, lacks: bool) -> None:
    body, passes = msgspec.json.encode({"code": 403, "reason": "Forbidden", "message": said}), list[ReconcileResult]()

    async def once() -> ReconcileResult:
        raise refusal("create", PODS, 403, body)

    async def say(passed: ReconcileResult) -> None:
        passes.append(passed)

    asyncio.run(Worker(scheduler="s", reconcile=once, report=say, is_finished=lambda _: True).run())
    (passed,) = passes
    assert (said in passed.missing_permission, said in passed.failed) == (lacks, not lacks)
