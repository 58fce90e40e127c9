"""Values to try, with many of those at which something changes."""

import struct

from hypothesis import strategies as st

from fairlead.cel.values.value_types import INT_MAX, INT_MIN, NONE, UINT_MAX, Duration, Some, Timestamp, TypeName, UInt

_SECOND = 1_000_000_000
_EDGES = (
    0,
    1,
    -1,
    2,
    9,
    10,
    63,
    64,
    2**31,
    2**53 - 1,
    2**53,
    2**53 + 1,
    2**62,
    INT_MAX - 1,
    INT_MAX,
    INT_MIN,
    INT_MIN + 1,
)
_MOMENT_EDGES_S = (
    0,
    -1,
    1,
    -62_135_596_800,
    253_402_300_799,
    9_223_372_036,
    -9_223_372_037,
    951_782_400,
    4_107_542_400,
)
_SPAN_EDGES_S = (0, 1, 59, 60, 3_599, 3_600, 9_223_372_036, 9_223_372_037, 315_537_897_599, 315_576_000_000)
_CHARACTERS = (
    "aAbBzZ019 .,-_/\\\"'\t\n\v\f\r\a\b\0\x1c\x1f\x7f\x80\x85\xa0éÉß\u0131\u017f\u0301\u180e\u200b\u2003\u2028\u3000"
    "\ufeff\uffff😀"
)

small = st.integers(-3, 12)
ints = st.sampled_from(_EDGES) | small | st.integers(INT_MIN, INT_MAX)
uints = (
    st.sampled_from([abs(edge) for edge in _EDGES] + [UINT_MAX, UINT_MAX - 1, INT_MAX + 1]) | st.integers(0, UINT_MAX)
).map(UInt)
doubles = (
    st.sampled_from(
        [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-4, 1e-5, 999999.5, 1e6, 1e15, 1e16, 1e17, 5e-324, 1e308]
        + [0.49999999999999994, 4503599627370497.5, float("inf"), float("-inf"), float("nan"), -float("nan")]
        + [float(edge) for edge in _EDGES]
        + [2.0**63, 2.0**64, 2.0**64 - 2048, -(2.0**63) - 2048]
    )
    | st.floats(allow_subnormal=True)
    | st.floats(-1e9, 1e9)
    | st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    | st.decimals(-(10**9), 10**9, places=3).map(float)
)
near_ints = st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, INT_MAX])
texts = st.text(st.sampled_from(_CHARACTERS), max_size=8) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8
)
few_texts = st.text(st.sampled_from("abé😀"), max_size=6)
bytestrings = (
    st.binary(max_size=8)
    | texts.map(str.encode)
    | st.sampled_from(
        [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\0", b"\xef\xbb\xbfa"]
    )
)
bools = st.booleans()
_nanoseconds = st.sampled_from(
    [0, 0, 1, 999_999_999, 500_000_000, 854_775_807, 854_775_808, 123_456_000]
) | st.integers(0, _SECOND - 1)
timestamps = st.builds(
    lambda seconds, nanoseconds: Timestamp(seconds * _SECOND + nanoseconds),
    st.sampled_from(_MOMENT_EDGES_S) | st.integers(-62_135_596_800, 253_402_300_799),
    _nanoseconds,
)
durations = st.builds(
    lambda seconds, nanoseconds, sign: Duration(sign * (seconds * _SECOND + nanoseconds)),
    st.sampled_from(_SPAN_EDGES_S) | st.integers(0, 315_576_000_000) | st.integers(0, 100_000),
    _nanoseconds,
    st.sampled_from([1, -1]),
)
microsecond_timestamps = timestamps.map(lambda moment: Timestamp(moment // 1_000 * 1_000))
microsecond_durations = durations.map(
    lambda span: Duration(abs(span) // 1_000_000 * (1_000_000 if span > 0 else -1_000_000))
)
types = st.sampled_from(["int", "uint", "double", "bool", "string", "bytes", "null_type", "list", "map", "type"]).map(
    TypeName
)
scalars = (
    st.none()
    | bools
    | ints
    | uints
    | doubles
    | texts
    | bytestrings
    | microsecond_timestamps
    | microsecond_durations
    | types
)
keys = few_texts | small | small.filter(lambda number: number >= 0).map(UInt)
_close = st.sampled_from([0, 1, UInt(1), 1.0, float("nan"), 2**53, 2**53 + 1, 2.0**53, "", "a", b"a", True, None, NONE])
values = st.recursive(
    scalars | _close,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3) | inner.map(Some) | st.just(NONE)
    ),
    max_leaves=5,
)
close_values = st.recursive(
    _close,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2) | inner.map(Some),
    max_leaves=3,
)
# The engine's Python types cannot give optionals back.
plain_values = st.recursive(
    scalars | _close.filter(lambda value: value is not NONE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=5,
)
