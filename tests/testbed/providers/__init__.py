"""The ways to have a cluster: processes of our own, kind, or one that exists."""

from testbed import cache, machine
from testbed.errors import ClusterError
from testbed.phases import say
from testbed.providers.existing import Existing
from testbed.providers.kind import Kind
from testbed.providers.local import Local
from testbed.providers.protocol import Part, Provider

NAMES = ("local", "kind", "existing")
_CLASSES: dict[str, type[Local] | type[Kind] | type[Existing]] = {"local": Local, "kind": Kind, "existing": Existing}

__all__ = ("NAMES", "Existing", "Kind", "Local", "Part", "Provider", "choose")


def choose(name: str, provider: str | None = None, *, kubernetes: str | None = None, node: bool | None = None) -> Provider:
    """The provider of the cluster of that name: the one asked for, the one that raised it, or the best for this machine."""
    raised_by = cache.clusters() / name / "provider"
    there = raised_by.read_text().strip() if raised_by.exists() else None
    if provider and there and provider != there:
        raise ClusterError(f"the cluster {name} was raised by {there}, not {provider}",
                           cure=f"`python -m testbed --provider {there} down` first, or give this one another --name")
    chosen = provider or there
    if not chosen:
        why = machine.docker_obstacle()
        chosen = "local" if why else "kind"
        say(f"provider: {chosen}{f' ({why})' if why else ''}")
    return _CLASSES[chosen](name, kubernetes=kubernetes, node=node)
