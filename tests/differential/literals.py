"""Literals, with many at which something changes."""

from random import Random

INTS = (
    "0", "1", "2", "3", "-1", "-2", "7", "10", "63", "64", "9223372036854775807", "-9223372036854775808",
    "9007199254740993", "9007199254740992", "0x7f", "-0x10", "1577836800", "4294967296",
)  # fmt: skip
UINTS = (
    "0u",
    "1u",
    "2u",
    "5u",
    "10u",
    "64u",
    "18446744073709551615u",
    "9223372036854775808u",
    "9007199254740993u",
    "0xffu",
)
DOUBLES = (
    "0.0", "-0.0", "1.0", "2.0", "-1.5", "0.5", "2.5", "1e6", "1e-5", "123456.789", "1e308", "-1e308", "5e-324",
    "9007199254740992.0", "9223372036854775808.0", "-9223372036854775808.0", "18446744073709551616.0",
    "double('NaN')", "double('NaN')", "0.0 / 0.0", "double('inf')", "double('-inf')",
)  # fmt: skip
TEXTS = (
    "''", "'a'", "'b'", "'gpu'", "'a100'", "'abcabc'", "'x y'", "'1'", "'-7'", "'2.5'", "'true'", "'T'", "'1h30m'",
    "'2020-02-29T12:34:56.123456789Z'", "'9223372036854775808'", "'é'", "'😀b'", r"'\u00e9\n\t\\'", r"r'\d+'",
    r'"\"q\'"', "'''multi\nline'''", r"'\U0001f600'", r"'a\nb'", r"'\n'", r"'\\n'", r"'\tx\r\n'",
    "'YWJj'", "'A,B,,C'", "' trim '", r"'\x41\101'", "'inf'", "'0x10'",
    "'10.1.2.3'", "'2001:db8::1'", "'10.0.0.0/8'", "'1.37.1'", "'v1.37'",
)  # fmt: skip
BYTES = ("b''", "b'a'", "b'ab'", r"b'\xff'", r"b'\000'", "b'é'", r"b'\303\251'", "b'abc'")
TIMESTAMPS = (
    "timestamp('1970-01-01T00:00:00Z')", "timestamp('2020-02-29T12:34:56.123456789Z')",
    "timestamp('0001-01-01T00:00:00Z')", "timestamp('9999-12-31T23:59:59.999999999Z')", "timestamp(1577836800)",
)  # fmt: skip
DURATIONS = (
    "duration('0s')", "duration('1h30m')", "duration('-1.5s')", "duration('1ns')", "duration('9223372036s')",
    "duration('-9223372036s')", "duration('315576000000s')", "duration('1500ms')",
)  # fmt: skip
TYPES = (
    "int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type",
    "google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR", "kubernetes.Semver",
)  # fmt: skip
ADDRESSES = (
    "ip('10.1.2.3')", "ip('127.0.0.1')", "ip('0.0.0.0')", "ip('169.254.169.254')", "ip('224.0.0.1')",
    "ip('2001:DB8::68')", "ip('::1')", "ip('::')", "ip('fe80::1')", "ip('ff02::1')", "ip('1:0:0:4::8')",
)  # fmt: skip
NETWORKS = (
    "cidr('10.0.0.0/8')", "cidr('10.1.2.3/16')", "cidr('0.0.0.0/0')", "cidr('10.1.2.3/32')", "cidr('2001:db8::1/32')",
    "cidr('::/0')", "cidr('2001:db8::68/128')",
)  # fmt: skip
VERSIONS = (
    "semver('1.37.1')", "semver('v1.37', true)", "semver('1.37.1-rc.1')", "semver('1.37.1-rc.1+build')",
    "semver('1.37.1-rc.10')", "semver('1.37.1-1')", "semver('0.0.0')", "semver('1.9.0')", "semver('1.37.1+k3s1')",
)  # fmt: skip
PATTERNS = ("a", "^a", "b$", "(a)(b)", "[a-c]+", "(a*)", r"\\d+", "(", "^$", "x*", "é", "(?i)A")

SCALARS = {
    "int": INTS,
    "uint": UINTS,
    "double": DOUBLES,
    "bool": ("true", "false"),
    "string": TEXTS,
    "bytes": BYTES,
    "timestamp": TIMESTAMPS,
    "duration": DURATIONS,
    "type": TYPES,
    "ip": ADDRESSES,
    "cidr": NETWORKS,
    "semver": VERSIONS,
}


def literal(random: Random, name: str) -> str:
    """One of a scalar type."""
    if name == "int" and random.random() < 0.4:
        return str(random.randrange(-3, 12))
    return random.choice(SCALARS[name])
