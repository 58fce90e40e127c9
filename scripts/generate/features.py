"""Generator of two tables in the reference of the rule language: its functions, and how each feature is evaluated."""

from collections.abc import Sequence
from pathlib import Path

from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.policy.compile.expression import CompiledExpression
from generate.language_functions import FUNCTIONS, MACROS, Entry
from generate.signatures import signatures

PAGE = Path(__file__).parents[2] / "docs/reference/rule-language.md"
SECTIONS = ("functions", "features")

FEATURES: dict[str, dict[str, str]] = {
    "Reading": {
        "a field": "pod.spec.priority",
        "an absent field": "pod.status.phase",
        "presence": "has(pod.spec.priority)",
        "a key of a map": "node.metadata.labels['gpu']",
        "a key, as a field": "free.cpu",
        "a test for a key": "'gpu' in node.metadata.labels",
        "an element of a list": "pod.spec.containers[0]",
        "a number or a string, compared": "pod.spec.containers[0].livenessProbe.httpGet.port == 80",
        "a whole object compared": "pod.spec == pod.spec",
    },
    "Optionals": {
        "an optional key": "node.metadata.labels[?'gpu'].orValue('')",
        "an optional field": "pod.?spec.?nodeName.orValue('')",
        "an optional element": "pod.spec.containers[?0].hasValue()",
        "`or`, `value`": "node.metadata.labels[?'a'].or(node.metadata.labels[?'b']).value()",
        "`optMap`, `optFlatMap`": "node.metadata.labels[?'a'].optMap(x, x + 'b').orValue('')",
        "`optional.of`, `none`, `ofNonZeroValue`": "optional.ofNonZeroValue(pod.metadata.name).orValue('x')",
        "optional elements and entries": "[1, ?optional.of(2)].size() + {?'a': optional.of(1)}.size()",
        "an optional in an optional": "optional.of(optional.of(1)).value().value()",
        "`first`, `last`": "pods.first().hasValue()",
    },
    "Operators": {
        "comparison": "pod.spec.priority >= 1",
        "logic that absorbs errors": "1 / pod.spec.priority > 0 || true",
        "the conditional": "pod.spec.priority > 1 ? 'a' : 'b'",
        "integers, with overflow": "pod.spec.priority * 2 + 1 - 3 / 2 % 5",
        "unsigned integers": "1u + 2u",
        "doubles": "free['cpu'] * 0.5 / 3.0",
        "strings and bytes": "pod.metadata.name + 'x' == string(b'a' + b'b')",
        "lists": "[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2]",
        "maps": "{'a': 1}['a'] == 1",
        "values of type dyn": "dyn(pod.spec.priority) == 1.0",
        "a list of mixed types": "[1, 'a', 2.0].size() == 3",
        "types": "type(pod.spec.priority) == int",
        "an object literal": "kubernetes.Pod{}",
    },
    "Macros": {
        "`exists`, `all`, `exists_one`": "pods.exists(p, p.spec.priority > 1)",
        "`map`, `filter`": "pods.filter(p, p.spec.priority > 1).map(p, p.metadata.name)",
        "`map` with a condition": "pods.map(p, p.spec.priority > 1, p.metadata.name)",
        "nested loops": "pods.exists(p, p.spec.containers.exists(c, c.image == ''))",
        "loops over keys": "node.metadata.labels.exists(k, k.startsWith('a'))",
        "two variables": "node.metadata.labels.exists(k, v, k == v)",
        "`transformList`": "node.metadata.labels.transformList(k, v, v + k)",
        "`transformMap`, `transformMapEntry`": "node.metadata.labels.transformMap(k, v, v + k)",
        "`cel.bind`": "cel.bind(x, pod.spec.priority * 2, x * x)",
        "`sortBy`": "pods.sortBy(p, p.spec.priority)",
    },
    "Conversions and times": {
        "`int`, `uint`, `double`": "int('1') + int(2.5) + int(uint(3)) + int(double('1'))",
        "`string`, `bytes`, `bool`": "string(1.5) + string(bytes('a')) + string(bool('true'))",
        "`timestamp`, `duration`": "now - timestamp('2026-01-01T00:00:00Z') > duration('90s')",
        "parts of a time": "now.getHours() + now.getDayOfWeek() + duration('1h').getMinutes()",
        "parts of a time in a time zone": "now.getHours('Europe/Berlin')",
        "quantities": "quantity('500m').add(quantity('1')).isGreaterThan(quantity('1'))",
        "addresses": "node.status.addresses.exists(a, isIP(a.address) && cidr('10.0.0.0/8').containsIP(a.address))",
        "versions": "semver(node.status.nodeInfo.kubeletVersion, true).compareTo(semver('1.37.0')) >= 0",
    },
    "Extensions": {
        "strings": "'a,b'.split(',').join('-').replace('a', 'b').substring(1).trim().upperAscii()",
        "`format`": "'%s of %d'.format([pod.metadata.name, 1])",
        "math": "math.greatest(1, 2) + int(math.ceil(1.5))",
        "bit operations": "math.bitAnd(6, 3)",
        "`log2`, `exp`": "log2(8.0) + exp(0.0)",
        "lists": "[3, 1, 2].sort().slice(0, 2).distinct().reverse() == [2, 1]",
        "`flatten` of a list of lists": "pods.map(p, p.spec.containers.map(c, c.image)).flatten()",
        "`flatten` with a depth": "[[1], [2]].flatten(1)",
        "sets": "sets.contains(['a', 'b'], ['a']) && sets.intersects([1], [1, 2])",
        "base64": "base64.encode(b'a') == 'YQ=='",
    },
    "Regular expressions (RE2)": {
        "`matches` with a literal pattern": "pod.metadata.name.matches('^web-[0-9]+$')",
        "`matches` with a computed pattern": "pod.metadata.name.matches(node.metadata.name)",
        "`regex.extract`": "regex.extract(pod.metadata.name, '[0-9]+').orValue('')",
        "`regex.replace`": "regex.replace(pod.metadata.name, '-[0-9]+$', '')",
    },
    "Variables": {
        "variables of the policy": "variables.wants == 'any'",
        "data": "data.load > 0.5 && data[?'load'].hasValue()",
        "the current time": "now > timestamp('2026-01-01T00:00:00Z')",
    },
}


