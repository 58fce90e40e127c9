"""When a policy that is deleted may go: when nobody applies it any more; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from fairlead.api.names import GROUP

FINALIZER: Final = f"{GROUP}/finalizer"
SKIP: Final = f"{GROUP}/skip-finalizer"
DEADLINE_S: Final = 30.0


def finalizers(policy: Mapping[str, Any], serves: Iterable[bool], now: datetime) -> list[str] | None:
    """What they are to be; None: as they are. `serves`: whether it is applied by each replica that answers."""
    metadata = policy["metadata"]
    before = metadata.get("finalizers", [])
    deleted = metadata.get("deletionTimestamp")
    if deleted is None:
        skipped = metadata.get("annotations", {}).get(SKIP) == "true"
        wanted = [*before] if FINALIZER in before or skipped else [*before, FINALIZER]
    elif _is_over(deleted, now) or metadata.get("annotations", {}).get(SKIP) == "true" or not any(serves):
        wanted = [one for one in before if one != FINALIZER]
    else:
        wanted = [*before]
    return None if wanted == before else wanted


def _is_over(deleted: str, now: datetime) -> bool:
    return (now - datetime.fromisoformat(deleted)).total_seconds() >= DEADLINE_S
