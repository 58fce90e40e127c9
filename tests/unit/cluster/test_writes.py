"""What Fairlead writes, and what is known of rights when that is refused."""

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from fairlead.cluster.errors import ForbiddenError, refusal
from fairlead.cluster.resources import PODS
from fairlead.cluster.writes import Bindings

if TYPE_CHECKING:
    from fairlead.cluster.client import Client

AT = PODS.of("default", "p", "binding")
REFUSED = 'User "u" cannot create resource "pods/binding" in API group "" in the namespace "default"'
RBAC = json.dumps({"message": REFUSED}).encode()
QUOTA = b'{"message": "exceeded quota: q"}'


class Api:
    """Refuses bindings with what it is told."""

    said: bytes = b""

    async def post(self, *_: Any, **__: Any) -> bytes:
        if self.said:
            raise refusal("create", AT, 403, self.said)
        return b""

    async def read(self, *_: Any, **__: Any) -> bytes:
        return b"{}"


def test_a_right_that_is_missing_is_known_until_a_pod_is_bound(caplog: pytest.LogCaptureFixture) -> None:
    api = Api()
    bindings = Bindings(cast("Client", api))

    async def bound(said: bytes) -> bool:
        api.said = said
        try:
            await bindings.bind("default", "p", b"{}", 1.0)
        except ForbiddenError:
            await bindings.pod("default", "p", 1.0)
            return False
        return True

    async def story() -> list[tuple[bool, bool]]:
        return [(await bound(said), "pods/binding" in bindings.missing) for said in (QUOTA, RBAC, RBAC, b"")]

    assert asyncio.run(story()) == [(False, False), (False, True), (False, True), (True, False)]
    assert [one.levelno for one in caplog.records] == [logging.WARNING]
