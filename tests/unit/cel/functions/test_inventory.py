"""Nothing that the checker can choose is missing from the table or from the lists of what is done elsewhere."""

import itertools
import re

import pytest

from fairlead.cel.functions.overloads import FUNCTIONS, LEFT_TO_THE_ENGINE, PATTERN_METHODS, WRITTEN_OUT
from oracle import overloads_of

# Called with operands of type dyn, a name stands for every overload it has.
NAMES = re.findall(
    r"\S+",
    """
    base64.decode base64.encode bool bytes charAt contains distinct double duration dyn endsWith first flatten format
    getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds
    hasValue indexOf int join last lastIndexOf lists.range lowerAscii matches math.abs math.bitAnd math.bitNot
    math.bitOr math.bitShiftLeft math.bitShiftRight math.bitXor math.ceil math.floor math.greatest math.isFinite
    math.isInf math.isNaN math.least math.round math.sign math.sqrt math.trunc optional.none optional.of
    optional.ofNonZeroValue or orValue regex.extract regex.extractAll regex.replace replace reverse sets.contains
    sets.equivalent sets.intersects
    size slice sort split startsWith string strings.quote substring timestamp trim type uint upperAscii value
    """,
)
EXPRESSIONS = re.findall(
    r"[^;\n ][^;\n]*",
    """
    d + d; d - d; d * d; d / d; d % d; -d; !d; d && d; d || d; d == d; d != d; d < d; d <= d; d > d; d >= d; d in d
    d[d]; d[?d]; d ? d : d; d.?a; has(d.a); cel.bind(x, d, x); [?optional.of(d)]; {?d: optional.of(d)}; l.sortBy(x, -x)
    l.all(x, d); l.exists(x, d); l.exists_one(x, d); l.map(x, x); l.map(x, d, x); l.filter(x, d); l.all(i, x, d)
    l.existsOne(i, x, d); l.transformList(i, v, v); l.transformMap(i, v, v); m.transformMapEntry(k, v, {k: v})
    d.optMap(x, x); d.optFlatMap(x, x)
    """,
)


def test_every_overload_has_its_place() -> None:
    reachable = set().union(*map(_overloads_of_name, NAMES), *map(overloads_of, EXPRESSIONS))
    assert len(reachable) > 250
    assert sorted(reachable - {*FUNCTIONS, *PATTERN_METHODS, *LEFT_TO_THE_ENGINE, *WRITTEN_OUT}) == []


def test_an_overload_has_one_place() -> None:
    places = [set(FUNCTIONS), set(PATTERN_METHODS), set(LEFT_TO_THE_ENGINE), set(WRITTEN_OUT)]
    assert all(left.isdisjoint(right) for left, right in itertools.combinations(places, 2))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_inventory_is_a_function(name: str) -> None:
    """So that the inventory cannot rot into names that the checker never resolves."""
    assert _overloads_of_name(name)


def _overloads_of_name(name: str) -> set[str]:
    found = set()
    for form, count in itertools.product(("{}({})", "d.{}({})"), range(5)):
        try:
            found |= overloads_of(form.format(name, ", ".join("d" * count)))
        except (RuntimeError, ValueError):
            continue
    return found
