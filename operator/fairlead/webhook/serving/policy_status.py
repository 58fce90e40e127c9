"""Status of a policy on a replica: the generation that serves, and why the newest does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Obj = Mapping[str, Any]
Reason = Literal["Compiled", "LastGoodServes", "NothingServes", "InternalError"]


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """Status of one policy."""

    name: str
    generation: str
    """The generation that was seen last; empty for one from a file that does not compile."""
    serving: str | None
    """The generation that serves; None where none has ever compiled."""
    reason: Reason
    message: str = ""
    uid: str = ""

    def __str__(self) -> str:
        if self.reason == "Compiled":
            return f"{self.name}: generation {self.serving} serves"
        what = f"generation {self.serving} serves" if self.serving else "its pods are treated by its failurePolicy"
        written = f"generation {self.generation}" if self.generation else "what its file holds"
        return f"{self.name}: {written} does not compile, {what}: {self.message}"


@dataclass(frozen=True, slots=True)
class CompiledGeneration:
    """A generation that compiled, to be kept for the time after a restart."""

    name: str
    uid: str
    generation: str
    obj: Obj
