"""Names and counts that tests of a leader in virtual time share."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

SOON_S = 5.0
STATUS = "patch schedulerextenderpolicies/status p"


@contextmanager
def counted(what: type, method: str) -> Iterator[list[tuple[object, ...]]]:
    """Arguments of each call of a method."""
    calls = list[tuple[object, ...]]()
    real = getattr(what, method)

    async def count(self: object, *args: object) -> object:
        calls.append(args)
        return await real(self, *args)

    with patch.object(what, method, count):
        yield calls
