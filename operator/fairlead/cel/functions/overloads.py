"""Overloads of the checker by their ids, with the functions that implement them.

Missing are those in `LEFT_TO_THE_ENGINE`, and those that the lowering inlines: operators on numbers, comparisons,
logic, the conditional, `in`, indexing, selection and comprehensions.
"""

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fairlead.cel.functions import conversions, extensions, lists, maths, sorting, strings, time_text, times
from fairlead.cel.values import equality

Function = Callable[..., Any]

_CONVERSIONS: Final[dict[str, Function]] = {
    "bool_to_bool": conversions.identity,
    "bool_to_string": conversions.bool_to_string,
    "bytes_to_bytes": conversions.identity,
    "bytes_to_string": conversions.bytes_to_string,
    "double_to_double": conversions.identity,
    "double_to_int64": conversions.double_to_int64,
    "double_to_string": conversions.double_to_string,
    "double_to_uint64": conversions.double_to_uint64,
    "duration_to_duration": conversions.identity,
    "duration_to_string": time_text.duration_to_string,
    "int64_to_double": float,
    "int64_to_int64": conversions.identity,
    "int64_to_string": conversions.int64_to_string,
    "int64_to_timestamp": time_text.int64_to_timestamp,
    "int64_to_uint64": conversions.int64_to_uint64,
    "string_to_bool": conversions.string_to_bool,
    "string_to_bytes": conversions.string_to_bytes,
    "string_to_double": conversions.string_to_double,
    "string_to_duration": time_text.string_to_duration,
    "string_to_int64": conversions.string_to_int64,
    "string_to_string": conversions.identity,
    "string_to_timestamp": time_text.string_to_timestamp,
    "string_to_uint64": conversions.string_to_uint64,
    "timestamp_to_int64": time_text.timestamp_to_int64,
    "timestamp_to_string": time_text.timestamp_to_string,
    "timestamp_to_timestamp": conversions.identity,
    "type": equality.type_of,
    "uint64_to_double": float,
    "uint64_to_int64": conversions.uint64_to_int64,
    "uint64_to_string": conversions.int64_to_string,
    "uint64_to_uint64": conversions.identity,
}
_STRINGS: Final[dict[str, Function]] = {
    "add_bytes": operator.add,
    "add_string": operator.add,
    **{f"{kind}_size": len for kind in ("bytes", "list", "map", "string")},
    **{f"size_{kind}": len for kind in ("bytes", "list", "map", "string")},
    **{
        name: getattr(strings, name)
        for name in (
            "contains_string",
            "ends_with_string",
            "list_join",
            "list_join_string",
            "starts_with_string",
            "string_char_at_int",
            "string_index_of_string",
            "string_index_of_string_int",
            "string_last_index_of_string",
            "string_last_index_of_string_int",
            "string_lower_ascii",
            "string_replace_string_string",
            "string_replace_string_string_int",
            "string_reverse",
            "string_split_string",
            "string_split_string_int",
            "string_substring_int",
            "string_substring_int_int",
            "string_trim",
            "string_upper_ascii",
        )
    },
}
_TIMES: Final[dict[str, Function]] = {
    name: getattr(times, name)
    for name in (
        "add_duration_duration",
        "add_duration_timestamp",
        "add_timestamp_duration",
        "duration_to_hours",
        "duration_to_milliseconds",
        "duration_to_minutes",
        "duration_to_seconds",
        "subtract_duration_duration",
        "subtract_timestamp_duration",
        "subtract_timestamp_timestamp",
        "timestamp_to_day_of_month",
        "timestamp_to_day_of_month_1_based",
        "timestamp_to_day_of_week",
        "timestamp_to_day_of_year",
        "timestamp_to_hours",
        "timestamp_to_milliseconds",
        "timestamp_to_minutes",
        "timestamp_to_month",
        "timestamp_to_seconds",
        "timestamp_to_year",
    )
}
_ARITHMETIC: Final = ("int64", "uint64", "double")
_ORDERED: Final = ("bool", "bytes", "double", "duration", "int64", "string", "timestamp", "uint64")
_RELATIONS: Final = ("less", "less_equals", "greater", "greater_equals")
_SINGLE: Final = ("int", "uint", "double")
_MATHS: Final[dict[str, Function]] = {
    **{f"math_@{which}_{kind}": conversions.identity for which in ("max", "min") for kind in _SINGLE},
    **{f"math_@max_{kind}_{kind}": max for kind in _SINGLE},
    **{f"math_@min_{kind}_{kind}": min for kind in _SINGLE},
    **{f"math_@max_list_{kind}": maths.greatest_of_list for kind in _SINGLE},
    **{f"math_@min_list_{kind}": maths.least_of_list for kind in _SINGLE},
    **{f"math_sqrt_{kind}": maths.math_sqrt for kind in _SINGLE},
    "math_abs_double": abs,
    "math_abs_int": maths.math_abs_int,
    "math_abs_uint": conversions.identity,
    "math_ceil_double": maths.math_ceil_double,
    "math_floor_double": maths.math_floor_double,
    "math_isFinite_double": math.isfinite,
    "math_isInf_double": math.isinf,
    "math_isNaN_double": math.isnan,
    "math_round_double": maths.math_round_double,
    "math_sign_double": maths.math_sign_double,
    "math_sign_int": maths.math_sign_int,
    "math_sign_uint": maths.math_sign_uint,
    "math_trunc_double": maths.math_trunc_double,
}

