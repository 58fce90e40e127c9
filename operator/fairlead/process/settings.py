"""What `fairlead serve` and `fairlead operate` are told, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead.pki.identities import REPLICAS
from fairlead.webhook.extender.call import Verb
from fairlead.webhook.https.tls import Files

NAMESPACE: Final = "fairlead-system"
VERBS: Final[frozenset[Verb]] = frozenset(("filter", "prioritize", "preempt", "bind"))
AllowedCallers = Mapping[str, frozenset[Verb]]
"""What somebody may ask about the pods of each scheduler."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "Address":
        """From HOST:PORT, where HOST may be empty or [::]. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is not HOST:PORT; write an IPv6 address in brackets, as [::1]:{port}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """What both are told."""

    listen: Address
    probes: Address
    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = NAMESPACE
    timeout_s: float = 1.0
    max_body: int = 10 << 20
    drain_s: float = 5.0
    verify_s: float = 3600.0
    """How often what is held is compared with what the API server has; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServingSettings):
    """Of `fairlead serve`."""

    policies: Path
    tls: Files
    callers: Mapping[str, AllowedCallers | None]
    """By the names of their certificates; None: everything about every scheduler that policies name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperateSettings(ServingSettings):
    """Of `fairlead operate`."""

    admission: Address | None = None
    """None: nowhere; nobody asks."""
    settings: Path | None = None
    """The file with the operator's settings; None: the defaults of everything."""
    service: str = "fairlead"
    """What schedulers call."""
    pod: str = ""
    pod_uid: str = ""
    address: str = ""
    """Of the pod."""
    selector: str = REPLICAS
    """The labels of all replicas' pods."""
    tls: Files | None = None
    """Certificates that others make."""
