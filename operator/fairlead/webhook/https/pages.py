"""Pages of the port that schedulers call, which only the holder of one certificate may read."""

from collections.abc import Callable

import msgspec


def pages_for(reader: str, find: Callable[[str], object | None]) -> Callable[[str, str], bytes | None]:
    """Return pages by what follows the first part of their path; None is for others than the reader.

    They raise LookupError for what is not there.
    """

    def page(caller: str, path: str) -> bytes | None:
        if caller != reader:
            return None
        if (found := find(path.split("/", 2)[2])) is None:
            raise LookupError(path)
        return msgspec.json.encode(found)

    return page
