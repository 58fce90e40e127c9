"""Conversions, strings, times and the math extension are what the engine says they are."""

import pytest
from hypothesis import strategies as st

from fairlead.cel.values.value_types import INT_MAX, INT_MIN, Timestamp, UInt
from oracle import strategies as any_
from oracle.comparison import Case, compare_overload

_space = st.text(st.sampled_from(" \t\n\v\f\r\x1c\x85\xa0"), max_size=1)
_number_noise = st.text(st.sampled_from("0123456789+-.eExXpP_ naif()NAI\0٣"), max_size=8)
integer_texts = (
    st.builds(
        "{}{}{}{}{}".format,
        _space,
        st.sampled_from(["", "", "+", "-", "--", "+ "]),
        st.sampled_from(["", "", "0", "00000000000000000000"]),
        any_.ints.map(abs) | st.integers(0, 2**66),
        _space,
    )
    | _number_noise
)
double_texts = (
    st.builds(
        "{}{}{}{}{}".format,
        _space,
        st.sampled_from(["", "+", "-"]),
        st.sampled_from(
            ["0", "1", "1.5", ".5", "5.", ".", "123456789012345678901234567890", "0.1", "4.9", "1.7976931348623158"]
        )
        | st.floats(0, allow_nan=False, allow_infinity=False).map(repr)
        | st.sampled_from(
            ["inf", "Infinity", "nan", "NaN(a_1)", "0x1.8", "0X.8", "0x1.fffffffffffff8", "0x12345678901234567"]
        ),
        st.sampled_from(
            ["", "", "e5", "E-5", "e+308", "e309", "e-324", "e", "e99999999999", "p3", "p-1075", "p1023", "p"]
        ),
        _space,
    )
    | _number_noise
)
bool_texts = st.sampled_from(
    ["true", "True", "TRUE", "t", "T", "1", "0", "false", "f", "F", "FALSE", "False", "tRUE", "on", " 1"]
)
_duration_numbers = st.sampled_from(
    ["", "0", "1", "1.5", ".5", "1.", ".", "0.25", "0.1", "0.000000001", "0.9999999999999999999"]
) | (
    any_.ints.map(str)
    | st.integers(0, 10**6).map(str)
    | st.decimals(0, 10**6, places=4).map(str)
    | st.integers(0, 10**19).map("0.{:019}".format)
    | st.integers(0, 10**16).map("0.{:016}".format)
)
duration_texts = st.builds(
    "{}{}".format,
    st.sampled_from(["", "", "", "-", "+", "--", " "]),
    st.lists(
        st.builds("{}{}".format, _duration_numbers, st.sampled_from(["ns", "us", "ms", "s", "m", "h", "d", ""])),
        max_size=3,
    ).map("".join)
    | st.sampled_from(
        [
            "inf",
            "0",
            "315576000000.999999999s",
            "315576000000.9999999999s",
            "315576000001s",
            "infs",
            "0.9999999999999999999s",
        ]
    ),
)
_fields = st.integers(0, 70).map(str) | st.integers(0, 12).map("{:02}".format) | st.integers(0, 31).map("{:02}".format)
_valid_timestamps = st.builds(
    "{}-{:02}-{:02}T{:02}:{:02}:{:02}{}{}".format,
    st.sampled_from(["2020", "1", "0001", "9999", "10000", "1969", "292277026596", "292277026597"]),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 23),
    st.integers(0, 59),
    st.sampled_from([0, 1, 59, 60]),
    st.sampled_from(["", ".5", ".123", ".123456789", ".9999999999", ".99999999999999999999", ".0000000005"]),
    st.sampled_from(["Z", "z", "+00:00", "+01:30", "-0130", "+01", "-23:59:59", "+010203"]),
)
_odd_timestamps = st.builds(
    "{}{}-{}-{}{}{}:{}:{}{}{}{}".format,
    _space,
    st.sampled_from(
        [
            "2020",
            "1",
            "0001",
            "9999",
            "10000",
            "0",
            "-1",
            "1969",
            "1900",
            "2000",
            "292277026596",
            "292277026597",
            "9" * 20,
        ]
    )
    | st.integers(1, 9999).map("{:04}".format),
    st.integers(1, 12) | _fields,
    st.integers(1, 31) | _fields,
    st.sampled_from(["T", "T", "t", " "]),
    st.integers(0, 23) | _fields,
    st.integers(0, 59) | _fields,
    st.integers(55, 60) | _fields,
    st.sampled_from(
        ["", "", ".", ".5", ".123", ".123456789", ".9999999999", ".99999999999999999999", ".0000000005", ".a"]
    ),
    st.sampled_from(
        [
            "Z",
            "Z",
            "z",
            "",
            "+00:00",
            "-00:00",
            "+01:30",
            "-0130",
            "+01",
            "+1:00",
            "+24:00",
            "-23:59:59",
            "+010203",
            "+01:0",
        ]
    ),
    _space | st.just("\0x"),
)
timestamp_texts = (
    _valid_timestamps | _odd_timestamps | st.sampled_from(["infinite-future", " infinite-past ", "2020-01-01", ""])
)
positions = st.integers(0, 4) | st.sampled_from([-1, 5, 6, 7, 100, INT_MAX, INT_MIN])
few = st.text(st.sampled_from("abé😀"), max_size=4)
parts = st.text(st.sampled_from("abé😀"), max_size=2)
# Half of them where a double cannot tell integers apart.
near = {
    "int": st.booleans().flatmap(lambda is_near: any_.near_ints if is_near else any_.ints),
    "uint": st.booleans().flatmap(lambda is_near: any_.near_ints.map(UInt) if is_near else any_.uints),
    "double": st.booleans().flatmap(lambda is_near: any_.near_ints.map(float) if is_near else any_.doubles),
}
number = {"int": any_.ints, "uint": any_.uints, "double": any_.doubles}

