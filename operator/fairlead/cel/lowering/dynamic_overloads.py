"""Which function a value of type dyn meets: by the kinds of the arguments, as the engine looks for it at run time.

A kind is a letter: **b**ool, **i**nt, **u**int, **d**ouble, **s**tring, b**y**tes, **n**ull, **l**ist, **m**ap,
**T**imestamp, **D**uration, **t**ype, **o**ptional, **M**essage, **Q**uantity. The checker's overloads with typed lists
are one function for lists here.
"""

import operator
from collections.abc import Mapping
from functools import cache
from typing import Final

from fairlead.cel.functions import arithmetic, conversions
from fairlead.cel.functions.overloads import FUNCTIONS, Function

_OPERATORS: Final[Mapping[str, Mapping[str, Function]]] = {
    "_+_": {
        "ii": arithmetic.add_int,
        "uu": arithmetic.add_uint,
        "dd": operator.add,
        "ss": operator.add,
        "yy": operator.add,
        "ll": FUNCTIONS["add_list"],
        "DD": FUNCTIONS["add_duration_duration"],
        "DT": FUNCTIONS["add_duration_timestamp"],
        "TD": FUNCTIONS["add_timestamp_duration"],
    },
    "_-_": {
        "ii": arithmetic.subtract_int,
        "uu": arithmetic.subtract_uint,
        "dd": operator.sub,
        "DD": FUNCTIONS["subtract_duration_duration"],
        "TD": FUNCTIONS["subtract_timestamp_duration"],
        "TT": FUNCTIONS["subtract_timestamp_timestamp"],
    },
    "_*_": {"ii": arithmetic.multiply_int, "uu": arithmetic.multiply_uint, "dd": operator.mul},
    "_/_": {"ii": arithmetic.divide_int, "uu": arithmetic.divide_uint, "dd": arithmetic.divide_double},
    "_%_": {"ii": arithmetic.modulo_int, "uu": arithmetic.modulo_uint},
    "-_": {"i": arithmetic.negate_int, "d": operator.neg},
}

# Known to the engine when it evaluates, but to no checker.
_UNDECLARED: Final[Mapping[str, Function]] = {"bool_to_int64": conversions.bool_to_int64}
_TIMES: Final = {
    "getDate": "day_of_month_1_based",
    "getDayOfMonth": "day_of_month",
    "getDayOfWeek": "day_of_week",
    "getDayOfYear": "day_of_year",
    "getFullYear": "year",
    "getMonth": "month",
}
_OF_BOTH: Final = {
    "getHours": "hours",
    "getMilliseconds": "milliseconds",
    "getMinutes": "minutes",
    "getSeconds": "seconds",
}
_SINGLE: Final = {"i": "int", "u": "uint", "d": "double"}

# Name: kinds and overload, and so on.
_TEXT: Final = """
size: s size_string y size_bytes l size_list m size_map
int: i int64_to_int64 u uint64_to_int64 d double_to_int64 s string_to_int64 T timestamp_to_int64 b bool_to_int64
uint: i int64_to_uint64 u uint64_to_uint64 d double_to_uint64 s string_to_uint64
double: i int64_to_double u uint64_to_double d double_to_double s string_to_double
bool: b bool_to_bool s string_to_bool
string: s string_to_string y bytes_to_string b bool_to_string d double_to_string i int64_to_string u uint64_to_string \
T timestamp_to_string D duration_to_string
bytes: y bytes_to_bytes s string_to_bytes
timestamp: T timestamp_to_timestamp s string_to_timestamp i int64_to_timestamp
duration: D duration_to_duration s string_to_duration
startsWith: ss starts_with_string
endsWith: ss ends_with_string
contains: ss contains_string
charAt: si string_char_at_int
indexOf: ss string_index_of_string ssi string_index_of_string_int
lastIndexOf: ss string_last_index_of_string ssi string_last_index_of_string_int
join: l list_join ls list_join_string
lowerAscii: s string_lower_ascii
upperAscii: s string_upper_ascii
replace: sss string_replace_string_string sssi string_replace_string_string_int
reverse: s string_reverse l list_reverse
split: ss string_split_string ssi string_split_string_int
substring: si string_substring_int sii string_substring_int_int
trim: s string_trim
strings.quote: s strings_quote
base64.encode: y base64_encode_bytes
base64.decode: s base64_decode_string
math.abs: d math_abs_double i math_abs_int u math_abs_uint
math.bitAnd: ii math_bitAnd_int_int uu math_bitAnd_uint_uint
math.bitOr: ii math_bitOr_int_int uu math_bitOr_uint_uint
math.bitXor: ii math_bitXor_int_int uu math_bitXor_uint_uint
math.bitNot: i math_bitNot_int_int u math_bitNot_uint_uint
math.bitShiftLeft: ii math_bitShiftLeft_int_int ui math_bitShiftLeft_uint_int
math.bitShiftRight: ii math_bitShiftRight_int_int ui math_bitShiftRight_uint_int
math.ceil: d math_ceil_double
math.floor: d math_floor_double
math.round: d math_round_double
math.trunc: d math_trunc_double
math.isFinite: d math_isFinite_double
math.isInf: d math_isInf_double
math.isNaN: d math_isNaN_double
math.sign: d math_sign_double i math_sign_int u math_sign_uint
math.sqrt: d math_sqrt_double i math_sqrt_int u math_sqrt_uint
lists.range: i list_range
slice: lii list_slice
flatten: l list_flatten li list_flatten_int
distinct: l list_distinct
first: l list_first
last: l list_last
sort: l list_int_sort
@sortByAssociatedKeys: ll list_int_sortByAssociatedKeys
sets.contains: ll list_sets_contains_list
sets.equivalent: ll list_sets_equivalent_list
sets.intersects: ll list_sets_intersects_list
exp: d exp_double
log2: d log2_double
quantity: s string_to_quantity
isQuantity: s is_quantity_string
sign: Q quantity_sign
isInteger: Q quantity_is_integer
asInteger: Q quantity_get_int
asApproximateFloat: Q quantity_get_float
add: QQ quantity_add Qi quantity_add_int
sub: QQ quantity_sub Qi quantity_sub_int
isGreaterThan: QQ quantity_is_greater_than
isLessThan: QQ quantity_is_less_than
compareTo: QQ quantity_compare_to
"""


@cache
def signatures() -> Mapping[str, Mapping[str, Function]]:
    """The functions by name and kinds of arguments."""
    made: dict[str, dict[str, Function]] = {name: dict(found) for name, found in _OPERATORS.items()}
    for line in _TEXT.strip().splitlines():
        name, _, rest = line.partition(": ")
        words = rest.split()
        pairs = zip(words[::2], words[1::2], strict=True)
        made[name] = {kinds: _UNDECLARED.get(overload) or FUNCTIONS[overload] for kinds, overload in pairs}
    for name, part in _TIMES.items():
        made[name] = {"T": FUNCTIONS[f"timestamp_to_{part}"]}
    for name, part in _OF_BOTH.items():
        made[name] = {"T": FUNCTIONS[f"timestamp_to_{part}"], "D": FUNCTIONS[f"duration_to_{part}"]}
    for which in ("max", "min"):
        one = {kind: FUNCTIONS[f"math_@{which}_{name}"] for kind, name in _SINGLE.items()}
        two = {
            left + right: FUNCTIONS[f"math_@{which}_{_SINGLE[left]}_{_SINGLE[right]}"]
            for left in _SINGLE
            for right in _SINGLE
        }
        made[f"math.@{which}"] = {**one, **two, "l": FUNCTIONS[f"math_@{which}_list_double"]}
    return made