def evaluation(text: str) -> str:
    """Return how an expression is evaluated."""
    wants = check("pod.metadata.labels[?'gpu'].orValue('any')", Environment(RULE), VALUE)
    environment = Environment(RULE, {"wants": wants.type}, ("load",))
    try:
        made = CompiledExpression(check(text, environment, VALUE), {"wants": CompiledExpression(wants)})
    except ExpressionError:
        return "rejected"
    return "byte code" if made.evaluation == "ByteCode" else "engine"


def table() -> str:
    """Return the table of features."""
    lines = ["| feature | example | evaluated |", "| --- | --- | --- |"]
    for group, features in FEATURES.items():
        lines.append(f"| **{group}** | | |")
        for name, text in features.items():
            lines.append(f"| {name} | `{_in_table(text)}` | {evaluation(text)} |")
    return "\n".join(lines) + "\n"


def functions() -> str:
    """Return the table of functions and macros."""
    lines = ["| function | result | example | value |", "| --- | --- | --- | --- |"]
    for group, entries in FUNCTIONS.items():
        lines.append(f"| **{group}** | | | |")
        lines += [_line([each.text for each in signatures(name)], entry) for name, entry in entries.items()]
    lines.append("| **Macros** | | | |")
    lines += [_line([written], entry) for written, entry in MACROS.items()]
    return "\n".join(lines) + "\n"


def _line(written: Sequence[str], entry: Entry) -> str:
    calls = ", ".join(f"`{_in_table(each)}`" for each in written)
    return f"| {calls} | {entry.meaning} | `{_in_table(entry.example)}` | `{_in_table(entry.gives)}` |"


def _in_table(text: str) -> str:
    return text.replace("|", "\\|")


def page() -> str:
    """Return the page with both tables."""
    text = PAGE.read_text()
    for name, made in zip(SECTIONS, (functions(), table()), strict=True):
        begin, end = f"<!-- {name}: written by make crds -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{made}\n{end}{after}"
    return text


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())
