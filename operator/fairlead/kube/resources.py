"""References to what a request is about: a kind of object, its objects in a namespace, one object, or a subresource."""

from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from fairlead.api import names

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resource:
    """Kind of object, as the API server serves it."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Reference to objects; without a namespace, to all namespaces or to cluster-scoped objects."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """Return the URL path."""
        kind = self.resource
        parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts += [part for part in (kind.plural, self.name, self.subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)

    @property
    def what(self) -> str:
        """Return the resource as an RBAC rule names it."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    def named(self, namespace: str, name: str, subresource: str = "") -> "ObjectRef":
        """Return a reference to one object of this kind."""
        return replace(self, namespace=namespace, name=name, subresource=subresource)

    def __str__(self) -> str:
        """Return a text such as `pods/binding default/web-1` or `leases.coordination.k8s.io fairlead-system/leader`."""
        group = f".{self.resource.group}" if self.resource.group else ""
        kind = f"{self.resource.plural}{group}" + (f"/{self.subresource}" if self.subresource else "")
        which = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{kind} {which}" if which else kind


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Metadata of a list."""

    resource_version: str = ""
    more: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Page of a list; the decoder determines the type of its items."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None  # Go writes null for an empty list


decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
"""Decoder of any object."""
PODS: Final = ObjectRef(Resource("", "v1", "pods"))
NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of pods that still run or will."""
NAMESPACES: Final = ObjectRef(Resource("", "v1", "namespaces"))
NODES: Final = ObjectRef(Resource("", "v1", "nodes"))
NODE_METRICS: Final = ObjectRef(Resource("metrics.k8s.io", "v1beta1", "nodes"))
"""The usage of nodes, which metrics-server or another program serves."""
POLICIES: Final = ObjectRef(Resource(names.GROUP, names.VERSION, names.PLURAL))
PUBLISHED_AFFINITIES: Final = ObjectRef(Resource(names.GROUP, names.VERSION, names.PUBLISHED_PLURAL))


class _Version(ObjectRef):
    """The API server's version endpoint, which every client may read."""

    @property
    def path(self) -> str:
        """Return the URL path."""
        return "/version"


class _OpenApi(ObjectRef):
    """The description of an API group version, which every client may read."""

    @property
    def path(self) -> str:
        """Return the URL path."""
        return f"/openapi/v3/apis/{self.resource.group}/{self.resource.version}"


class _Discovery(ObjectRef):
    """The kinds of an API group version, which every client may read."""

    @property
    def path(self) -> str:
        """Return the URL path."""
        return f"/apis/{self.resource.group}/{self.resource.version}"


OPENAPI: Final = _OpenApi(Resource(names.GROUP, names.VERSION, "openapi"))
VERSION: Final = _Version(Resource("", "", "version"))
POD_GROUPS_DISCOVERY: Final = _Discovery(Resource("scheduling.k8s.io", "v1beta1", "podgroups"))