_SORTABLE: Final = (
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "string",
    "uint",
)
_LISTS: Final[dict[str, Function]] = {
    **{f"list_{kind}_sort": sorted for kind in _SORTABLE},
    "list_double_sort": sorting.sort_doubles,
    **{f"list_{kind}_sortByAssociatedKeys": sorting.sort_by_keys for kind in _SORTABLE},
    **{
        name: getattr(lists, name)
        for name in (
            "add_list",
            "list_distinct",
            "list_first",
            "list_flatten",
            "list_last",
            "list_range",
            "list_reverse",
            "list_sets_contains_list",
            "list_sets_equivalent_list",
            "list_sets_intersects_list",
            "list_slice",
        )
    },
}
FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    _CONVERSIONS
    | _STRINGS
    | _TIMES
    | _MATHS
    | _LISTS
    | {declaration.overload_id: declaration.implementation for declaration in extensions.DECLARATIONS}
)

# Constant patterns: the second operand is compiled once, `regex.Pattern(pattern)`, and the method takes the others.
PATTERN_METHODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "matches": "matches",
        "matches_string": "matches",
        "regex_extractAll_string_string": "extract_all",
        "regex_extract_string_string": "extract",
        "regex_replace_string_string_string": "replace",
        "regex_replace_string_string_string_int": "replace_some",
    }
)

_RARE: Final = "a rare function"

# Overloads that only the engine evaluates, with the reason.
OF_TIME_ZONES: Final = "time zones need their database"
LEFT_TO_THE_ENGINE: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("to_dyn", "list_flatten_int"), "a value whose type is known only at run time"),
        **{
            f"math_@{which}_{left}_{right}": "a value whose type is known only at run time"
            for which in ("max", "min")
            for left in _SINGLE
            for right in _SINGLE
            if left != right
        },
        **dict.fromkeys(("base64_decode_string", "base64_encode_bytes", "strings_quote"), _RARE),
        **{f"math_bit{name}_{kind}_{kind}": _RARE for name in ("And", "Or", "Xor", "Not") for kind in ("int", "uint")},
        **{f"math_bitShift{way}_{kind}_int": _RARE for way in ("Left", "Right") for kind in ("int", "uint")},
        "@mapInsert_map_key_value": "the engine declares transformMap but has no such function: it gives up",
        "@mapInsert_map_map": "the engine declares transformMapEntry but has no such function: it gives up",
        "duration_to_int64": "declared, but the engine has no such function: an error",
        "int64_to_duration": "declared, but the engine has no such function: an error",
        "optional_list_index_int": "in an optional, the engine wraps the error of a bad index as if it were a value",
        "optional_map_index_value": "in an optional, the engine wraps the error of a bad key as if it were a value",
        "string_format": _RARE,
        **{
            f"timestamp_to_{field}": OF_TIME_ZONES
            for field in (
                "day_of_month_1_based_with_tz",
                "day_of_month_with_tz",
                "day_of_week_with_tz",
                "day_of_year_with_tz",
                "hours_with_tz",
                "milliseconds_with_tz",
                "minutes_with_tz",
                "month_with_tz",
                "seconds_tz",
                "year_with_tz",
            )
        },
    }
)

# Operators and the parts of macros: inlined by the lowering.
WRITTEN_OUT: Final = frozenset(
    {
        "conditional",
        "equals",
        "in_list",
        "in_map",
        "index_list",
        "index_map",
        "logical_and",
        "logical_not",
        "logical_or",
        "not_equals",
        "not_strictly_false",
        "select_optional_field",
        "list_optindex_optional_int",
        "map_optindex_optional_value",
        "optional_list_optindex_optional_int",
        "optional_map_optindex_optional_value",
        *(
            f"optional_{name}"
            for name in ("hasValue", "none", "of", "ofNonZeroValue", "orValue_value", "or_optional", "value")
        ),
        *(f"{operation}_{kind}" for operation in ("add", "divide", "multiply", "subtract") for kind in _ARITHMETIC),
        *(f"modulo_{kind}" for kind in ("int64", "uint64")),
        *(f"negate_{kind}" for kind in ("int64", "double")),
        *(f"{relation}_{kind}" for relation in _RELATIONS for kind in _ORDERED),
    }
)
