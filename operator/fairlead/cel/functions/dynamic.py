"""Calls whose operands are of type dyn: which overload it is, only their values say.

The engine looks for an overload by the name of the function, whatever the checker has listed: it knows one more that no
checker offers, from bool to int.
"""

from collections.abc import Iterable
from typing import Any, Final

from fairlead.cel.errors import CelError, Kind
from fairlead.cel.functions import conversions, own
from fairlead.cel.functions.equality import type_of
from fairlead.cel.functions.quantity import Quantity
from fairlead.cel.functions.table import FUNCTIONS, Function
from fairlead.cel.values import Duration, Nothing, Some, Timestamp, UInt

_LETTERS: Final[dict[type, str]] = {
    int: "i",
    UInt: "u",
    float: "d",
    str: "s",
    bytes: "y",
    bool: "b",
    Timestamp: "t",
    Duration: "r",
    list: "l",
    tuple: "l",
    dict: "m",
    Some: "o",
    Nothing: "o",
    Quantity: "q",
}
_ANY: Final = "*"
_WORDS: Final = {
    "bool": "b",
    "bytes": "y",
    "double": "d",
    "duration": "r",
    "int": "i",
    "int64": "i",
    "list": "l",
    "map": "m",
    "string": "s",
    "timestamp": "t",
    "uint": "u",
    "uint64": "u",
}
_OWN: Final = {own.INT: "i", own.DOUBLE: "d", own.STRING: "s", own.QUANTITY: "q"}
# Operands by a letter each, where the id does not show them in words.
_IRREGULAR: Final = {
    "add_bytes": "yy",
    "add_list": "ll",
    "add_string": "ss",
    "base64_decode_string": "s",
    "base64_encode_bytes": "y",
    "contains_string": "ss",
    "ends_with_string": "ss",
    "math_bitNot_int_int": "i",
    "math_bitNot_uint_uint": "u",
    "list_join_string": "ls",
    "list_range": "i",
    "list_flatten_int": "li",
    "list_slice": "lii",
    "list_sets_contains_list": "ll",
    "list_sets_equivalent_list": "ll",
    "list_sets_intersects_list": "ll",
    "list_optindex_optional_int": "li",
    "map_optindex_optional_value": "m*",
    "optional_list_optindex_optional_int": "oi",
    "optional_map_optindex_optional_value": "o*",
    "optional_hasValue": "o",
    "optional_none": "",
    "optional_of": "*",
    "optional_ofNonZeroValue": "*",
    "optional_or_optional": "*o",
    "optional_orValue_value": "**",
    "optional_value": "o",
    "select_optional_field": "*s",
    "starts_with_string": "ss",
    "string_char_at_int": "si",
    "string_index_of_string": "ss",
    "string_index_of_string_int": "ssi",
    "string_last_index_of_string": "ss",
    "string_last_index_of_string_int": "ssi",
    "string_replace_string_string": "sss",
    "string_replace_string_string_int": "sssi",
    "string_split_string": "ss",
    "string_split_string_int": "ssi",
    "string_substring_int": "si",
    "string_substring_int_int": "sii",
    "strings_quote": "s",
    "to_dyn": "*",
    "type": "*",
    **{declaration.overload_id: "".join(_OWN[p] for p in declaration.parameters) for declaration in own.DECLARATIONS},
}


def dispatch(name: str, overload_ids: Iterable[str]) -> Function:
    """Make a function that chooses among overloads by the types of its operands, or raises that none takes them."""
    candidates = [(parameters_of(overload_id), FUNCTIONS[overload_id]) for overload_id in overload_ids]
    if name == "int":
        candidates.append(("b", conversions.bool_to_int64))
    chosen: dict[tuple[type, ...], Function | None] = {}

    def call(*operands: Any) -> Any:
        classes = tuple(map(type, operands))
        function = chosen.get(classes)
        if function is None:
            if (function := _choose(candidates, classes)) is None:
                types = ", ".join(map(type_of, operands))
                raise CelError(Kind.NO_OVERLOAD, f"No matching overloads found : {name}({types})")
            chosen[classes] = function
        return function(*operands)

    return call


def parameters_of(overload_id: str) -> str:
    """Get a letter for each operand, as in `_LETTERS`, or `*`."""
    if (irregular := _IRREGULAR.get(overload_id)) is not None:
        return irregular
    words = overload_id.removeprefix("math_").replace("@", "").split("_")
    if overload_id.startswith("math_"):
        words = words[1:]
        return "l" if words[0] == "list" else "".join(_WORDS[word] for word in words)
    if overload_id.startswith(("add_", "subtract_")):
        return "".join(_WORDS[word] for word in words[1:])
    if overload_id.endswith("_sortByAssociatedKeys"):
        return "ll"
    return _WORDS[words[1] if words[0] == "size" else words[0]]


def _choose(candidates: Iterable[tuple[str, Function]], classes: tuple[type, ...]) -> Function | None:
    letters = [_LETTERS.get(kind, _ANY) for kind in classes]
    for parameters, function in candidates:
        if len(parameters) == len(letters) and all(
            wanted in {_ANY, letter} for wanted, letter in zip(parameters, letters, strict=True)
        ):
            return function
    return None
