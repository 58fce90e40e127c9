"""What a rule may know of a pod, of a node and of the pods on it; whoever holds the objects implements this.

Times are whole nanoseconds since 1970, so that comparing them is exact. Facts never raise: what is not there is None,
an empty collection or `Unknown`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

Stamped = Literal["labels", "annotations"]
"""Where the API keeps no time of change: `NodeFacts.since` knows it for these."""


class Unknown(Struct, frozen=True):
    """Nothing can be decided, and why: not a verdict but the lack of one. The rule's `onError` says what happens."""

    what: str
    """Subject of the sentence, such as `data load`..."""
    why: str
    """...and its predicate, such as `is stale`. Both are the same for every node."""
    until: int | None = None
    """The earliest moment at which this may change though no fact does."""

    def __str__(self) -> str:
        return f"{self.what} {self.why}"


class Condition(Struct, frozen=True):
    """A condition of a node."""

    status: str
    """True, False or Unknown; whatever else somebody wrote is handed on as it stands."""
    since: int | None
    """The transition time, where it is given and can be read."""


class Controller(NamedTuple):
    """The owner of a pod that controls it."""

    kind: str
    name: str


class PodFacts(Protocol):
    """The pod to be placed."""

    @property
    def namespace(self) -> str:
        """Never empty."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""


class PodOnNode(Protocol):
    """A pod that is bound to a node, also one that is being deleted. Who lists pods may leave out those that ended."""

    @property
    def namespace(self) -> str:
        """Never empty."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its UID."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def controller(self) -> Controller | None:
        """The owner that controls it."""

    @property
    def phase(self) -> str:
        """Pending, Running, Succeeded, Failed or Unknown; empty while nobody has said."""

    @property
    def ready(self) -> bool:
        """Whether its condition Ready is True."""

    @property
    def ready_since(self) -> int | None:
        """The transition time of its condition Ready, where it is given and can be read."""

    @property
    def deleting(self) -> bool:
        """Whether it has a deletion time."""


class NodeFacts(Protocol):
    """A node at one moment."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""

    @property
    def created(self) -> int | None:
        """When the object was made."""

    @property
    def pods(self) -> Sequence[PodOnNode]:
        """The pods on it, in no particular order."""

    def controlled(self, namespace: str, controller: Controller) -> Sequence[PodOnNode]:
        """Those of the pods that this controller owns: one look-up, however many pods there are."""

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type."""

    def since(self, where: Stamped, key: str, value: str | None) -> int | None:
        """When the key got this value, or with None when it came, as this process saw it.

        What was so when the process first saw the node counts from the creation of the node, so that a restart changes
        nothing. None when it is not so now, or when that moment is not known.
        """

    def data(self, name: str) -> float | Unknown:
        """The value of an entry of the policy's `data`: finite, or why there is none.

        That it grows stale is a change of this fact; no rule has to watch its age.
        """
