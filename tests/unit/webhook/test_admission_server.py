"""Why somebody is turned away at the port that the API server asks at."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.webhook.admission import NoReviewError
from fairlead.webhook.admission_server import MAX_BODY, PATH, AdmissionServer
from fairlead.webhook.tls import Tls
from tlskit import Ground, as_go, connect


def review(_: bytes) -> Iterator[None]:
    raise NoReviewError("no review at all")
    yield


CASES: dict[str, bytes] = {
    "admission: no such path": as_go(PATH, b"", "GET"),
    "admission: bad request": as_go(PATH, b"{}"),
    "admission: large body": as_go(PATH, b"", **{"Content-Length": str(MAX_BODY + 1)}),
}
WITHOUT_TLS: dict[str, bytes] = {"admission: plain HTTP": as_go(PATH, b"{}"), "admission: no TLS": b"\x01" * 64}


@pytest.mark.parametrize("reason", [*CASES, *WITHOUT_TLS])
def test_the_reason_is_named(tmp_path: Path, reason: str) -> None:
    async def story() -> str:
        ground, refused = Ground(tmp_path), asyncio.Queue[str]()
        server = AdmissionServer(Tls(ground.files), review, lambda why, _: refused.put_nowait(why))  # type: ignore[arg-type]
        port = await server.start("127.0.0.1", 0)
        try:
            connection = await connect(port, ground.client(None) if reason in CASES else None)
            connection.writer.write({**CASES, **WITHOUT_TLS}[reason])
            found = await asyncio.wait_for(refused.get(), 60)
            await connection.close()
            return found
        finally:
            await server.stop()

    assert asyncio.run(story()) == reason
