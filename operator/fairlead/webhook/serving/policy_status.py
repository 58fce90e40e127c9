"""Status of a policy on a replica: the generation that serves, and why the newest does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.api.mode import Mode

Obj = Mapping[str, Any]
Reason = Literal["Compiled", "LastGoodServes", "NothingServes", "NotCompiled", "InternalError"]
_NOT_APPLIED: Final[Mapping[Mode, str]] = {
    "Shadow": "it is in shadow, and no rule of it decides",
    "Disabled": "it is disabled, and no rule of it is applied",
}
_SERVES: Final[Mapping[Mode, str]] = {
    "Enforce": "serves",
    **{mode: f"compiles; {what}" for mode, what in _NOT_APPLIED.items()},
}


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
            what = _SERVES[self.mode]
            return f"{self.name}: generation {self.serving} {what}"
        what = f"generation {self.serving} serves" if self.serving else "its failurePolicy decides for its pods"
        what = _NOT_APPLIED.get(self.mode, what)
        written = f"generation {self.generation}" if self.generation else "the policy in its file"
        return f"{self.name}: {written} does not compile, {what}: {self.message}"


@dataclass(frozen=True, slots=True)
class CompiledGeneration:
    """Generation that compiled, to be stored for after a restart."""

    name: str
    uid: str
    generation: str
    obj: Obj
