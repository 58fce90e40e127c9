"""A request in other forms that Go reads the same."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

OURS: Final = frozenset(
    {
        "Pod", "Nodes", "NodeNames", "NodeNameToVictims", "NodeNameToMetaVictims", "Pods", "NumPDBViolations", "UID",
        "PodName", "PodNamespace", "PodUID", "Node",
    }
)  # fmt: skip
"""Keys of the extender's own messages; those inside of pods and nodes have one case."""
_CASES: Final[tuple[Callable[[str], str], ...]] = (
    str.lower,
    str.upper,
    str.swapcase,
    lambda key: key[0].lower() + key[1:],
)


def forms(sent: bytes) -> Iterator[bytes]:
    """As it was sent; with spaces; in another order; with keys in other cases."""
    request = json.loads(sent)
    yield sent
    yield json.dumps(request, indent=1).encode()
    yield json.dumps(dict(reversed(request.items()))).encode()
    for change in _CASES:
        yield json.dumps(_keyed(change, request)).encode()


def _keyed(change: Callable[[str], str], value: Any) -> Any:
    if isinstance(value, list):
        return [_keyed(change, one) for one in value]
    if isinstance(value, dict):
        return {change(key) if key in OURS else key: _keyed(change, one) for key, one in value.items()}
    return value
