"""Order of resourceVersions."""

import re
from typing import Final

_NUMBER: Final = re.compile("[1-9][0-9]*")


def is_newer(version: str, than: str) -> bool | None:
    """Return whether a resourceVersion is newer than another one of the same kind; None if that cannot be told.

    Since Kubernetes 1.35 they are promised to be numbers that may be compared (KEP-5504). Before, they are, too:
    revisions of etcd.
    """
    if version == than:
        return False
    if _NUMBER.fullmatch(version) and _NUMBER.fullmatch(than):
        return (len(version), version) > (len(than), than)
    return None
