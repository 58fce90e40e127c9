"""An exporter: whatever text a test wants to be scraped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def exporting(text: str | Callable[[], str], port: int = 0) -> Iterator[int]:
    """Serve a text, or what a function returns, on a port of loopback; nothing listens there afterwards."""
    read = text if callable(text) else lambda: text

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(read().encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - called so by the library
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
