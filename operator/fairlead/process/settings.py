"""Command-line settings of `fairlead serve` and `fairlead operate`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.pki.identities import NAMESPACE, REPLICAS
from fairlead.strategies.contract import Strategy
from fairlead.webhook.decisions.decision_log import LoggedDecisions
from fairlead.webhook.extender.call import Verb
from fairlead.webhook.https.tls import Files
from fairlead.webhook.readers.decisions_server import LOOPBACK

VERBS: Final[frozenset[Verb]] = frozenset(("filter", "prioritize", "preempt", "bind"))
AllowedCallers = Mapping[str, frozenset[Verb]]
"""Verbs that a caller may call, by the scheduler of the pods."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address to listen on."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "Address":
        """Read HOST:PORT, where HOST may be empty or [::]. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ValueError(f"{text!r} is not HOST:PORT")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{text!r} is not HOST:PORT; write an IPv6 address in brackets, as [::1]:{port}")
        return cls(host, int(port))

    @classmethod
    def read_loopback(cls, option: str, text: str) -> "Address":
        """Read 127.0.0.1:PORT, from which only processes beside it and those who may forward the port can read.

        Raises ValueError.
        """
        found = cls.read(text)
        if found.host != LOOPBACK:
            raise ValueError(
                f"{option} {text}: must be {LOOPBACK}:PORT, because no token is asked for there: forward the port"
                " to read it from elsewhere"
            )
        return found

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """Settings of both programs."""

    listen: Address
    probes: Address
    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = NAMESPACE
    timeout_s: float = 1.0
    max_body: int = 10 << 20
    drain_s: float = 5.0
    settings: Path | None = None
    """File with the operator's settings; None for all defaults. `fairlead serve` uses the Prometheus servers only."""
    verify_s: float = 3600.0
    """Seconds between two comparisons of the caches with the API server; 0 for never."""
    custom: Mapping[str, Strategy] = field(default_factory=dict)
    """Custom strategies by name."""
    decisions: Address | None = None
    """Address of /decisions, on 127.0.0.1; None: no decisions are kept."""
    logged_decisions: LoggedDecisions = "None"
    prioritize_ahead: bool = True
    """True: scores are computed after the reply of filter, before they are asked for."""

    @property
    def keeps_decisions(self) -> bool:
        """Report whether decisions are kept to be read, or logged."""
        return self.decisions is not None or self.logged_decisions != "None"

    @property
    def replica(self) -> str:
        """Name of this process to those who read its decisions."""
        return "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ServingSettings):
    """Settings of `fairlead serve`."""

    policies: Path
    tls: Files
    callers: Mapping[str, AllowedCallers | None]
    """Permissions by certificate name; None allows everything for every scheduler that policies name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperateSettings(ServingSettings):
    """Settings of `fairlead operate`."""

    admission: Address | None = None
    """Address of the admission check; None if it is disabled."""
    metrics: Address | None = None
    """Address of /metrics with TLS, for callers whom the API server allows it; None: on the port of the probes."""
    service: str = "fairlead"
    """Name of the Service that schedulers call."""
    pod: str = ""
    pod_uid: str = ""
    address: str = ""
    """IP address of the pod."""
    selector: str = REPLICAS
    """Label selector of all replicas' pods."""
    tls: Files | None = None
    """Files with provided certificates; None for our own authority."""

    @property
    def replica(self) -> str:
        """Name of the pod."""
        return self.pod
