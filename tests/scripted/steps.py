"""What a script is made of: good answers, bad ones, and ends of connections."""

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from scripted.server import Step

Object = dict[str, Any]


def thing(name: str, version: int, *, uid: str = "", namespace: str = "default", value: object = 0) -> Object:
    """An object."""
    meta = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, "value": value}


def answer(body: object, status: int = 200, **headers: str) -> Step:
    """JSON, with headers as `Retry_After`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=named)

    return step


def refuse(code: int, reason: str = "", message: str = "no", **headers: str) -> Step:
    """A Status."""
    return answer(status_object(code, reason, message), code, **headers)


def status_object(code: int, reason: str, message: str = "no") -> Object:
    """As the API server says no."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


def page(*items: Object, version: int, more: str = "") -> Step:
    """A part of a list."""
    return answer({"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def line(kind: str, obj: Object) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """A line that tells the version alone."""
    return line("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


EXPIRED = line("ERROR", status_object(410, "Expired", "too old resource version"))


def watch(*chunks: bytes, then: str = "end", until: asyncio.Event | None = None) -> Step:
    """Lines, in chunks as they are given; `then` they `end`, are `cut` off or are followed by silence (`hold`).

    What comes then comes when `until` is set, if it is given.
    """

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if until:
            await until.wait()
        if then == "hold":
            await asyncio.Event().wait()  # the server cancels it when the connection goes
        if then == "cut":
            cut(request)
        return response

    return step


async def broken(request: web.BaseRequest) -> web.StreamResponse:
    """The connection breaks before there is any answer."""
    cut(request)
    return web.Response()


def cut(request: web.BaseRequest) -> None:
    """RST."""
    if (transport := request.transport) is None:
        return
    wire = transport.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def pages(items: Sequence[Object], *, version: int, size: int) -> list[Step]:
    """A list in several pages."""
    parts = [items[start : start + size] for start in range(0, len(items), size)] or [[]]
    return [
        page(*part, version=version, more="" if number == len(parts) else f"c{number}")
        for number, part in enumerate(parts, 1)
    ]
