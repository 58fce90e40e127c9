"""Every overload of the checker that is a function here, by its id.

What is not: operators on numbers, comparisons, logic, the conditional, `in`, indexing, selection and comprehensions,
which the lowering writes out; and `LEFT_TO_THE_ENGINE`.
"""

import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from fairlead.cel.functions import conversions, encoders, equality, maths, strings, times, timetext
from fairlead.cel.values import UInt

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
    "duration_to_string": timetext.duration_to_string,
    "int64_to_double": float,
    "int64_to_int64": conversions.identity,
    "int64_to_string": conversions.int64_to_string,
    "int64_to_timestamp": timetext.int64_to_timestamp,
    "int64_to_uint64": conversions.int64_to_uint64,
    "string_to_bool": conversions.string_to_bool,
    "string_to_bytes": conversions.string_to_bytes,
    "string_to_double": conversions.string_to_double,
    "string_to_duration": timetext.string_to_duration,
    "string_to_int64": conversions.string_to_int64,
    "string_to_string": conversions.identity,
    "string_to_timestamp": timetext.string_to_timestamp,
    "string_to_uint64": conversions.string_to_uint64,
    "timestamp_to_int64": timetext.timestamp_to_int64,
    "timestamp_to_string": timetext.timestamp_to_string,
    "timestamp_to_timestamp": conversions.identity,
    "to_dyn": conversions.identity,
    "type": equality.type_of,
    "uint64_to_double": float,
    "uint64_to_int64": conversions.uint64_to_int64,
    "uint64_to_string": conversions.int64_to_string,
    "uint64_to_uint64": conversions.identity,
    "base64_decode_string": encoders.base64_decode_string,
    "base64_encode_bytes": encoders.base64_encode_bytes,
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
            "strings_quote",
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
_SINGLE: Final = ("int", "uint", "double")
_MATHS: Final[dict[str, Function]] = {
    **{f"math_@{which}_{kind}": conversions.identity for which in ("max", "min") for kind in _SINGLE},
    **{
        f"math_@{which}_{left}_{right}": mixed if left != right and "double" in {left, right} else same
        for which, same, mixed in (
            ("max", max, maths.greatest_mixed),
            ("min", min, maths.least_mixed),
        )
        for left in _SINGLE
        for right in _SINGLE
    },
    **{f"math_@max_list_{kind}": maths.greatest_of_list for kind in _SINGLE},
    **{f"math_@min_list_{kind}": maths.least_of_list for kind in _SINGLE},
    **{f"math_sqrt_{kind}": maths.math_sqrt for kind in _SINGLE},
    "math_abs_double": abs,
    "math_abs_int": maths.math_abs_int,
    "math_abs_uint": conversions.identity,
    "math_bitAnd_int_int": operator.and_,
    "math_bitAnd_uint_uint": lambda left, right: UInt(left & right),
    "math_bitNot_int_int": operator.invert,
    "math_bitNot_uint_uint": maths.bit_not_uint,
    "math_bitOr_int_int": operator.or_,
    "math_bitOr_uint_uint": lambda left, right: UInt(left | right),
    "math_bitShiftLeft_int_int": maths.shift_left_int,
    "math_bitShiftLeft_uint_int": maths.shift_left_uint,
    "math_bitShiftRight_int_int": maths.shift_right_int,
    "math_bitShiftRight_uint_int": maths.shift_right_uint,
    "math_bitXor_int_int": operator.xor,
    "math_bitXor_uint_uint": lambda left, right: UInt(left ^ right),
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

FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(_CONVERSIONS | _STRINGS | _TIMES | _MATHS)
