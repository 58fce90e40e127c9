"""A small client of the API server: JSON in, JSON out, errors that say what was asked."""

import json
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3

from testbed.errors import ClusterError

T = TypeVar("T")
Object = dict[str, Any]
_PARALLEL = 16
_RETRIES = urllib3.Retry(
    connect=0,
    read=0,
    redirect=0,
    status=10,
    other=0,
    status_forcelist=[429],
    allowed_methods=["GET"],
    raise_on_status=False,
)
"""As every client does: of a kind that has just changed the API server says so while it makes its cache anew."""


class ApiError(ClusterError):
    """The API server refused a request."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(f"{method} {path}: {status}: {message}")


class Api:
    """Talks to the API server that a kubeconfig names. Safe to share between threads."""

    def __init__(self, kubeconfig: Path) -> None:
        from kubernetes import client, config

        settings = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=settings)
        self.url = str(settings.host)
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token := settings.get_api_key_with_prefix("authorization"):
            self._headers["Authorization"] = token
        self._pool = urllib3.PoolManager(
            maxsize=_PARALLEL,
            block=True,
            retries=_RETRIES,
            timeout=urllib3.Timeout(connect=5, read=60),
            cert_reqs="CERT_REQUIRED" if settings.verify_ssl else "CERT_NONE",
            ca_certs=settings.ssl_ca_cert,
            cert_file=settings.cert_file,
            key_file=settings.key_file,
        )

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()

    def get(self, path: str, **query: str) -> Object:
        """Read one object or a list."""
        return self._json("GET", path, None, query)

    def text(self, path: str) -> str:
        """Read something that is not JSON, such as `/readyz` or a pod's log."""
        return self._request("GET", path, None, {}).decode()

    def items(self, path: str, **query: str) -> list[Object]:
        """The items of a list."""
        items: list[Object] = self.get(path, **query)["items"]
        return items

    def lines(self, path: str, **query: str) -> Generator[bytes, None, None]:
        """The lines of a watch, until the API server ends it or it is closed."""
        answer = self._pool.request(
            "GET",
            f"{self.url}{path}?{urlencode(query)}",
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=None),
        )
        try:
            yield from answer
        finally:
            answer.close()

    def create(self, path: str, body: Object) -> Object:
        """Create an object in the collection."""
        return self._json("POST", path, body, {})

    def patch(self, path: str, body: Object) -> Object:
        """Merge into an object or its subresource."""
        return self._json("PATCH", path, body, {}, {"Content-Type": "application/merge-patch+json"})

    def apply(self, path: str, body: Object) -> Object:
        """Server-side apply, as the testbed's field manager."""
        query = {"fieldManager": "fairlead-testbed", "force": "true"}
        return self._json("PATCH", path, body, query, {"Content-Type": "application/apply-patch+yaml"})

    def delete(self, path: str, **query: str) -> None:
        """Delete an object or a collection; one that is not there is as good as deleted."""
        try:
            self._request("DELETE", path, None, query)
        except ApiError as error:
            if error.status != 404:
                raise

    def exists(self, path: str) -> bool:
        """Tell whether the object is there."""
        try:
            self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def create_all(self, path: str, bodies: Iterable[Object]) -> None:
        """Create many objects at once; one that is there already is left as it is."""

        def create(body: Object) -> None:
            try:
                self.create(path, body)
            except ApiError as error:
                if error.status != 409:
                    raise

        with ThreadPoolExecutor(_PARALLEL) as pool:
            for _ in pool.map(create, bodies):
                pass

    def _json(
        self, method: str, path: str, body: Object | None, query: dict[str, str], headers: dict[str, str] | None = None
    ) -> Object:
        answer: Object = json.loads(self._request(method, path, body, query, headers))
        return answer

    def _request(
        self, method: str, path: str, body: Object | None, query: dict[str, str], headers: dict[str, str] | None = None
    ) -> bytes:
        target = self.url + path
        if query:
            target += f"?{urlencode(query)}"
        try:
            answer = self._pool.request(
                method, target, headers=self._headers | (headers or {}), body=None if body is None else json.dumps(body)
            )
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(f"{method} {target}: {error}", cure="see `python -m testbed status`") from error
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, _message(answer.data))
        return answer.data


def wait_for(
    what: str,
    look: Callable[[], T | None],
    *,
    timeout_s: float = 120,
    every_s: float = 0.1,
    progress: Callable[[], object] = lambda: None,
) -> T:
    """Look until something is seen; raise the last error when nothing has changed `progress` for the time given."""
    before = progress()
    end = time.monotonic() + timeout_s
    while True:
        wrong: ClusterError | None = None
        try:
            if (seen := look()) is not None and seen is not False:
                return seen
        except ClusterError as error:
            wrong = error
        if (now := progress()) != before:
            before, end = now, time.monotonic() + timeout_s
        if time.monotonic() >= end:
            raise ClusterError(
                f"waited {timeout_s:g} s for {what}" + (f"; the last answer was: {wrong}" if wrong else "")
            )
        time.sleep(every_s)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:300]
