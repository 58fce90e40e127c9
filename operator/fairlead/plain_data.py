"""YAML and JSON from outside, read as the API server would read it."""

import re
from typing import Any, Final

import yaml

DEPTH_MAX: Final = 1000
"""Greatest nesting: the parser recurses, and more would overflow the stack."""
_NUMBER_MAX: Final = 400  # characters; reading an int takes quadratic time
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_IN_A_ROW: Final = re.compile(rb"(?:[-?][ \t]++){2,}+")


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader that reads dates as strings."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# Unlike YAML 1.1, JSON writes 1e-05 without a dot and 1.5e3 without a sign; so does the API server's YAML.
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]++(?:\.[0-9]*+)?[eE][-+]?[0-9]++\Z"), list("-+0123456789")
)


def _number(loader: Any, node: Any) -> object:
    try:
        if len(node.value) <= _NUMBER_MAX:
            is_int = node.tag.endswith(":int")
            return loader.construct_yaml_int(node) if is_int else loader.construct_yaml_float(node)
    except (ValueError, OverflowError):  # a wrong tag, or an endless base-60 number
        pass
    raise yaml.constructor.ConstructorError(None, None, "this is not a readable number", node.start_mark)


for _tag in ("int", "float"):
    Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)


def is_deep(data: bytes) -> bool:
    """Return whether brackets, or block indicators in one line, are nested too deeply; indentation cannot be."""
    depth = 0
    for found in _BRACKET.finditer(data):
        depth += 1 if found[0] in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return any(len(found[0].translate(None, b" \t")) >= DEPTH_MAX for found in _IN_A_ROW.finditer(data))


def without_nulls(value: object) -> object:
    """Return the value without null fields: in files written by hand or by old clients they mean absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
