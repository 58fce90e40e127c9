"""Calls to the API server for binds: outcomes are values, because each of them decides what comes next."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from fairlead.grants.commit import LedgerFacts, R_contra
from fairlead.grants.entry_state import Gone, PodState
from fairlead.grants.ledger import Ledger

TimeLeft: TypeAlias = Callable[[], float]
"""Returns the seconds that are left for a request."""


class Posted(Struct, frozen=True):
    """Outcome of a Binding that was carried out."""


class Missing(Struct, frozen=True):
    """Outcome 404."""


class Conflicting(Struct, frozen=True):
    """Outcome 409: the version or UID that was named is another one now, or the object exists, or the pod is bound."""

    why: str = ""


class Uncertain(Struct, frozen=True):
    """Outcome that is not known: the request may have been carried out, or may be later."""

    why: str


class Failed(Struct, frozen=True):
    """Outcome that the request was refused, and will never be carried out; of a read: that it tells nothing."""

    why: str


WriteFailure: TypeAlias = Missing | Conflicting | Uncertain | Failed


class BindingCalls(Protocol):
    """Calls for pods and their Bindings. None of them raises, and none is repeated inside."""

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        """Read a pod, with all writes before the call in it."""

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        """Post a Binding."""


class LedgerCalls(Protocol):
    """Calls for ledgers and what their entries need to know. None of them raises, and none is repeated inside."""

    async def read_pod(self, pod: str, timeout_s: float) -> PodState | Gone | Failed:
        """Read what is under this name, with all writes before the call in it."""

    async def read_ledger(self, subject: str, timeout_s: float) -> Ledger | Missing | Failed:
        """Read a ledger, with all writes before the call in it."""

    async def list_pods(self, subject: str, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the placed pods that entries may be of, with all writes before the call in it.

        For a node those on it, for a group those of its namespace.
        """

    async def list_unplaced(self, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the pods that are on no node, with all writes before the call in it."""

    async def create_ledger(self, body: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Create a ledger."""

    async def patch_ledger(self, subject: str, patch: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Apply a merge patch to a ledger."""


class PodViews(Protocol):
    """Views of pods as watches have shown them to this process, of any age."""

    def pod(self, pod: str) -> PodState | None:
        """Return what is shown under this name."""

    def seen(self, uid: str, pod: str) -> PodState | Gone | None:
        """Return what is shown of a UID, that its deletion was heard, or else what is shown under the name.

        The name is empty where it is not known. A deletion is heard by its event, or by a list that no longer has the
        pod and is newer than what was seen of it. That a pod was never seen is None.
        """


class Views(PodViews, Protocol[R_contra]):
    """Views of ledgers of one kind, and of what they are about."""

    def ledger(self, subject: str) -> Ledger | None:
        """Return a version of the ledger of a subject; None if no watch has shown one."""

    def facts(self, subject: str) -> LedgerFacts[R_contra]:
        """Return what is known of a subject: of a node its devices, and the pods on it."""
