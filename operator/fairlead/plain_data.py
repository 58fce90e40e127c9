"""YAML and JSON from outside, read as kubectl reads it: YAML 1.1, but `1:30` and dates are texts, `1e3` is a number."""

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

DEPTH_MAX: Final = 1000
"""Greatest nesting: the parser recurses, and more would overflow the stack."""
MERGED_MAX: Final = 100_000
"""Greatest number of keys that `<<` copies in a file: maps that merge each other twice would grow without end."""
_NUMBER_MAX: Final = 400  # characters; reading an int takes quadratic time
_SHOWN_MAX: Final = 60
_MERGE: Final = "tag:yaml.org,2002:merge"
_TEXT: Final = "tag:yaml.org,2002:str"
_PLAIN: Final = "!plain"
"""Tag of scalars that are read by `resolve_scalar`."""
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_NUMBERS: Final = "+-.0123456789"
"""Characters with which a number begins."""
_INTEGER: Final = re.compile(r"[-+]?(0x[0-9a-fA-F]+|0b[01]+|0o?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_IN_A_ROW: Final = re.compile(rb"(?:[-?][ \t]++){2,}+")


def resolve_scalar(text: str) -> object:
    """Return the value of a plain scalar; more digits than any number has are infinity."""
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in _NUMBERS:
        return text
    plain = text.replace("_", "")
    if _INTEGER.fullmatch(plain):
        if len(plain) > _NUMBER_MAX:
            return float("-inf") if plain[0] == "-" else float("inf")
        sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.removeprefix("+"))
        is_octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
        return sign * (int(digits, 8) if is_octal else int(digits, 0))
    return float(text) if _FLOAT.fullmatch(text) else text


def key_text(text: str) -> str | None:
    """Return a plain scalar as a key, which is always a text, as for kubectl; None for null."""
    match resolve_scalar(text):
        case None:
            return None
        case bool() as truth:
            return str(truth).lower()
        case int() as number:
            return str(number)
    return text


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML loader that reads scalars and keys as kubectl does, refuses keys that are written twice, bounds merges."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._merged = 0

    def flatten_mapping(self, node: Any) -> None:
        """Merge what `<<` names into a map, after its own keys were checked: merged ones may be in both."""
        if hasattr(node, "is_flat"):
            return
        node.is_flat = True
        _refuse_twice(node)
        for key, _ in node.value:
            is_plain = isinstance(key, yaml.ScalarNode) and key.tag == _PLAIN and len(key.value) <= _NUMBER_MAX
            if is_plain and (text := key_text(key.value)) is not None:
                key.tag, key.value = _TEXT, text
        merges = [entry for entry in node.value if entry[0].tag == _MERGE]
        if not merges:
            return
        own = node.value = [entry for entry in node.value if entry[0].tag != _MERGE]
        merged = list[Any]()
        for key, value in merges:
            maps = [value] if isinstance(value, yaml.MappingNode) else value.value
            if isinstance(value, yaml.ScalarNode) or not all(isinstance(one, yaml.MappingNode) for one in maps):
                raise _error("<< takes a map, or a list of maps: name one as *anchor", value)
            for one in reversed(maps):  # the first of a list has precedence
                self.flatten_mapping(one)
                self._merged += len(one.value)
                if self._merged > MERGED_MAX:
                    raise _error(f"<< copies more than {MERGED_MAX:,} keys in this file: write them out", key)
                merged += one.value
        node.value = merged + own


def _refuse_twice(node: Any) -> None:
    seen = dict[tuple[type, object], Any]()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
            continue
        value = resolve_scalar(key.value) if key.tag == _PLAIN else key.value
        if (first := seen.setdefault((type(value), value), key)) is not key:
            line = first.start_mark.line + 1
            raise _error(f"{key.value[:_SHOWN_MAX]!r} is already set in line {line}: remove one of them", key)


def _scalar(loader: Any, node: Any) -> object:
    found, wanted = resolve_scalar(loader.construct_scalar(node)), _TAGGED[node.tag]
    if not isinstance(found, wanted) or (isinstance(found, bool) and int in wanted):
        raise _error(f"{node.value[:_SHOWN_MAX]!r} does not match its tag: remove the tag", node)
    if not isinstance(found, str) and len(node.value) > _NUMBER_MAX:
        raise _error("this is not a readable number", node)
    return found


def _error(text: str, node: Any) -> Exception:
    error: Exception = yaml.constructor.ConstructorError(None, None, text, node.start_mark)
    return error


def explain_error(error: Exception) -> str:
    """Return what is wrong with a text and where, in one line."""
    if isinstance(error, yaml.constructor.ConstructorError) and error.problem_mark is not None and not error.context:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())


_TAGGED: Final[dict[str, tuple[type, ...]]] = {
    _PLAIN: (object,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:null": (type(None),),
}
Loader.yaml_implicit_resolvers = {}
Loader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])
Loader.add_implicit_resolver(_PLAIN, re.compile(""), [*{word[:1] for word in _WORDS}, *_NUMBERS])
Loader.yaml_constructors = {
    None: yaml.SafeLoader.construct_undefined,
    "tag:yaml.org,2002:map": yaml.SafeLoader.construct_yaml_map,
    "tag:yaml.org,2002:seq": yaml.SafeLoader.construct_yaml_seq,
    _TEXT: yaml.SafeLoader.construct_yaml_str,
    _MERGE: yaml.SafeLoader.construct_yaml_str,
    "tag:yaml.org,2002:timestamp": yaml.SafeLoader.construct_yaml_str,
    **dict.fromkeys(_TAGGED, _scalar),
}


def is_deep(data: bytes) -> bool:
    """Return whether brackets, or block indicators in one line, are nested too deeply; indentation cannot be."""
    depth = 0
    for found in _BRACKET.finditer(data):
        depth += 1 if found[0] in b"[{" else -1
        if depth > DEPTH_MAX:
            return True
    return any(len(found[0].translate(None, b" \t")) >= DEPTH_MAX for found in _IN_A_ROW.finditer(data))


def expanded_size(value: object) -> float:
    """Return the number of values with aliases expanded; infinity for a value that contains itself."""
    return _size(value, {})


def _size(value: object, known: dict[int, float]) -> float:
    if not isinstance(value, Mapping | list):
        return 1
    if id(value) not in known:
        known[id(value)] = float("inf")
        items = value.values() if isinstance(value, Mapping) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in items)
    return known[id(value)]


def document(data: bytes, values_max: int) -> Any:
    """Return the document of a file. Raises ValueError, which says what is wrong and in which line."""
    if is_deep(data):
        raise ValueError(f"it is nested more than {DEPTH_MAX:,} levels deep")
    try:
        found = yaml.load(data, Loader)  # noqa: S506 - it makes plain data only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(explain_error(error)) from None
    if expanded_size(found) > values_max:
        raise ValueError(f"it has more than {values_max:,} values with aliases expanded: write fewer")
    return found


def without_nulls(value: object) -> object:
    """Return the value without null fields: in files written by hand or by old clients they mean absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
