"""Shares of devices that a policy grants when it binds a pod: which resources, on which devices, chosen how."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from fairlead.api.params import DeviceShareName, FieldCheck, Listed, Params, exactly_one_of
from fairlead.api.values import Expression, Name, QualifiedKey, Shape

ExtendedResource = Annotated[
    str,
    Field(min_length=1, max_length=317),
    Shape(
        r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[^\W_]([-\w.]{0,61}[^\W_])?",
        "write an extended resource with its domain, such as example.org/gpu-mem",
    ),
]
"""Name of a resource that a device plugin offers."""
ChooseDevices = Literal["BestFit", "WorstFit", "Lowest"]
SplitRequest = Literal["Even", "Each"]
RecordDevices = Literal["Fairlead", "Gpushare"]

RESERVED_ANNOTATIONS: Final = ("fairlead.dev/devices", "fairlead.dev/gang", "ALIYUN_COM_GPU_MEM_")
"""Beginnings of the annotations that only grants write."""


class SharedResource(Params):
    """A resource of which pods get a share of a device."""

    list_keys: ClassVar[tuple[str, ...]] = ("resource",)

    resource: ExtendedResource
    """Resource that pods request, such as aliyun.com/gpu-mem."""


class DeviceLayout(Params):
    """The devices of a node."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    count: ExtendedResource | None = None
    """Resource whose capacity is the number of devices, such as aliyun.com/gpu-count. They are equal and have the ids
    0, 1 and so on."""
    annotation: QualifiedKey | None = None
    """Annotation of the node that lists its devices, such as
    [{"id":"0","capacity":{"example.org/gpu-mem":24576},"healthy":true}]."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require one source."""
        return (exactly_one_of("count", "annotation"),)


class UnhealthyConfigMap(Params):
    """A ConfigMap for each node, which a device plugin writes."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    namespace: Name
    """Namespace of the ConfigMaps."""
    prefix: Annotated[
        str,
        Field(min_length=1, max_length=63),
        Shape("[a-z0-9][-a-z0-9.]*", "write the beginning of a name, such as unhealthy-gpu-"),
    ]
    """Beginning of their names; the name of the node follows."""
    key: Annotated[
        str,
        Field(min_length=1, max_length=253),
        Shape("[-._a-zA-Z0-9]+", "write a key of a ConfigMap, such as gpus: letters, digits, '-', '_' and '.'"),
    ]
    """Key with the ids, comma-separated."""


class UnhealthyDevices(Params):
    """The devices of a node that must not be used.

    Their ids are comma-separated; nothing means that all are well. With an id of no device, no share is granted there.
    """

    list_keys: ClassVar[tuple[str, ...]] = ()

    annotation: QualifiedKey | None = None
    """Annotation of the node with the ids."""
    config_map: UnhealthyConfigMap | None = None
    """ConfigMap with the ids, one for each node."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require one source."""
        return (exactly_one_of("annotation", "configMap"),)


class DeviceShare(Params):
    """Shares of single devices, where a node's total does not say whether one device has room.

    A filter named binding/ and the name here rejects nodes on which no device has room. Pods that request none of the
    resources are not affected.
    """

    name: DeviceShareName
    """Name of the entry, which rules use in deviceShare."""
    shares: Annotated[Listed[SharedResource], Field(min_length=1, max_length=4)]
    """Resources that are shared. The first one ranks devices."""
    layout: DeviceLayout
    """The devices of a node."""
    cards: Expression | None = None
    """CEL that gives the number of devices for a pod, from 1 to 16. It can read pod, namespaceObject, and variables
    that read only these. 1 when absent."""
    split: SplitRequest = "Even"
    """Even divides the request over the devices, rounded up. Each needs the whole request on every device. Even when
    absent."""
    unhealthy: UnhealthyDevices | None = None
    """The devices of a node that must not be used. Absent: only a layout by annotation tells. A layout by count then
    cannot be decided while a node has less allocatable than capacity."""
    choose: ChooseDevices = "BestFit"
    """BestFit takes the device with the least room that is enough, WorstFit the one with the most, Lowest the one with
    the lowest id. BestFit when absent."""
    record: RecordDevices = "Fairlead"
    """Fairlead writes the ids of the devices to the pod's annotation fairlead.dev/devices.NAME, with the name of the
    entry, for a container to read. Gpushare writes the annotations that the gpushare device plugin reads. Fairlead when
    absent."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of the shared resources."""
        return tuple(one.resource for one in self.shares)

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Allow for Gpushare only what its device plugin can read, and one meaning for each source."""
        other = "!has(self.record) || self.record != 'Gpushare'"
        return (
            FieldCheck(
                rule=f"{other} || !has(self.cards)",
                holds=lambda self: self.record != "Gpushare" or self.cards is None,
                message="Gpushare gives a pod one device: leave cards out, or record Fairlead",
                field="cards",
            ),
            FieldCheck(
                rule=f"{other} || self.shares.size() == 1",
                holds=lambda self: self.record != "Gpushare" or len(self.shares) == 1,
                message="Gpushare has one share: list one resource, or record Fairlead",
                field="shares",
            ),
            FieldCheck(
                rule=f"{other} || has(self.layout.count)",
                holds=lambda self: self.record != "Gpushare" or self.layout.count is not None,
                message="Gpushare has equal devices: give layout.count, or record Fairlead",
                field="layout",
            ),
            FieldCheck(
                rule="!has(self.layout.count) || self.shares.all(one, one.resource != self.layout.count)",
                holds=lambda self: self.layout.count not in self.resources,
                message="the number of devices is no share of one: name the resource that pods share",
                field="layout",
            ),
            FieldCheck(
                rule="!has(self.unhealthy) || !has(self.unhealthy.annotation) || !has(self.layout.annotation)"
                " || self.unhealthy.annotation != self.layout.annotation",
                holds=lambda self: (
                    self.unhealthy is None
                    or self.unhealthy.annotation is None
                    or self.unhealthy.annotation != self.layout.annotation
                ),
                message="the layout tells by healthy which devices are well: leave unhealthy out",
                field="unhealthy",
            ),
            FieldCheck(
                rule="self.name != 'v'",
                holds=lambda self: self.name != "v",
                message="v is the version in the annotation fairlead.dev/devices: choose another name",
                field="name",
            ),
        )
