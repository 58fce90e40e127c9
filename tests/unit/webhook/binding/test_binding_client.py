"""What Fairlead writes, and what is known of rights when that is refused."""

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any, cast

import pytest

from fairlead.grants.entry_state import PodState
from fairlead.kube.errors import AccessError, ClusterError, UnreachableError, refusal
from fairlead.kube.resources import PODS
from fairlead.webhook.binding.api_calls import Posted
from fairlead.webhook.binding.binding_client import BindingClient
from fairlead.webhook.binding.ledger_client import LedgerClient
from fairlead.webhook.serving.last_good import REFUSALS, LastGoodStore, RevisionClient

if TYPE_CHECKING:
    from fairlead.kube.http.client import Client

AT = PODS.named("default", "p", "binding")
BINDING = {"metadata": {"namespace": "default", "name": "p"}}
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
    bindings = BindingClient(cast("Client", api))

    async def bound(said: bytes) -> bool:
        api.said = said
        outcome = await bindings.post_binding(BINDING, 1.0)
        if not isinstance(outcome, Posted):
            await bindings.read_body("default", "p", 1.0)
        return isinstance(outcome, Posted)

    async def story() -> list[tuple[bool, bool]]:
        return [(await bound(said), "pods/binding" in bindings.missing) for said in (QUOTA, RBAC, RBAC, b"")]

    assert asyncio.run(story()) == [(False, False), (False, True), (False, True), (True, False)]
    assert [one.levelno for one in caplog.records] == [logging.WARNING]


LEDGERS = 'User "u" cannot patch resource "configmaps" in API group "" in the namespace "ops"'


def test_a_right_that_is_missing_for_ledgers_is_known_like_one_for_bindings(caplog: pytest.LogCaptureFixture) -> None:
    said = [QUOTA, json.dumps({"message": LEDGERS}).encode(), b""]

    class Ledgers:
        async def merge_once(self, *_: Any, **__: Any) -> bytes:
            if answer := said.pop(0):
                raise refusal("patch", AT, 403, answer)
            return b'{"metadata":{"name":"fairlead-grants-n","uid":"u","resourceVersion":"1"}}'

    bindings = BindingClient(cast("Client", Ledgers()))
    ledgers = LedgerClient(bindings, "ops", lambda _: PodState("u", "ns/p", "1"))

    async def story() -> list[bool]:
        found = list[bool]()
        while said:
            await ledgers.patch_ledger("n", {}, 1.0)
            found.append("configmaps" in bindings.missing)
        return found

    assert asyncio.run(story()) == [False, True, False]
    assert [(one.levelno, one.consequence) for one in caplog.records] == [  # type: ignore[attr-defined]
        (logging.WARNING, "no devices are granted")
    ]


PASSING: dict[str, tuple[ClusterError, bool]] = {
    "nobody answers": (UnreachableError("list", AT, "no"), True),
    "nobody knows who asks": (AccessError("config", "user", "no", "mend it"), True),
    "who asks is not known yet": (refusal("list", AT, 401, b""), True),
    "nobody is behind the balancer": (refusal("list", AT, 503, b"<html>"), True),
    "there is no right": (refusal("list", AT, 403, RBAC), False),
    "it fails for good": (refusal("list", AT, 500, b""), False),
}


@pytest.mark.parametrize(("error", "passing"), PASSING.values(), ids=PASSING)
def test_what_was_kept_is_waited_for_while_it_may_be_had_another_time(error: ClusterError, passing: bool) -> None:
    class Away:
        def pages(self, *_: Any, **__: Any) -> Any:
            raise error

    revisions = LastGoodStore(RevisionClient(cast("Client", Away()), "fairlead-system"), "files")
    said = [asyncio.run(revisions.load()) for _ in range(REFUSALS)]
    assert said[-1] == (None if passing else {})
    assert revisions.fault == str(error)