CASES: dict[str, Case] = {
    "bool_to_bool": ("bool({})", any_.bools),
    "bool_to_string": ("string({})", any_.bools),
    "bytes_to_bytes": ("bytes({})", any_.bytestrings),
    "bytes_to_string": ("string({})", any_.bytestrings),
    "double_to_double": ("double({})", any_.doubles),
    "double_to_int64": ("int({})", any_.doubles),
    "double_to_string": ("string({})", any_.doubles),
    "double_to_uint64": ("uint({})", any_.doubles),
    "duration_to_duration": ("duration({})", any_.durations),
    "duration_to_string": ("string({})", any_.durations),
    "int64_to_double": ("double({})", any_.ints),
    "int64_to_int64": ("int({})", any_.ints),
    "int64_to_string": ("string({})", any_.ints),
    "int64_to_timestamp": ("timestamp({})", any_.ints | st.integers(-63_000_000_000, 254_000_000_000)),
    "int64_to_uint64": ("uint({})", any_.ints),
    "string_to_bool": ("bool({})", bool_texts | any_.texts),
    "string_to_bytes": ("bytes({})", any_.texts),
    "string_to_double": ("double({})", double_texts),
    "string_to_duration": ("duration({})", duration_texts),
    "string_to_int64": ("int({})", integer_texts),
    "string_to_string": ("string({})", any_.texts),
    "string_to_timestamp": ("timestamp({})", timestamp_texts),
    "string_to_uint64": ("uint({})", integer_texts),
    "timestamp_to_int64": ("int({})", any_.timestamps),
    "timestamp_to_string": ("string({})", any_.timestamps),
    "timestamp_to_timestamp": ("timestamp({})", any_.timestamps),
    "uint64_to_double": ("double({})", any_.uints),
    "uint64_to_int64": ("int({})", any_.uints),
    "uint64_to_string": ("string({})", any_.uints),
    "uint64_to_uint64": ("uint({})", any_.uints),
    "add_bytes": ("{} + {}", any_.bytestrings, any_.bytestrings),
    "add_string": ("{} + {}", any_.texts, any_.texts),
    "bytes_size": ("{}.size()", any_.bytestrings),
    "size_bytes": ("size({})", any_.bytestrings),
    "string_size": ("{}.size()", any_.texts),
    "size_string": ("size({})", any_.texts),
    "contains_string": ("{}.contains({})", any_.few_texts, parts),
    "starts_with_string": ("{}.startsWith({})", any_.few_texts, parts),
    "ends_with_string": ("{}.endsWith({})", any_.few_texts, parts),
    "string_char_at_int": ("{}.charAt({})", few, positions),
    "string_index_of_string": ("{}.indexOf({})", any_.few_texts, parts),
    "string_index_of_string_int": ("{}.indexOf({}, {})", few, parts, positions),
    "string_last_index_of_string": ("{}.lastIndexOf({})", any_.few_texts, parts),
    "string_last_index_of_string_int": ("{}.lastIndexOf({}, {})", few, parts, positions),
    "string_lower_ascii": ("{}.lowerAscii()", any_.texts),
    "string_upper_ascii": ("{}.upperAscii()", any_.texts),
    "string_replace_string_string": ("{}.replace({}, {})", any_.few_texts, parts, parts),
    "string_replace_string_string_int": ("{}.replace({}, {}, {})", few, parts, parts, positions),
    "string_split_string": ("{}.split({})", any_.few_texts, parts),
    "string_split_string_int": ("{}.split({}, {})", few, parts, positions),
    "string_substring_int": ("{}.substring({})", few, positions),
    "string_substring_int_int": ("{}.substring({}, {})", few, positions, positions),
    "string_trim": ("{}.trim()", any_.texts),
    "string_reverse": ("{}.reverse()", any_.texts),
    "list_join": ("{}.join()", st.lists(any_.texts, max_size=4)),
    "list_join_string": ("{}.join({})", st.lists(any_.few_texts, max_size=4), parts),
    "add_timestamp_duration": ("{} + {}", any_.timestamps, any_.durations),
    "add_duration_timestamp": ("{} + {}", any_.durations, any_.timestamps),
    "add_duration_duration": ("{} + {}", any_.durations, any_.durations),
    "subtract_timestamp_duration": ("{} - {}", any_.timestamps, any_.durations),
    "subtract_duration_duration": ("{} - {}", any_.durations, any_.durations),
    "subtract_timestamp_timestamp": (
        "{} - {}",
        any_.timestamps | st.sampled_from([0, 500_000_000]).map(Timestamp),
        any_.timestamps | st.integers(9_223_372_036_800, 9_223_372_037_400).map(lambda ms: Timestamp(ms * 1_000_000)),
    ),
    "timestamp_to_year": ("{}.getFullYear()", any_.timestamps),
    "timestamp_to_month": ("{}.getMonth()", any_.timestamps),
    "timestamp_to_day_of_month_1_based": ("{}.getDate()", any_.timestamps),
    "timestamp_to_day_of_month": ("{}.getDayOfMonth()", any_.timestamps),
    "timestamp_to_day_of_year": ("{}.getDayOfYear()", any_.timestamps),
    "timestamp_to_day_of_week": ("{}.getDayOfWeek()", any_.timestamps),
    **{
        f"{of}_to_{field}": ("{}.get" + field.capitalize() + "()", values)
        for of, values in (("timestamp", any_.timestamps), ("duration", any_.durations))
        for field in ("hours", "minutes", "seconds", "milliseconds")
    },
    **{
        f"math_@{which}_{of}_{of}": (name + "({}, {})", near[of], near[of])
        for which, name in (("max", "math.greatest"), ("min", "math.least"))
        for of in number
    },
    **{
        f"math_@{which}_{of}": (name + "({})", number[of])
        for which, name in (("max", "math.greatest"), ("min", "math.least"))
        for of in number
    },
    **{
        f"math_@{which}_list_{of}": (name + "({})", st.lists(number[of], min_size=1, max_size=4))
        for which, name in (("max", "math.greatest"), ("min", "math.least"))
        for of in number
    },
    **{f"math_{name}_{of}": (f"math.{name}({{}})", number[of]) for name in ("abs", "sign", "sqrt") for of in number},
    **{
        f"math_{name}_double": (f"math.{name}({{}})", any_.doubles)
        for name in ("ceil", "floor", "round", "trunc", "isNaN", "isInf", "isFinite")
    },
}


@pytest.mark.parametrize("overload", CASES)
def test_an_overload_is_what_the_engine_says(overload: str) -> None:
    compare_overload(overload, *CASES[overload])
