"""Expressions that raise, of every kind of error, and loops around the limit of steps."""

from random import Random

from fairlead.cel.values.errors import Kind

RAISING: dict[Kind, tuple[str, ...]] = {
    Kind.NO_SUCH_KEY: ("{'a': 1}['b'] == 1", "{1: 1}[2] == 1", "free['nope'] > 1.0"),
    Kind.INDEX: ("[1][1] == 1", "[1][-1] == 1", "pods[99].metadata.name == ''"),
    Kind.OVERFLOW: ("9223372036854775807 + 1 == 0", "0u - 1u == 1u", "-(-9223372036854775808) == 0"),
    Kind.DIVIDE_BY_ZERO: ("1 / 0 == 1", "1u % 0u == 1u"),
    Kind.CONVERSION: ("int('x') == 1", "uint(-1) == 1u", "int(1e99) == 1", "bool('x')"),
    Kind.NO_VALUE: ("optional.none().value() == 1", "{'a': 1}[?'b'].value() == 1"),
    Kind.ARGUMENT: ("'abc'.substring(9) == ''", "'abc'.charAt(-1) == ''", "[1].slice(3, 2) == []"),
    Kind.PATTERN: ("'a'.matches('(')", "regex.extract('a', '(a)(b)').hasValue()"),
    Kind.MISSING_DATA: (
        "data.heat > 1.0", "data['heat'] == 0.0", "data['he' + 'at'] < 1.0",
        "optional.of(data).value().heat > 0.0", "[data][0]['heat'] == 0.0", "cel.bind(d, data, d.heat > d.heat)",
    ),
    Kind.DUPLICATE_KEY: (
        "{'a': 1, 'a': 2}.size() == 1", "{1: 1, 1: 2}[1] == 1", "{'b': 1, ?'b': optional.of(2)} == {}",
    ),
    Kind.LIMIT: (
        "lists.range(10000).all(i, true)", "lists.range(10000).exists(i, i < 0)",
        "lists.range(10000).exists_one(i, i < 0)", "lists.range(101).all(i, lists.range(99).all(j, i == i))",
    ),
}  # fmt: skip


def raising(random: Random, outcome: str | None = None) -> str:
    """A bool that ends the evaluation as wanted, or in any way but at the limit, which takes long."""
    wanted = [kind for kind in RAISING if kind is not Kind.LIMIT]
    kind = random.choice(wanted) if outcome is None else Kind(outcome.removeprefix("abort "))
    return random.choice(RAISING[kind])


def trouble(random: Random, text: str, outcome: str | None = None) -> str:
    """An expression of the same type that raises instead, at least if somebody asks for it."""
    test = raising(random, outcome)
    roll = random.random()
    if roll < 0.2 and outcome is None:
        absorbed = random.choice(("({test}) || true", "true || ({test})", "!(({test}) && false)")).format(test=test)
        return f"({absorbed} ? {text} : {text})" if len(text) < 40 else f"[{text}][{absorbed} ? 0 : 1]"
    if roll < 0.5:
        return f"(({test}) ? {text} : {text})" if len(text) < 40 else f"[{text}][({test}) ? 0 : 1]"
    if roll < 0.8:
        return f"[{text}][({test}) ? 0 : 0]"
    if len(text) < 40:
        return f"cel.bind(t, {test}, t ? {text} : {text})"
    return f"[({test}) ? 0 : 0].map(t, {text})[0]" if outcome else f"optional.of({text}).value()"


# Lists that grow by one element take the engine time that grows with their square, so that these are kept short.
_LOOPS = (
    "lists.range({n}).all(i, i >= 0)",
    "lists.range({n}).exists(i, i < 0)",
    "lists.range({n}).exists_one(i, i == 3)",
    "lists.range({n}).exists_one(i, 1 / 0 == i)",
    "lists.range({n}).all(i, v, i == v)",
    "lists.range({a}).all(i, lists.range({b}).all(j, j >= i - i))",
    "lists.range({a}).exists(i, lists.range({b}).exists(j, j < 0))",
    "lists.range({a}).map(i, lists.range({b}).exists(j, j == i)).size() == {a}",
    "lists.range({a}).filter(i, lists.range({b}).exists(j, j == i)).size() == {a}",
    "lists.range({a}).map(i, lists.range({b}).exists(j, j > i), i).size() == {a}",
    "lists.range({a}).transformList(i, v, lists.range({b}).all(j, 1 / j > i)).size() == {a}",
    "lists.range({h}).all(i, i >= 0) && lists.range({m}).all(i, i >= 0)",
    "lists.range({h}).exists(i, i < 0) || lists.range({m}).all(i, i >= 0)",
    "lists.range(200).map(i, i).filter(i, i % 2 == 0 || 1 / 0 > i).size() + 9 > 0 && lists.range({s}).all(i, i >= 0)",
    "cel.bind(l, lists.range(100).map(i, i), l.all(x, x >= 0) && l.size() > 9 && lists.range({t}).all(i, i >= 0))",
    "cel.bind(l, lists.range({h}).all(i, i >= 0), l && l && lists.range({m}).all(i, i >= 0))",
    "cel.bind(l, lists.range({h}).all(i, 1 / 0 > 0), (l || true) && (l || true) && lists.range({m}).all(i, i >= 0))",
    "lists.range(200).map(i, -i).all(i, i <= 0) && lists.range({s}).all(i, i >= 0)",
    "(lists.range({h}).all(i, 1 / i > 0 || true) ? lists.range({m}).all(i, i == i) : true)",
    "[lists.range({h}).all(i, 1 / i > 5), lists.range({m}).all(i, i >= 0)].size() > 0",
    "lists.range({h}).all(i, i >= 0) == pod.spec.containers.exists(c, lists.range({m}).all(i, i > 5 || i < 9))",
    "1 / 0 > 1 && lists.range({n}).all(i, i >= 0)",
    "lists.range({n}).all(i, 1 / 0 > i)",
    "lists.range({n}).exists(i, i == 9997)",
    "lists.range({n}).exists(i, i == 9998)",
    "lists.range({h}).exists(i, i == {m}) || lists.range({m}).all(i, i >= 0)",
    "optional.of(lists.range({h})).optMap(l, l.all(i, i >= 0)).orValue(false) && lists.range({m}).all(i, i >= 0)",
    "node.metadata.name == '' || lists.range({n}).all(i, i >= 0)",
    "pod.metadata.name == 'a' || lists.range({h}).all(i, pods.exists(p, i == 3))",
)
_NESTED = ((99, 100), (100, 99), (98, 101), (1, 9999), (1, 9998), (2, 4998), (2, 4999), (33, 302), (10, 998), (10, 999))


def limit(random: Random) -> str:
    """A loop that ends at the limit of steps, just before or just after."""
    a, b = random.choice(_NESTED)
    return random.choice(_LOOPS).format(
        n=random.choice((9998, 9999, 10000, 10001)),
        a=a,
        b=b,
        h=random.choice((4998, 4999, 5000, 5001)),
        m=random.choice((4998, 4999, 5000)),
        s=random.choice((9598, 9599, 9600)),
        t=random.choice((9798, 9799, 9800)),
    )
