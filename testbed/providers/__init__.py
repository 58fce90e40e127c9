"""The ways to have a cluster: processes of our own, kind, or one that exists."""

from testbed import machine
from testbed.errors import ClusterError
from testbed.phases import say
from testbed.providers import folder
from testbed.providers.existing import Existing
from testbed.providers.kind import Kind
from testbed.providers.local import Local
from testbed.providers.protocol import Part, Provider

_CLASSES: dict[str, type[Local] | type[Kind] | type[Existing]] = {one.NAME: one for one in (Local, Kind, Existing)}
NAMES = tuple(_CLASSES)

__all__ = ("NAMES", "Existing", "Kind", "Local", "Part", "Provider", "choose")


def choose(
    name: str,
    provider: str | None = None,
    *,
    kubernetes: str | None = None,
    node: bool | None = None,
    gates: bool = False,
) -> Provider:
    """The provider of that cluster: the one asked for, the one that raised it, or the best for this machine."""
    if provider:
        folder.check(name, provider)
    chosen = provider or folder.raised_by(name)
    if not chosen:
        why = machine.docker_obstacle()
        chosen = Local.NAME if why else Kind.NAME
        say(f"provider: {chosen}{f', which needs no Docker (kind would: {why})' if why else ''}")
    if chosen not in _CLASSES:
        raise ClusterError(f"there is no provider {chosen}", cure=f"choose one of: {', '.join(NAMES)}")
    if gates:
        if chosen != Local.NAME:
            raise ClusterError(f"{chosen} has no gates", cure=f"add --provider {Local.NAME}")
        return Local(name, kubernetes=kubernetes, node=node, gates=True)
    return _CLASSES[chosen](name, kubernetes=kubernetes, node=node)
