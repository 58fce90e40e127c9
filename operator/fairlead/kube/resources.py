"""What a request is about: a kind of object, one of its namespaces, one object, a part of that."""

from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar
from urllib.parse import quote

import msgspec

from fairlead.api import names

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object as the API server serves it."""

    group: str
    version: str
    plural: str


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """What a request is about; without a namespace it is about all of them, or about what has none."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """Below the API server's address."""
        kind = self.resource
        parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
        if self.namespace:
            parts += ["namespaces", self.namespace]
        parts += [part for part in (kind.plural, self.name, self.subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)

    @property
    def what(self) -> str:
        """The resource as an RBAC rule names it."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural

    def named(self, namespace: str, name: str, subresource: str = "") -> "ObjectRef":
        """One object of this kind."""
        return replace(self, namespace=namespace, name=name, subresource=subresource)

    def __str__(self) -> str:
        """`pods/binding default/web-1`, `leases.coordination.k8s.io fairlead-system/leader`."""
        group = f".{self.resource.group}" if self.resource.group else ""
        kind = f"{self.resource.plural}{group}" + (f"/{self.subresource}" if self.subresource else "")
        which = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{kind} {which}" if which else kind


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    """What a list says of itself."""

    resource_version: str = ""
    more: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list; its items are decoded as what the caller says."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None  # a list that Go has left empty is null


PODS: Final = ObjectRef(Resource("", "v1", "pods"))
NAMESPACES: Final = ObjectRef(Resource("", "v1", "namespaces"))
NODES: Final = ObjectRef(Resource("", "v1", "nodes"))
POLICIES: Final = ObjectRef(Resource(names.GROUP, names.VERSION, names.PLURAL))


class _Version(ObjectRef):
    """What the API server says of itself; it is no resource, and everybody may read it."""

    @property
    def path(self) -> str:
        """Where that is."""
        return "/version"


VERSION: Final = _Version(Resource("", "", "version"))
