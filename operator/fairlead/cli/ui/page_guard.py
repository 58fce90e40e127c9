"""Guard of the page: who may ask for it. Pure.

The page shows what its user may read, so no one else may have it: no website that the user visits, which a name that
resolves to this machine would let in, and no other user of the machine.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TOKEN_BYTES: Final = 24
HEADER: Final = "X-Fairlead"
_HEADER_VALUE: Final = "page"
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every reply."""


@dataclass(frozen=True, slots=True)
class PageRefusal:
    """Refusal of a request."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class PageGuard:
    """Guard of the page on a port, with the token of its printed address."""

    port: int
    token: str

    @property
    def cookie(self) -> str:
        """Name of the cookie: cookies know no ports, and several pages may be open."""
        return f"fairlead-ui-{self.port}"

    @property
    def address(self) -> str:
        """Address that opens the page."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def refusal(
        self, method: str, headers: Mapping[str, str], cookies: Mapping[str, str], token: str
    ) -> PageRefusal | None:
        """Return why a request is refused; None if it is not. `token` is that of its address, if it has one."""
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        if headers.get("Host", "") not in hosts:
            return PageRefusal(421, "This page answers only to its own address, which `fairlead ui` printed.\n")
        origin = headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in hosts]:
            return PageRefusal(403, "This page answers no other page.\n")
        if not self.is_token(cookies.get(self.cookie, "")) and not (method == "GET" and self.is_token(token)):
            return PageRefusal(403, "Open the address that `fairlead ui` printed: it has a token.\n")
        if method not in ("GET", "HEAD") and headers.get(HEADER) != _HEADER_VALUE:
            return PageRefusal(403, f"A request that is not a GET needs the header {HEADER}: {_HEADER_VALUE}.\n")
        return None

    def is_token(self, text: str) -> bool:
        """Return whether a text is the token, in a time that does not depend on the text."""
        return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), self.token.encode())


def new_token() -> str:
    """Return a token of 192 bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)
