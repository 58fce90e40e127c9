"""Entries of the reference for every function and macro of the rule language: a line, an example and its value."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Entry of a function in the reference."""

    meaning: str
    example: str
    gives: str


FUNCTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Text": {
        "contains": Entry("whether the string contains another", "'web-1'.contains('b-')", "true"),
        "startsWith": Entry("whether it starts with another", "'web-1'.startsWith('web-')", "true"),
        "endsWith": Entry("whether it ends with another", "'web-1'.endsWith('-2')", "false"),
        "size": Entry(
            "number of characters, bytes, elements or entries",
            "'web'.size() + size([1, 2]) + {'a': 1}.size()",
            "6",
        ),
        "charAt": Entry("the character at a position, from 0", "'web'.charAt(1)", "'e'"),
        "indexOf": Entry(
            "first position of a string (at or after a position), or -1",
            "['web'.indexOf('b'), 'web'.indexOf('w', 1)]",
            "[2, -1]",
        ),
        "lastIndexOf": Entry(
            "last position of a string (at or before a position), or -1", "'a-b-c'.lastIndexOf('-')", "3"
        ),
        "lowerAscii": Entry("in lower case, A to Z only", "'Web'.lowerAscii()", "'web'"),
        "upperAscii": Entry("in upper case, a to z only", "'Web'.upperAscii()", "'WEB'"),
        "trim": Entry("without leading and trailing white space", "' web '.trim()", "'web'"),
        "replace": Entry(
            "with one string replaced by another (at most so many times)", "'a-b-c'.replace('-', '.', 1)", "'a.b-c'"
        ),
        "split": Entry(
            "the parts between separators (at most so many parts)",
            "['a,b,c'.split(','), 'a,b,c'.split(',', 2)]",
            "[['a', 'b', 'c'], ['a', 'b,c']]",
        ),
        "join": Entry("the strings of a list joined, with a separator", "['a', 'b'].join('-')", "'a-b'"),
        "substring": Entry(
            "the string from a position on (up to another, which must be less than the size unless both are the size)",
            "['web-1'.substring(4), 'web-1'.substring(0, 3)]",
            "['1', 'web']",
        ),
        "reverse": Entry("in reverse order", "'web'.reverse()", "'bew'"),
        "format": Entry(
            "with values in place of `%s`, `%d`, `%.1f` ...", "'%s of %d'.format(['web', 3])", "'web of 3'"
        ),
        "strings.quote": Entry("quoted, with special characters escaped", "strings.quote('a')", "'\"a\"'"),
    },
    "Regular expressions (RE2)": {
        "matches": Entry("whether the pattern matches anywhere", "'web-12'.matches('^web-[0-9]+$')", "true"),
        "regex.extract": Entry(
            "the first match, or its only group", "regex.extract('web-12', '-([0-9]+)').orValue('')", "'12'"
        ),
        "regex.extractAll": Entry(
            "all matches, or their only groups", "regex.extractAll('a1b22', '[0-9]+')", "['1', '22']"
        ),
        "regex.replace": Entry(
            "with the matches replaced (at most so many); `\\1` is a group",
            "regex.replace('web-12', '-([0-9]+)$', '/\\\\1')",
            "'web/12'",
        ),
    },
    "Numbers": {
        "math.greatest": Entry("the largest, of numbers or of a list", "math.greatest(1, 3, 2)", "3"),
        "math.least": Entry("the smallest, of numbers or of a list", "math.least([1.5, 0.5])", "0.5"),
        "math.abs": Entry("the absolute value", "math.abs(-3)", "3"),
        "math.sign": Entry("-1, 0 or 1, of the same type", "math.sign(-2.5)", "-1.0"),
        "math.ceil": Entry("rounded up", "math.ceil(1.2)", "2.0"),
        "math.floor": Entry("rounded down", "math.floor(-1.2)", "-2.0"),
        "math.round": Entry("the nearest whole number, halves away from zero", "math.round(2.5)", "3.0"),
        "math.trunc": Entry("rounded towards zero", "math.trunc(-1.7)", "-1.0"),
        "math.sqrt": Entry("the square root", "math.sqrt(16)", "4.0"),
        "math.isNaN": Entry("whether it is not a number, as 0.0 / 0.0", "math.isNaN(0.0 / 0.0)", "true"),
        "math.isInf": Entry("whether it is infinite", "math.isInf(1.0 / 0.0)", "true"),
        "math.isFinite": Entry("whether it is neither infinite nor NaN", "math.isFinite(1.0)", "true"),
        "math.bitAnd": Entry("bitwise and", "math.bitAnd(6, 3)", "2"),
        "math.bitOr": Entry("bitwise or", "math.bitOr(6, 3)", "7"),
        "math.bitXor": Entry("bitwise exclusive or", "math.bitXor(6, 3)", "5"),
        "math.bitNot": Entry("bitwise not", "math.bitNot(0)", "-1"),
        "math.bitShiftLeft": Entry("bits shifted left", "math.bitShiftLeft(1, 4)", "16"),
        "math.bitShiftRight": Entry("bits shifted right, without keeping the sign", "math.bitShiftRight(16, 4)", "1"),
        "exp": Entry("e to the power of a number", "exp(0.0)", "1.0"),
        "log2": Entry("the logarithm to base 2", "log2(8.0)", "3.0"),
    },
    "Lists": {
        "first": Entry("the first element, if there is one", "[1, 2].first().orValue(0)", "1"),
        "last": Entry("the last element, if there is one", "[1, 2].last().orValue(0)", "2"),
        "slice": Entry("the elements from one position up to another", "[1, 2, 3].slice(0, 2)", "[1, 2]"),
        "distinct": Entry("without duplicates", "[1, 2, 1].distinct()", "[1, 2]"),
        "flatten": Entry(
            "with nested lists replaced by their elements (down to a depth)", "[[1], [2, 3]].flatten()", "[1, 2, 3]"
        ),
        "sort": Entry("sorted", "[3, 1, 2].sort()", "[1, 2, 3]"),
        "lists.range": Entry("that many numbers, from 0", "lists.range(3)", "[0, 1, 2]"),
        "sets.contains": Entry(
            "whether the first list has all elements of the second", "sets.contains([1, 2], [2])", "true"
        ),
        "sets.intersects": Entry(
            "whether the lists have an element in common", "sets.intersects([1, 2], [2, 3])", "true"
        ),
        "sets.equivalent": Entry(
            "whether each list has all elements of the other", "sets.equivalent([1, 2], [2, 1, 1])", "true"
        ),
    },
    "Optionals": {
        "optional.of": Entry("an optional with a value", "optional.of(1).value()", "1"),
        "optional.none": Entry("an optional without a value", "optional.none().hasValue()", "false"),
        "optional.ofNonZeroValue": Entry(
            "an optional with the value unless it is `''`, 0, false or empty",
            "optional.ofNonZeroValue('').orValue('x')",
            "'x'",
        ),
        "hasValue": Entry("whether it has a value", "{'a': 1}[?'b'].hasValue()", "false"),
        "value": Entry("the value; an error if there is none", "{'a': 1}[?'a'].value()", "1"),
        "or": Entry(
            "itself if it has a value, otherwise the other optional", "{'a': 1}[?'b'].or({'a': 1}[?'a']).value()", "1"
        ),
        "orValue": Entry("the value, or a default", "{'a': 1}[?'b'].orValue(2)", "2"),
    },
    "Conversions": {
        "int": Entry(
            "a whole number: truncated, read from a string, or the seconds since 1970", "int(2.9) + int('1')", "3"
        ),
        "uint": Entry("an unsigned whole number", "uint(3)", "3u"),
        "double": Entry("a number with a fraction", "double('1.5') + double(1)", "2.5"),
        "string": Entry("as a string", "string(1.5) + string(duration('90s'))", "'1.590s'"),
        "bool": Entry("a bool, read from a string", "bool('true')", "true"),
        "bytes": Entry("the bytes of a string in UTF-8", "bytes('a')", "b'a'"),
        "dyn": Entry("the value, with its type unknown to the checker", "dyn(1) == 1.0", "true"),
        "type": Entry("its type", "type(1) == int", "true"),
        "base64.encode": Entry("as base64", "base64.encode(b'web')", "'d2Vi'"),
        "base64.decode": Entry("from base64", "string(base64.decode('d2Vi'))", "'web'"),
    },
    "Times": {
        "timestamp": Entry(
            "a timestamp, from RFC 3339 or seconds since 1970",
            "timestamp('1970-01-01T00:01:00Z') == timestamp(60)",
            "true",
        ),
        "duration": Entry("a duration; the largest unit is `h`", "duration('1h30m') == duration('90m')", "true"),
        "getFullYear": Entry("the year", "timestamp('2027-03-05T10:20:30Z').getFullYear()", "2027"),
        "getMonth": Entry("the month, January being 0", "timestamp('2027-03-05T10:20:30Z').getMonth()", "2"),
        "getDate": Entry("the day of the month, from 1", "timestamp('2027-03-05T10:20:30Z').getDate()", "5"),
        "getDayOfMonth": Entry(
            "the day of the month, from 0", "timestamp('2027-03-05T10:20:30Z').getDayOfMonth()", "4"
        ),
        "getDayOfWeek": Entry(
            "the day of the week, Sunday being 0", "timestamp('2027-03-05T10:20:30Z').getDayOfWeek()", "5"
        ),
        "getDayOfYear": Entry("the day of the year, from 0", "timestamp('2027-03-05T10:20:30Z').getDayOfYear()", "63"),
        "getHours": Entry(
            "the hour of the day (in a time zone), or the whole duration in hours",
            "timestamp('2027-03-05T10:20:30Z').getHours('Europe/Berlin') + duration('90m').getHours()",
            "12",
        ),
        "getMinutes": Entry("the minute, or the whole duration in minutes", "duration('90m').getMinutes()", "90"),
        "getSeconds": Entry("the second, or the whole duration in seconds", "duration('90m').getSeconds()", "5400"),
        "getMilliseconds": Entry(
            "the milliseconds of the second, also of a duration", "duration('1.5s').getMilliseconds()", "500"
        ),
    },
    "Quantities": {
        "quantity": Entry(
            "a Kubernetes quantity; an error if the string is none", "quantity('1Gi') == quantity('1024Mi')", "true"
        ),
        "isQuantity": Entry("whether a string is a quantity", "isQuantity('1 GB')", "false"),
        "add": Entry("the sum", "quantity('500m').add(quantity('1')).add(1) == quantity('2.5')", "true"),
        "sub": Entry("the difference", "quantity('2').sub(1) == quantity('1')", "true"),
        "compareTo": Entry("-1, 0 or 1 for less, equal or greater", "quantity('1k').compareTo(quantity('1Ki'))", "-1"),
        "isGreaterThan": Entry(
            "whether it is greater",
            "quantity('1Ki').isGreaterThan(quantity('1k')) && semver('1.37.0').isGreaterThan(semver('1.9.0'))",
            "true",
        ),
        "isLessThan": Entry("whether it is less", "quantity('100m').isLessThan(quantity('1'))", "true"),
        "sign": Entry("-1, 0 or 1", "quantity('-1').sign()", "-1"),
        "isInteger": Entry("whether it is whole and fits into an int", "quantity('1500m').isInteger()", "false"),
        "asInteger": Entry("as an int; an error if it is not whole", "quantity('2k').asInteger()", "2000"),
        "asApproximateFloat": Entry("as the nearest double", "quantity('1500m').asApproximateFloat()", "1.5"),
    },
    "Addresses": {
        "ip": Entry(
            "an IP address, without a zone; an error if the string is none. Or the address of a network",
            "cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
            "true",
        ),
        "isIP": Entry("whether a string is an IP address", "isIP('10.1.2.256')", "false"),
        "ip.isCanonical": Entry(
            "whether an IP address is written as `string` writes it", "ip.isCanonical('2001:DB8::1')", "false"
        ),
        "family": Entry("4 or 6", "ip('2001:db8::1').family()", "6"),
        "isUnspecified": Entry("whether it is `0.0.0.0` or `::`", "ip('::').isUnspecified()", "true"),
        "isLoopback": Entry("whether it is in `127.0.0.0/8` or `::1`", "ip('127.0.0.1').isLoopback()", "true"),
        "isLinkLocalUnicast": Entry(
            "whether it is in `169.254.0.0/16` or `fe80::/10`", "ip('169.254.1.1').isLinkLocalUnicast()", "true"
        ),
        "isLinkLocalMulticast": Entry(
            "whether it is in `224.0.0.0/24` or `ff02::/16`", "ip('224.0.0.1').isLinkLocalMulticast()", "true"
        ),
        "isGlobalUnicast": Entry(
            "whether it is the address of one host and valid beyond its link; private addresses are, too",
            "ip('10.1.2.3').isGlobalUnicast()",
            "true",
        ),
        "cidr": Entry(
            "a network; an error if the string is none", "cidr('10.0.0.0/8') == cidr('10.1.2.3/8').masked()", "true"
        ),
        "isCIDR": Entry("whether a string is a network", "isCIDR('10.0.0.0/33')", "false"),
        "containsIP": Entry(
            "whether an address is in the network", "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"
        ),
        "containsCIDR": Entry(
            "whether the other network is in the network", "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "true"
        ),
        "prefixLength": Entry("the length of its prefix", "cidr('10.0.0.0/8').prefixLength()", "8"),
        "masked": Entry(
            "with the bits of its hosts set to zero", "string(cidr('10.1.2.3/8').masked())", "'10.0.0.0/8'"
        ),
    },
    "Versions": {
        "semver": Entry(
            "a semantic version; with `true`, `v`, leading zeros and a missing minor or patch are allowed",
            "semver('v1.37', true) == semver('1.37.0')",
            "true",
        ),
        "isSemver": Entry("whether a string is one", "[isSemver('v1.37'), isSemver('v1.37', true)]", "[false, true]"),
        "major": Entry("the first number", "semver('1.37.2-rc.1').major()", "1"),
        "minor": Entry("the second number", "semver('1.37.2-rc.1').minor()", "37"),
        "patch": Entry("the third number", "semver('1.37.2-rc.1').patch()", "2"),
    },
}

