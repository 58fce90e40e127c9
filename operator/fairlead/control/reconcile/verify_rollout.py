"""Verification of a rollout: probes of the extender URLs with the scheduler's certificate, and its logged errors."""

import asyncio
import re
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import aiohttp
import msgspec

from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from fairlead.pki.identities import NO_POD

_TIMEOUT_S: Final = 3.0
_WINDOW_S: Final = 10
_ERRORS: Final = ("extender", "x509", "tls:")
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"')


async def probe_extender_urls(urls: Sequence[str], context: ssl.SSLContext, scheduler: str) -> str:
    """Return the first URL that fails, and why; "" if all answer."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=context)) as session:
        faults = await asyncio.gather(*(_call(session, url, scheduler) for url in urls))
    return next(filter(None, faults), "")


async def _call(session: aiohttp.ClientSession, url: str, scheduler: str) -> str:
    verb = url.rpartition("/")[2]
    try:
        async with session.post(url, data=msgspec.json.encode(_REQUESTS[verb](scheduler))) as answer:
            if answer.status == 200:
                return ""
            return f"{url}: {answer.status}: {(await answer.text())[:200]}"
    except TimeoutError:
        return f"{url}: no answer within {_TIMEOUT_S:g} s"
    except aiohttp.ClientError as error:
        return f"{url}: {error}"


def _about_no_node(scheduler: str) -> Mapping[str, Any]:
    return {"Pod": _pod(scheduler), "NodeNames": []}


def _pod(scheduler: str) -> Mapping[str, Any]:
    return {"metadata": {"name": NO_POD, "namespace": "default"}, "spec": {"schedulerName": scheduler}}


_REQUESTS: Final[Mapping[str, Callable[[str], Mapping[str, Any]]]] = {
    "filter": _about_no_node,
    "prioritize": _about_no_node,
    "preempt": lambda scheduler: {"Pod": _pod(scheduler), "NodeNameToMetaVictims": {}},
    "bind": lambda _: {"PodName": NO_POD, "PodNamespace": "default", "PodUID": "-", "Node": "-"},
}


async def recent_scheduler_errors(client: Client, pods: Iterable[Mapping[str, Any]]) -> str:
    """Return the last error about extenders that one of these pods logged lately. Raises ForbiddenError."""
    for pod in pods:
        metadata = pod["metadata"]
        at = PODS.named(metadata["namespace"], metadata["name"], "log")
        query = {"container": "kube-scheduler", "sinceSeconds": str(_WINDOW_S)}
        try:
            text = (await client.get(at, bytes, query)).decode(errors="replace")
        except ForbiddenError:
            raise
        except ClusterError:  # a pod that does not run has logged nothing
            continue
        for line in reversed(text.splitlines()):
            if line.startswith("E") and any(word in line for word in _ERRORS):
                return f"{metadata['name']} logged: {_without_values(line)[:300]}"
    return ""


def _without_values(line: str) -> str:
    """Return a klog line up to its error, without the names of pods and nodes that follow."""
    where, end, rest = line.partition("] ")
    if (words := _QUOTED.match(rest)) is None:
        return line
    error = _QUOTED.match(rest, words.end() + len(" err=")) if rest.startswith(" err=", words.end()) else None
    return where + end + rest[: (error or words).end()]
