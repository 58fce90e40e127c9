"""kopf, in a thread and a loop of its own, while this replica leads.

It watches our own kind and what we made, and does nothing else: it keeps nothing on objects, and handles nothing twice.
If it ends by itself it is begun again after a pause; whoever serves never waits for it.
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
from fairlead.kube.access.access import Access
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
"""In our namespace. Not Leases: their schedulers renew them all the time, and make them anew."""
_FIRST_S: Final = 1.0
_MOST_S: Final = 60.0
_GOODBYE_S: Final = 0.5
"""For connections that kopf has dropped: TLS ends them with an answer."""


class EventHandler(Protocol):
    """Who is told of what happens."""

    def on_policy_event(self, kind: str | None, policy: Mapping[str, Any]) -> None:
        """Something happened to a policy."""

    def enqueue(self, scheduler: str) -> None:
        """Something happened to what a scheduler is made of."""

    async def run(self) -> None:
        """What goes on beside that."""


Login = Callable[[], Awaitable[kopf.ConnectionInfo | kopf.AiohttpSession]]
Leading = Callable[[], AbstractAsyncContextManager[EventHandler]]


def settings() -> kopf.OperatorSettings:
    """Everything that has a default which does not suit us."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    made.scanning.disabled = True
    made.watching.server_timeout, made.watching.client_timeout = 300, 330
    made.watching.connect_timeout = 10
    for child in CHILDREN:  # on the server: others' Secrets and ConfigMaps are not even sent
        made.watching.label_selectors[child] = SCHEDULER_LABEL
    made.networking.request_timeout, made.networking.connect_timeout = 30, 10
    made.networking.enforce_retry_after = True
    made.queueing.idle_timeout = 0.1  # there is nothing to wait for: our handlers only tell
    made.process.ultimate_exiting_timeout = None
    made.persistence.finalizer = f"{GROUP}/kopf"
    return made


def registry(told: Callable[[], EventHandler], login: Login) -> kopf.OperatorRegistry:
    """Handlers that only tell."""
    made = kopf.OperatorRegistry()

    @kopf.on.login(registry=made)
    async def shown(**_: Any) -> kopf.ConnectionInfo | kopf.AiohttpSession:
        return await login()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=made)
    async def policy(event: Mapping[str, Any], **_: Any) -> None:
        told().on_policy_event(event["type"], event["object"])

    for group, version, plural in CHILDREN:

        @kopf.on.event(group, version, plural, labels={SCHEDULER_LABEL: kopf.PRESENT}, registry=made, id=plural)
        async def child(labels: Mapping[str, str], **_: Any) -> None:
            told().enqueue(labels[SCHEDULER_LABEL])

    return made


class Runtime:
    """The duty of whoever holds the Lease."""

    def __init__(self, leading: Leading, login: Login, namespace: str, ended: Callable[[], None]) -> None:
        """`leading` gives whoever is told, in the thread's loop; `ended` is called in the thread when it is over."""
        self.fault = ""
        """Why kopf does not run though it should."""
        self._leading, self._login, self._namespace, self._ended = leading, login, namespace, ended
        self._stop = threading.Event()
        self._wake: Callable[[], object] = lambda: None
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

    @property
    def stopped(self) -> bool:
        """Whether nothing of it goes on."""
        return self._thread is None or not self._thread.is_alive()

    def _thread_main(self, stop: threading.Event) -> None:
        pause = _FIRST_S
        try:
            while not stop.is_set():
                begun = time.monotonic()
                try:
                    asyncio.run(self._run(stop))
                    self.fault = "" if stop.is_set() else "kopf stopped by itself"
                except (Exception, asyncio.CancelledError) as error:
                    self.fault = f"{type(error).__name__}: {error}"
                    LOG.exception("leader.restarted")
                if time.monotonic() - begun > _MOST_S:
                    pause = _FIRST_S
                if stop.wait(pause):
                    break
                pause = min(2 * pause, _MOST_S)
        finally:
            self._ended()

    async def _run(self, stop: threading.Event) -> None:
        loop, told_to_stop = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(told_to_stop.set)
        if stop.is_set():
            return
        async with self._leading() as told:
            self.fault = ""
            beside, fallen = asyncio.ensure_future(told.run()), loop.create_future()

            async def login() -> kopf.ConnectionInfo | kopf.AiohttpSession:
                try:
                    return await self._login()
                except Exception as error:  # kopf would only try again after a minute, or hang for good
                    if not fallen.done():
                        fallen.set_exception(error)
                    raise

            # Not its `stop_flag`: a thread would wait for that, and the loop for the thread, when kopf has died.
            operator = asyncio.ensure_future(
                kopf.operator(
                    registry=registry(lambda: told, login),
                    settings=settings(),
                    standalone=True,
                    identity=cast("Any", "fairlead"),  # by default it asks for the user's name, and in pods he has none
                    namespaces=[self._namespace],
                )
            )
            ending: asyncio.Future[Any] = asyncio.ensure_future(told_to_stop.wait())
            try:
                done, _ = await asyncio.wait({operator, beside, fallen, ending}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                # kopf goes last: whatever was begun after it, it takes for its own and waits for.
                for task in (ending, fallen, beside, operator):
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                await asyncio.sleep(_GOODBYE_S)
            if ending not in done:
                for task in done:
                    task.result()


async def session(access: Access) -> kopf.AiohttpSession:
    """Shows what is to be shown now; kopf asks anew when that is refused."""
    connection = await access.connection()
    shown = connection.credential.authorization
    connector = aiohttp.TCPConnector(ssl=connection.tls) if connection.tls is not None else aiohttp.TCPConnector()
    made = aiohttp.ClientSession(
        connector=connector, headers={"Authorization": shown} if shown else {}, proxy=access.proxy or None
    )
    return kopf.AiohttpSession(server=access.server, aiohttp_session=made)