MACROS: Final[Mapping[str, Entry]] = {
    "has(object.field)": Entry("whether the field is set", "has({'a': 1}.b)", "false"),
    "list.exists(x, bool)": Entry(
        "whether the condition holds for any element; for a map, any key", "[1, 2].exists(x, x > 1)", "true"
    ),
    "list.all(x, bool)": Entry("whether the condition holds for all elements", "[1, 2].all(x, x > 1)", "false"),
    "list.exists_one(x, bool)": Entry(
        "whether the condition holds for exactly one element", "[1, 2].exists_one(x, x > 0)", "false"
    ),
    "list.filter(x, bool)": Entry("the elements that fulfil the condition", "[1, 2, 3].filter(x, x > 1)", "[2, 3]"),
    "list.map(x, any)": Entry("the expression for each element", "[1, 2].map(x, x * 10)", "[10, 20]"),
    "list.map(x, bool, any)": Entry(
        "the expression for each element that fulfils the condition", "[1, 2].map(x, x > 1, x * 10)", "[20]"
    ),
    "map.exists(k, v, bool)": Entry(
        "`exists`, `all`, `existsOne` with the key (for a list, the position) and the value",
        "{'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "true",
    ),
    "map.transformList(k, v, any)": Entry(
        "the expression for each key and value, or position and element", "[5, 6].transformList(i, x, i + x)", "[5, 7]"
    ),
    "list.sortBy(x, any)": Entry("sorted by the expression", "[3, 1, 2].sortBy(x, -x)", "[3, 2, 1]"),
    "cel.bind(x, any, any)": Entry(
        "the last expression, with `x` bound to the first", "cel.bind(x, 2 + 3, x * x)", "25"
    ),
    "optional.optMap(x, any)": Entry(
        "an optional with the expression for its value", "{'a': 1}[?'a'].optMap(x, x + 1).orValue(0)", "2"
    ),
    "optional.optFlatMap(x, optional)": Entry(
        "like `optMap`, for an expression that gives an optional itself",
        "{'a': 'b', 'b': 'c'}[?'a'].optFlatMap(x, {'b': 'c'}[?x]).orValue('')",
        "'c'",
    ),
}
