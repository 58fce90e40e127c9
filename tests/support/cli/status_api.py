"""An API server that says what a test wants of what `fairlead status` reads, and refuses what it wants."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

Answers = Mapping[str, object]
"""By path, with `?` and a field selector if that matters: an object, a text, or a status. What is not there is 404."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of callers that have hung up, as those do that wait for several answers and need no more."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def api_server(answers: Answers, folder: Path) -> Iterator[Path]:
    """A kubeconfig for it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            path = asked.path
            query = {key: values[0] for key, values in parse_qs(asked.query).items()}
            by_field = f"{path}?{query.get('fieldSelector', '')}"
            found = _selected(answers.get(by_field, answers.get(path, 404)), query.get("labelSelector", ""))
            code = found if isinstance(found, int) else 200
            body = _status(code, path) if isinstance(found, int) else found
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kubeconfig(f"http://127.0.0.1:{server.server_port}", folder)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def kubeconfig(server: str, folder: Path) -> Path:
    """A kubeconfig for a server."""
    file = folder / "kubeconfig"
    named = {"clusters": [{"name": "c", "cluster": {"server": server}}], "users": [{"name": "u", "user": {}}]}
    contexts = [{"name": "x", "context": {"cluster": "c", "user": "u"}}]
    file.write_text(yaml.safe_dump(named | {"contexts": contexts, "current-context": "x"}))
    return file


def items(*objects: Mapping[str, Any]) -> dict[str, object]:
    """A list."""
    return {"metadata": {}, "items": [*objects]}


def _selected(found: object, selector: str) -> object:
    """Of a list, what a selector selects: `key` and `key=value`, with commas."""
    if not selector or not isinstance(found, dict):
        return found
    wanted = [one.partition("=") for one in selector.split(",")]

    def is_selected(labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value if equals else key in labels for key, equals, value in wanted)

    return items(*(one for one in found["items"] if is_selected(one["metadata"].get("labels", {}))))


def _status(code: int, path: str) -> dict[str, object]:
    plural = path.rsplit("/", 1)[-1]
    said = f'{plural} is forbidden: User "u" cannot list resource "{plural}" in API group "" in the namespace "x"'
    return {"kind": "Status", "code": code, "message": said if code == 403 else "not found", "reason": "Forbidden"}
