"""What the reference says of every function and macro of the rule language: a line, an example and its value."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """What is said of a function."""

    meaning: str
    example: str
    gives: str


FUNCTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Text": {
        "contains": Entry("whether a text is in it", "'web-1'.contains('b-')", "true"),
        "startsWith": Entry("whether it begins so", "'web-1'.startsWith('web-')", "true"),
        "endsWith": Entry("whether it ends so", "'web-1'.endsWith('-2')", "false"),
        "size": Entry(
            "how many characters, bytes, elements or entries it has",
            "'web'.size() + size([1, 2]) + {'a': 1}.size()",
            "6",
        ),
        "charAt": Entry("the character at a place, from 0 on", "'web'.charAt(1)", "'e'"),
        "indexOf": Entry(
            "where a text is first (from a place on), or -1", "['web'.indexOf('b'), 'web'.indexOf('w', 1)]", "[2, -1]"
        ),
        "lastIndexOf": Entry("where a text is last (up to a place), or -1", "'a-b-c'.lastIndexOf('-')", "3"),
        "lowerAscii": Entry("in small letters, A to Z only", "'Web'.lowerAscii()", "'web'"),
        "upperAscii": Entry("in capital letters, a to z only", "'Web'.upperAscii()", "'WEB'"),
        "trim": Entry("without the white space around it", "' web '.trim()", "'web'"),
        "replace": Entry(
            "with one text in place of another (so many times)", "'a-b-c'.replace('-', '.', 1)", "'a.b-c'"
        ),
        "split": Entry(
            "the parts between separators (so many)",
            "['a,b,c'.split(','), 'a,b,c'.split(',', 2)]",
            "[['a', 'b', 'c'], ['a', 'b,c']]",
        ),
        "join": Entry("the texts of a list as one, with a separator", "['a', 'b'].join('-')", "'a-b'"),
        "substring": Entry(
            "the text from a place on (up to another, which is less than its size or with the first the size)",
            "['web-1'.substring(4), 'web-1'.substring(0, 3)]",
            "['1', 'web']",
        ),
        "reverse": Entry("backwards", "'web'.reverse()", "'bew'"),
        "format": Entry(
            "with values in place of `%s`, `%d`, `%.1f` ...", "'%s of %d'.format(['web', 3])", "'web of 3'"
        ),
        "strings.quote": Entry("in quotes, with what is special escaped", "strings.quote('a')", "'\"a\"'"),
    },
    "Regular expressions (RE2)": {
        "matches": Entry("whether the pattern is somewhere in it", "'web-12'.matches('^web-[0-9]+$')", "true"),
        "regex.extract": Entry(
            "the first match, or its only group", "regex.extract('web-12', '-([0-9]+)').orValue('')", "'12'"
        ),
        "regex.extractAll": Entry(
            "all matches, or their only groups", "regex.extractAll('a1b22', '[0-9]+')", "['1', '22']"
        ),
        "regex.replace": Entry(
            "with the matches replaced (so many of them); `\\1` is a group",
            "regex.replace('web-12', '-([0-9]+)$', '/\\\\1')",
            "'web/12'",
        ),
    },
    "Numbers": {
        "math.greatest": Entry("the largest, of numbers or of a list", "math.greatest(1, 3, 2)", "3"),
        "math.least": Entry("the smallest, of numbers or of a list", "math.least([1.5, 0.5])", "0.5"),
        "math.abs": Entry("without its sign", "math.abs(-3)", "3"),
        "math.sign": Entry("-1, 0 or 1, of the same type", "math.sign(-2.5)", "-1.0"),
        "math.ceil": Entry("the next whole number above", "math.ceil(1.2)", "2.0"),
        "math.floor": Entry("the next whole number below", "math.floor(-1.2)", "-2.0"),
        "math.round": Entry("the nearest whole number, halves away from zero", "math.round(2.5)", "3.0"),
        "math.trunc": Entry("without what is after the point", "math.trunc(-1.7)", "-1.0"),
        "math.sqrt": Entry("the square root", "math.sqrt(16)", "4.0"),
        "math.isNaN": Entry("whether it is no number, as 0.0 / 0.0 is", "math.isNaN(0.0 / 0.0)", "true"),
        "math.isInf": Entry("whether it is infinite", "math.isInf(1.0 / 0.0)", "true"),
        "math.isFinite": Entry("whether it is neither", "math.isFinite(1.0)", "true"),
        "math.bitAnd": Entry("the bits that both have", "math.bitAnd(6, 3)", "2"),
        "math.bitOr": Entry("the bits that one of them has", "math.bitOr(6, 3)", "7"),
        "math.bitXor": Entry("the bits that only one of them has", "math.bitXor(6, 3)", "5"),
        "math.bitNot": Entry("the other bits", "math.bitNot(0)", "-1"),
        "math.bitShiftLeft": Entry("the bits moved up", "math.bitShiftLeft(1, 4)", "16"),
        "math.bitShiftRight": Entry("the bits moved down, without the sign", "math.bitShiftRight(16, 4)", "1"),
        "exp": Entry("e to this power", "exp(0.0)", "1.0"),
        "log2": Entry("the logarithm to base 2", "log2(8.0)", "3.0"),
    },
    "Lists": {
        "first": Entry("the first element, if there is one", "[1, 2].first().orValue(0)", "1"),
        "last": Entry("the last element, if there is one", "[1, 2].last().orValue(0)", "2"),
        "slice": Entry("the elements from a place up to another", "[1, 2, 3].slice(0, 2)", "[1, 2]"),
        "distinct": Entry("every element once", "[1, 2, 1].distinct()", "[1, 2]"),
        "flatten": Entry("with the elements of its lists (so deep)", "[[1], [2, 3]].flatten()", "[1, 2, 3]"),
        "sort": Entry("in order", "[3, 1, 2].sort()", "[1, 2, 3]"),
        "lists.range": Entry("the numbers from 0 on", "lists.range(3)", "[0, 1, 2]"),
        "sets.contains": Entry("whether the first has all of the second", "sets.contains([1, 2], [2])", "true"),
        "sets.intersects": Entry("whether they have one in common", "sets.intersects([1, 2], [2, 3])", "true"),
        "sets.equivalent": Entry("whether each has all of the other", "sets.equivalent([1, 2], [2, 1, 1])", "true"),
    },
    "Optionals": {
        "optional.of": Entry("one that has a value", "optional.of(1).value()", "1"),
        "optional.none": Entry("one that has none", "optional.none().hasValue()", "false"),
        "optional.ofNonZeroValue": Entry(
            "one that has the value unless it is `''`, 0, false or empty",
            "optional.ofNonZeroValue('').orValue('x')",
            "'x'",
        ),
        "hasValue": Entry("whether it has one", "{'a': 1}[?'b'].hasValue()", "false"),
        "value": Entry("the value; raises if there is none", "{'a': 1}[?'a'].value()", "1"),
        "or": Entry("the other one if it has none", "{'a': 1}[?'b'].or({'a': 1}[?'a']).value()", "1"),
        "orValue": Entry("the value, or this one", "{'a': 1}[?'b'].orValue(2)", "2"),
    },
    "Conversions": {
        "int": Entry("a whole number; cuts, reads, seconds of a time since 1970", "int(2.9) + int('1')", "3"),
        "uint": Entry("one without a sign", "uint(3)", "3u"),
        "double": Entry("a number with a fraction", "double('1.5') + double(1)", "2.5"),
        "string": Entry("as text", "string(1.5) + string(duration('90s'))", "'1.590s'"),
        "bool": Entry("`true` or `false`, from a text", "bool('true')", "true"),
        "bytes": Entry("the bytes of a text in UTF-8", "bytes('a')", "b'a'"),
        "dyn": Entry("the same, its type forgotten by the checker", "dyn(1) == 1.0", "true"),
        "type": Entry("its type", "type(1) == int", "true"),
        "base64.encode": Entry("as base64", "base64.encode(b'web')", "'d2Vi'"),
        "base64.decode": Entry("from base64", "string(base64.decode('d2Vi'))", "'web'"),
    },
    "Times": {
        "timestamp": Entry(
            "a moment, from RFC 3339 or seconds since 1970",
            "timestamp('1970-01-01T00:01:00Z') == timestamp(60)",
            "true",
        ),
        "duration": Entry("a time span; the largest unit is `h`", "duration('1h30m') == duration('90m')", "true"),
        "getFullYear": Entry("the year", "timestamp('2027-03-05T10:20:30Z').getFullYear()", "2027"),
        "getMonth": Entry("the month, January being 0", "timestamp('2027-03-05T10:20:30Z').getMonth()", "2"),
        "getDate": Entry("the day of the month, from 1 on", "timestamp('2027-03-05T10:20:30Z').getDate()", "5"),
        "getDayOfMonth": Entry(
            "the day of the month, from 0 on", "timestamp('2027-03-05T10:20:30Z').getDayOfMonth()", "4"
        ),
        "getDayOfWeek": Entry(
            "the day of the week, Sunday being 0", "timestamp('2027-03-05T10:20:30Z').getDayOfWeek()", "5"
        ),
        "getDayOfYear": Entry(
            "the day of the year, from 0 on", "timestamp('2027-03-05T10:20:30Z').getDayOfYear()", "63"
        ),
        "getHours": Entry(
            "the hour of the day (in a time zone), or all hours of a span",
            "timestamp('2027-03-05T10:20:30Z').getHours('Europe/Berlin') + duration('90m').getHours()",
            "12",
        ),
        "getMinutes": Entry("the minute, or all minutes of a span", "duration('90m').getMinutes()", "90"),
        "getSeconds": Entry("the second, or all seconds of a span", "duration('90m').getSeconds()", "5400"),
        "getMilliseconds": Entry(
            "the milliseconds of the second, of a span too", "duration('1.5s').getMilliseconds()", "500"
        ),
    },
    "Quantities": {
        "quantity": Entry(
            "an amount as Kubernetes writes it; raises if it is none", "quantity('1Gi') == quantity('1024Mi')", "true"
        ),
        "isQuantity": Entry("whether a text is one", "isQuantity('1 GB')", "false"),
        "add": Entry("the sum", "quantity('500m').add(quantity('1')).add(1) == quantity('2.5')", "true"),
        "sub": Entry("the difference", "quantity('2').sub(1) == quantity('1')", "true"),
        "compareTo": Entry("-1, 0 or 1", "quantity('1k').compareTo(quantity('1Ki'))", "-1"),
        "isGreaterThan": Entry("whether it is greater", "quantity('1Ki').isGreaterThan(quantity('1k'))", "true"),
        "isLessThan": Entry("whether it is less", "quantity('100m').isLessThan(quantity('1'))", "true"),
        "sign": Entry("-1, 0 or 1", "quantity('-1').sign()", "-1"),
        "isInteger": Entry("whether it is whole, and fits into an int", "quantity('1500m').isInteger()", "false"),
        "asInteger": Entry("as an int; raises if it is not whole", "quantity('2k').asInteger()", "2000"),
        "asApproximateFloat": Entry("as the nearest double", "quantity('1500m').asApproximateFloat()", "1.5"),
    },
}

MACROS: Final[Mapping[str, Entry]] = {
    "has(object.field)": Entry("whether the field is there", "has({'a': 1}.b)", "false"),
    "list.exists(x, bool)": Entry(
        "whether it holds for one of them; of a map: of its keys", "[1, 2].exists(x, x > 1)", "true"
    ),
    "list.all(x, bool)": Entry("whether it holds for all of them", "[1, 2].all(x, x > 1)", "false"),
    "list.exists_one(x, bool)": Entry("whether it holds for exactly one", "[1, 2].exists_one(x, x > 0)", "false"),
    "list.filter(x, bool)": Entry("those for which it holds", "[1, 2, 3].filter(x, x > 1)", "[2, 3]"),
    "list.map(x, any)": Entry("this of each of them", "[1, 2].map(x, x * 10)", "[10, 20]"),
    "list.map(x, bool, any)": Entry("this of each for which it holds", "[1, 2].map(x, x > 1, x * 10)", "[20]"),
    "map.exists(k, v, bool)": Entry(
        "`exists`, `all`, `existsOne` with the key (of a list: the place) and the value",
        "{'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "true",
    ),
    "map.transformList(k, v, any)": Entry(
        "this of each key and value, or place and element", "[5, 6].transformList(i, x, i + x)", "[5, 7]"
    ),
    "list.sortBy(x, any)": Entry("in the order of this of each", "[3, 1, 2].sortBy(x, -x)", "[3, 2, 1]"),
    "cel.bind(x, any, any)": Entry("the last, in which x is the first", "cel.bind(x, 2 + 3, x * x)", "25"),
    "optional.optMap(x, any)": Entry(
        "an optional of this of its value", "{'a': 1}[?'a'].optMap(x, x + 1).orValue(0)", "2"
    ),
    "optional.optFlatMap(x, optional)": Entry(
        "the same where this is an optional itself",
        "{'a': 'b', 'b': 'c'}[?'a'].optFlatMap(x, {'b': 'c'}[?x]).orValue('')",
        "'c'",
    ),
}
