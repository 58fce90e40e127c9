"""Events that cannot be posted, and what is said of the right to post them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.status.events import EventRecorder
from fairlead.kube.errors import RequestError, refusal
from fairlead.kube.resources import ObjectRef

POLICY = {"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}}
MAY_NOT = b"""{"code": 403, "reason": "Forbidden", "message":
"User \\"x\\" cannot create resource \\"events\\" in API group \\"events.k8s.io\\" in the namespace \\"default\\""}"""
MESSAGES = {403: MAY_NOT, 409: b'{"code": 409, "reason": "AlreadyExists"}', 503: b""}


@pytest.mark.parametrize(
    ("answers", "posted", "lacks"),
    [
        ([201, 201], 1, False),
        ([403, 403], 2, True),
        ([403, 201, 201], 2, False),
        ([403, 503, 201, 201], 3, False),  # an API server that was away meanwhile
        ([403, 409, 201], 2, False),  # it had been posted, and nobody heard of it
        ([503, 201], 1, False),
    ],
)
def test_an_event_that_we_had_no_right_to_post_is_posted_once_we_have(
    answers: list[int], posted: int, lacks: bool
) -> None:
    asked = list[str]()

    class Client:
        async def create(self, where: ObjectRef, body: dict[str, Any], _: object) -> None:
            asked.append(body["metadata"]["name"])
            if (status := answers[len(asked) - 1]) >= 400:
                raise said(where, status)

    lacking = MissingPermissions()
    announcer = EventRecorder(cast("Any", Client()), "test", lacking)

    async def story() -> None:
        await announcer.record(POLICY, "Normal", "Ready", "all is well", "Reconcile", datetime(2026, 1, 1, tzinfo=UTC))
        for _ in answers[1:]:
            await announcer.retry_refused()

    asyncio.run(story())
    assert len(asked) == posted
    assert len({*asked}) == 1
    assert bool(lacking.messages) is lacks


def test_the_names_of_events_are_in_their_order_also_at_one_moment_and_when_the_clock_goes_back() -> None:
    names = list[str]()

    class Client:
        async def create(self, _where: ObjectRef, body: dict[str, Any], _: object) -> None:
            names.append(body["metadata"]["name"])

    recorder = EventRecorder(cast("Any", Client()), "test", MissingPermissions())
    at = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    moments = [at, at, at + timedelta(microseconds=1), at + timedelta(hours=1), at, at + timedelta(days=90)]

    async def story() -> None:
        for number, moment in enumerate(moments):
            await recorder.record(POLICY, "Normal", "Ready", f"note {number}", "Reconcile", moment)

    asyncio.run(story())
    assert names == sorted({*names})
    assert len(names) == len(moments)
    # as kube-scheduler names them: the time in nanoseconds, in hexadecimal
    assert names[0] == f"p.{int(at.timestamp() * 1_000_000) * 1000:x}"


def said(where: ObjectRef, status: int) -> RequestError:
    return refusal("create", where, status, MESSAGES[status])
