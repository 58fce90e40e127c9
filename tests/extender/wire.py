"""Request bodies of real schedulers, kept byte for byte: a few of each verb and version.

`scripts/record` makes them again. `extender.shapes` says what they are, and what a scheduler has just sent must be too.
"""

import json
from pathlib import Path

from testbed import cache

FOLDER = Path(__file__).parents[1] / "data" / "wire"


def read(version: str, sample: str) -> bytes:
    """The body as it was sent."""
    return _file(version, sample).read_bytes()


def write(version: str, sample: str, body: bytes) -> None:
    """Keep a body."""
    cache.write(_file(version, sample), body)


def outline(body: bytes) -> object:
    """The body with only the types of its values and its lists sorted: the same for any two recordings of a version."""
    return _outline(json.loads(body))


def _outline(value: object) -> object:
    match value:
        case dict():
            return {key: _outline(inner) for key, inner in value.items()}
        case list():
            return sorted((_outline(inner) for inner in value), key=json.dumps)
        case _:
            return type(value).__name__


def _file(version: str, sample: str) -> Path:
    return FOLDER / version / f"{sample}.json"
