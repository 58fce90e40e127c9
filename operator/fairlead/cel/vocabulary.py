"""The functions and macros of the language by name, for those who misspell one; a test holds it against the engine."""

from typing import Final

MACROS: Final = (
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "has",
    "map",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "cel.bind",
)
FUNCTIONS: Final = frozenset(
    """
    add asApproximateFloat asInteger base64.decode base64.encode bool bytes charAt compareTo contains distinct
    double duration dyn endsWith exp first flatten format getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds hasValue indexOf int isGreaterThan
    isInteger isLessThan isQuantity join last lastIndexOf lists.range log2 lowerAscii matches math.abs
    math.bitAnd math.bitNot math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil math.floor
    math.greatest math.isFinite math.isInf math.isNaN math.least math.round math.sign math.sqrt math.trunc
    optional.none optional.of optional.ofNonZeroValue or orValue quantity regex.extract regex.extractAll
    regex.replace replace reverse sets.contains sets.equivalent sets.intersects sign size slice sort split
    startsWith string strings.quote sub substring timestamp trim type uint upperAscii value
    """.split()  # noqa: SIM905 - a list that people read
)
