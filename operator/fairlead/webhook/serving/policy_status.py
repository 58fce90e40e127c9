"""Status of a policy on a replica: the generation that serves, and why the newest does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fairlead.api.mode import Mode

Obj = Mapping[str, Any]
Reason = Literal["Compiled", "LastGoodServes", "NothingServes", "NotCompiled", "InternalError"]


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
    mode: Mode = "Enforce"

    def __str__(self) -> str:
        if self.reason == "Compiled":
            what = "serves" if self.mode == "Enforce" else "compiles; it is disabled, and no rule of it is applied"
            return f"{self.name}: generation {self.serving} {what}"
        what = f"generation {self.serving} serves" if self.serving else "its failurePolicy decides for its pods"
        if self.mode == "Disabled":
            what = "it is disabled, and no rule of it is applied"
        written = f"generation {self.generation}" if self.generation else "the policy in its file"
        return f"{self.name}: {written} does not compile, {what}: {self.message}"


@dataclass(frozen=True, slots=True)
class CompiledGeneration:
    """Generation that compiled, to be stored for after a restart."""

    name: str
    uid: str
    generation: str
    obj: Obj
