"""Contexts with which each replica calls others as the operator, by its own authority or with provided certificates."""

import asyncio
import ssl
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.kube.errors import UnreachableError
from fairlead.kube.resources import PODS
from fairlead.process.replica_certificates import KEPT_S, OperatorContexts
from fairlead.webhook.holding.passed_calls import NoCertificateError
from fairlead.webhook.https.tls import TlsError
from scripted.loop import in_loop


class Own:
    """Certificates of the operator's own authority."""

    def __init__(self) -> None:
        self.material = SimpleNamespace(authority=object(), operator=object())
        self.fails = False

    def client(self) -> ssl.SSLContext:
        if self.fails:
            raise TlsError("there is no certificate of the operator's own authority yet")
        return ssl.create_default_context()


class Provided:
    """Certificates in Secrets, which take a moment to read."""

    def __init__(self) -> None:
        self.reads = 0
        self.error: Exception | None = None

    async def context(self) -> ssl.SSLContext:
        self.reads += 1
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return ssl.create_default_context()


def contexts(own: Own | None, provided: Provided, now: list[float]) -> OperatorContexts:
    return OperatorContexts(cast("Any", own), cast("Any", provided), lambda: now[0])


@in_loop
async def test_one_of_our_own_authority_is_made_when_something_in_it_changes() -> None:
    own, provided = Own(), Provided()
    made = contexts(own, provided, [0.0])
    first = await made.context()
    assert await made.context() is first
    own.material.operator = object()
    second = await made.context()
    assert second is not first
    own.material.authority = object()
    own.fails = True
    with pytest.raises(NoCertificateError, match="no certificate of the operator's own authority yet"):
        await made.context()
    own.fails = False
    assert await made.context() is not second
    assert provided.reads == 0


@in_loop
async def test_a_provided_one_is_read_once_for_calls_that_come_together_and_again_after_a_while() -> None:
    provided, now = Provided(), [0.0]
    made = contexts(None, provided, now)
    first = await asyncio.gather(*(made.context() for _ in range(50)))
    assert ({id(one) for one in first}, provided.reads) == ({id(first[0])}, 1)
    now[0] += KEPT_S
    assert await made.context() is not first[0]
    assert provided.reads == 2


ERRORS = [
    InvalidObjectError([FieldError(("tls", "mode"), "Secret fairlead-operator-tls is missing")]),
    UnreachableError("get", PODS, "it does not answer"),
    ssl.SSLError("a bad key"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@in_loop
async def test_a_provided_one_that_cannot_be_read_is_none_and_one_that_was_read_stays(error: Exception) -> None:
    provided, now = Provided(), [0.0]
    made = contexts(None, provided, now)
    provided.error = error
    with pytest.raises(NoCertificateError):
        await made.context()
    provided.error = None
    first = await made.context()
    now[0] += KEPT_S
    provided.error = error
    assert await made.context() is first
