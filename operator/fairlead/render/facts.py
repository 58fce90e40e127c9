"""What is known of the cluster when a scheduler is rendered."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of it."""

    namespace: str
    """Where the operator is, and the schedulers that it manages."""
    url: str
    """Where schedulers call it, such as https://fairlead.fairlead-system.svc:8443."""
    ca_bundle: str
    """The authorities of its certificate, as PEM. A scheduler reads them once, when it starts."""
    server_versions: tuple[str, ...]
    """What each API server calls its `gitVersion`."""
    nodes: int | None
    """None while they are being listed: then their number decides nothing."""
    asked_all: bool | None = None
    """What `sampling.asked_all` says of the configuration that is there."""
