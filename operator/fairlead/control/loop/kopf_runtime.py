"""Runtime of kopf, in its own thread and loop, while this replica leads.

kopf watches policies and the objects of schedulers, and calls the controller; it stores nothing on objects and retries
nothing. If it stops by itself it is restarted after a pause. The serving loop never waits for it.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, Protocol, cast

import aiohttp
import kopf

from fairlead.api.names import GROUP, PLURAL, VERSION
from fairlead.kube.access.login import Login
from fairlead.render.object_names import SCHEDULER_LABEL

LOG: Final = logging.getLogger(__name__)
CHILDREN: Final = (
    ("apps", "v1", "deployments"),
    ("", "v1", "configmaps"),
    ("", "v1", "secrets"),
    ("", "v1", "serviceaccounts"),
    ("networking.k8s.io", "v1", "networkpolicies"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "v1", "roles"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings"),
)
"""Watched kinds in our namespace. Not Leases: schedulers renew them all the time, and create them again."""
_BACKOFF_S: Final = 1.0
_BACKOFF_MAX_S: Final = 60.0
_TLS_SHUTDOWN_S: Final = 0.5
"""Time for connections that kopf dropped to complete their TLS shutdown."""


class EventHandler(Protocol):
    """Handler of watch events, with background tasks."""

    def on_policy_event(self, kind: str | None, policy: Mapping[str, Any]) -> None:
        """Handle an event of a policy."""

    def enqueue(self, scheduler: str) -> None:
        """Handle an event of an object of a scheduler."""

    def wake_pods(self) -> None:
        """Wake rejected pods soon."""

    async def run(self) -> None:
        """Run the background tasks."""


KopfLogin = Callable[[], Awaitable[kopf.ConnectionInfo | kopf.AiohttpSession]]
Leading = Callable[[], AbstractAsyncContextManager[EventHandler]]


def settings() -> kopf.OperatorSettings:
    """Return kopf's settings, changed where a default does not fit."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.scanning.disabled = True
    made.watching.server_timeout, made.watching.client_timeout = 300, 330
    made.watching.connect_timeout = 10
    for child in CHILDREN:  # selected by the server: others' Secrets and ConfigMaps are never sent
        made.watching.label_selectors[child] = SCHEDULER_LABEL
    made.networking.request_timeout, made.networking.connect_timeout = 30, 10
    made.networking.enforce_retry_after = True
    made.queueing.idle_timeout = 0.1  # our handlers only enqueue: there is nothing to wait for
    made.process.ultimate_exiting_timeout = None
    made.persistence.finalizer = f"{GROUP}/kopf"
    return made


def registry(handler: Callable[[], EventHandler], login: KopfLogin) -> kopf.OperatorRegistry:
    """Return kopf's registry, with handlers that pass events on."""
    made = kopf.OperatorRegistry()

    @kopf.on.login(registry=made)
    async def shown(**_: Any) -> kopf.ConnectionInfo | kopf.AiohttpSession:
        return await login()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=made)
    async def policy(event: Mapping[str, Any], **_: Any) -> None:
        handler().on_policy_event(event["type"], event["object"])

    for group, version, plural in CHILDREN:

        @kopf.on.event(group, version, plural, labels={SCHEDULER_LABEL: kopf.PRESENT}, registry=made, id=plural)
        async def child(labels: Mapping[str, str], **_: Any) -> None:
            handler().enqueue(labels[SCHEDULER_LABEL])

    return made


def _is_no_surprise(record: logging.LogRecord) -> bool:
    """Return whether to write a line of kopf: not that it handles no signals, which the process does itself."""
    return "OS signals are ignored" not in record.getMessage()


logging.getLogger("kopf._core.reactor.running").addFilter(_is_no_surprise)


class Runtime:
    """Leader task that runs kopf and the controller in their own thread."""

    def __init__(self, leading: Leading, login: KopfLogin, namespace: str, ended: Callable[[], None]) -> None:
        """`leading` provides the handler in the thread's loop; `ended` is called in the thread at its end."""
        self.fault = ""
        """Why kopf does not run although it should."""
        self._leading, self._login, self._namespace, self._ended = leading, login, namespace, ended
        self._stop = threading.Event()
        self._wake: Callable[[], object] = lambda: None
        self._wake_pods: Callable[[], object] = lambda: None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._thread_main, args=(self._stop,), name="control", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop soon."""
        self._stop.set()
        with suppress(RuntimeError):  # its loop is closed: it has ended already
            self._wake()

    def wake_pods(self) -> None:
        """Have rejected pods woken soon. Works in any thread, and does nothing while this replica does not lead."""
        with suppress(RuntimeError):
            self._wake_pods()

    @property
    def stopped(self) -> bool:
        """True if the thread does not run."""
        return self._thread is None or not self._thread.is_alive()

    def _thread_main(self, stop: threading.Event) -> None:
        pause = _BACKOFF_S
        try:
            while not stop.is_set():
                begun = time.monotonic()
                try:
                    asyncio.run(self._run(stop))
                    self.fault = "" if stop.is_set() else "kopf stopped by itself"
                except (Exception, asyncio.CancelledError) as error:
                    self.fault = f"{type(error).__name__}: {error}"
                    LOG.exception("leader.restarted")
                if time.monotonic() - begun > _BACKOFF_MAX_S:
                    pause = _BACKOFF_S
                if stop.wait(pause):
                    break
                pause = min(2 * pause, _BACKOFF_MAX_S)
        finally:
            self._ended()

    async def _run(self, stop: threading.Event) -> None:
        loop, stopping = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(stopping.set)
        if stop.is_set():
            return
        async with self._leading() as handler:
            self.fault = ""
            self._wake_pods = lambda: loop.call_soon_threadsafe(handler.wake_pods)
            background, login_failed = asyncio.ensure_future(handler.run()), loop.create_future()

            async def login() -> kopf.ConnectionInfo | kopf.AiohttpSession:
                try:
                    return await self._login()
                except Exception as error:  # kopf would retry only after a minute, or hang
                    if not login_failed.done():
                        login_failed.set_exception(error)
                    raise

            # Not its `stop_flag`: a thread waits for that, and the loop for the thread, even after kopf died.
            operator = asyncio.ensure_future(
                kopf.operator(
                    registry=registry(lambda: handler, login),
                    settings=settings(),
                    standalone=True,
                    identity=cast("Any", "fairlead"),  # kopf would look up the user's name, which pods lack
                    namespaces=[self._namespace],
                )
            )
            ending: asyncio.Future[Any] = asyncio.ensure_future(stopping.wait())
            try:
                done, _ = await asyncio.wait(
                    {operator, background, login_failed, ending}, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                # kopf is cancelled last: it waits for every task that was started after it.
                for task in (ending, login_failed, background, operator):
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                await asyncio.sleep(_TLS_SHUTDOWN_S)
            if ending not in done:
                for task in done:
                    task.result()


async def session(login: Login) -> kopf.AiohttpSession:
    """Return a session with the current credentials; kopf logs in again when they are refused."""
    connection = await login.connection()
    shown = connection.authorization
    made = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=connection.api_client().rest_client.ssl_context),
        headers={"Authorization": shown} if shown else {},
        proxy=connection.configuration.proxy or None,
    )
    return kopf.AiohttpSession(server=login.server, aiohttp_session=made)
