"""Policies that nobody would write who wants anything else than to keep others from being served."""

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from fairlead.cel.check import MAX_BYTES
from fairlead.cel.functions.regex import PATTERNS_MAX

TOKENS: Final = (
    *("pod", "node", "free['cpu']", "variables", "metadata", "labels", "has", "exists", "x", "in"),
    *("[", "]", "(", ")", "{", "}", "'a'", "1", "1.0", "+", "-", "!", "&&", "||", "?", ":", ".", ",", "==", "<"),
    *('"', "'", "`", "\\", " ", "\n", "\t", "é", "\U0001f600", "//", "r'", "b'", "u"),
)


def filled(part: str, join: str = "||", head: str = "", tail: str = "") -> str:
    """As long as an expression may be; `{i}` counts."""
    left, parts = MAX_BYTES - len((head + tail).encode()), list[str]()
    while (one := part.replace("{i}", str(len(parts)))) and len((one + join).encode()) <= left:
        parts.append(one)
        left -= len((one + join).encode())
    return head + join.join(parts) + tail


def nested(around: Callable[[str], str], inner: str, times: int = 28) -> str:
    """Return a text nested in itself."""
    for _ in range(times):
        inner = around(inner)
    return inner


def soup(seed: int) -> str:
    """Tokens at random."""
    chance, text = random.Random(seed), ""  # noqa: S311 - the same each time
    while len(text.encode()) < MAX_BYTES - 16:
        text += chance.choice(TOKENS) + chance.choice(("", " "))
    return text


def bound(inner: str, of: str = "x{0}+x{0}", times: int = 27) -> str:
    """Names that stand for each other: the last for very much, which is compared with itself."""
    text = f"x{times}==x{times}"
    for at in range(times, 0, -1):
        text = f"cel.bind(x{at},{of.format(at - 1)},{text})"
    return f"cel.bind(x0,{inner},{text})"


EXPRESSIONS: Final[dict[str, str]] = {
    "comparisons": filled("node.metadata.labels['a'] == 'b'"),
    "different comparisons": filled("node.metadata.labels['k{i}']=='a'"),
    "different comparisons at once": filled("node.metadata.labels['k{i}']=='a'", "&&"),
    "two of each": filled("(node.metadata.labels['a{i}']=='x'||node.metadata.labels['b{i}']=='x')", "&&"),
    "optional labels": filled("node.metadata.labels[?'k{i}'].orValue('')!='a'", "&&"),
    "labels of the pod": filled("pod.metadata.labels['k{i}']=='a'"),
    "labels as numbers": filled("pod.metadata.labels['a']<'1'"),
    "amounts": filled("free['cpu']>1.0"),
    "resources that are none": filled("free['cpx{i}']>1.0"),
    "constants": filled("true"),
    "numbers in a list": filled("1", ",", "1 in [", "]"),
    "texts in a list": filled("''", ",", "'' in [", "]"),
    "lists in a list": filled("[]", ",", "[", "].size()>0"),
    "a map": filled("{i}:1", ",", "{", "}.size()>0"),
    "sums": filled("1", "+", tail=">0"),
    "constant calls": filled("math.abs({i})==1"),
    "constant times": filled("duration('{i}s')<duration('1s')"),
    "constant texts": filled("'a'+'b{i}'=='ab'"),
    "divisions by zero": filled("1/0==1"),
    "some divisions by zero": filled("1/0==1")[:2000].rpartition("||")[0],
    "formats that raise": filled("'%d{i}'.format(['x'])==''"),
    "zones that there are not": filled("now.getHours('Z{i}')==1"),
    "a long text": "'" + "a" * (MAX_BYTES - 12) + "'=='a'",
    "blanks": " " * (MAX_BYTES - 8) + "true",
    "comments": filled("//", "\n", tail="\ntrue"),
    "macros in a row": filled("pods.exists(p,p.spec.priority>1)"),
    "a wide macro": filled("p.spec.priority>1", "||", "pods.exists(p,", ")"),
    "macros in each other": nested(lambda text: f"[1].exists(x,{text})", "true"),
    "maps in each other": nested(lambda text: f"[1].map(x,{text})", "1", 24) + ".size()>0",
    "macros on each other": "[1]" + ".filter(x,x>0)" * 28 + ".size()>0",
    "names in each other": nested(lambda text: f"cel.bind(x,1,{text})", "true"),
    **{f"{k} optMap": "pod.metadata.?labels" + ".optMap(x,x)" * k + ".hasValue()" for k in (5, 7, 8, 11, 200)},
    "an unknown type": filled("dyn(pod).a.b==1"),
    "brackets": "(" * 2040 + "true" + ")" * 2040,
    "minus": "-" * 4000 + "1>0",
    "not": "!" * 4000 + "true",
    "dots": filled("a", "."),
    "choices": filled("free['cpu']>{i}.0?true:", "", tail="false"),
    "names that there are not": filled("a{i}"),
    "functions that there are not": filled("f{i}(1)"),
    "fields that there are not": filled("pod.metdata"),
    "wrong types": filled("1=='a'"),
    "has of variables": filled("has(variables.v)"),
    "a variable, often": filled("variables.v"),
    "quotes": "'" * 4000,
    "letters that are none": "é" * 2000,
    "a pattern that repeats": f"node.metadata.name.matches('{'(a{1,100}){1,10}' * 20}')",
    "a pattern of letters": "node.metadata.name.matches(r'" + r"\pL{1,99}" * 300 + "')",
    "alternatives of letters": "node.metadata.name.matches(r'" + r"\pL1|" * 30 + "')",
    "patterns": filled(r"''.matches(r'\pL{9}{i}')"),
    "replacements": filled("regex.replace('a','b','c')==''"),
    "ranges": filled("lists.range(9).size()>1"),
    "texts in parts": filled("''.split('').size()>1"),
    "a slip behind blanks": "f(" + " " * 2040 + "a" + " " * 2040 + "+ ;",
    "quotes that are escaped": (r"'\\'\\" * 1000)[:MAX_BYTES],
    "double quotes that are escaped": (r'"\\"\\"' * 1000)[:MAX_BYTES],
    "texts that double": bound("'a'"),
    "lists that double": bound("[1]"),
    "lists of lists that double": bound("[1]", "[x{0},x{0}]", 12),
    "maps that double": bound("{'a':1}", "{{'a':x{0},'b':x{0}}}", 12),
    "names of pods that double": bound("pod.metadata.name"),
    "lists that double, often": "||".join([bound("[1]", times=4)] * 9),
    "constants that cost": "||".join(f"lists.range(9000).map(x,x)==[{at}]" for at in range(60)),
    "constants that must hold and cost": "&&".join(f"lists.range(9000).map(x,x)!=[{at}]" for at in range(60)),
    "constants that are sorted": "||".join(f"lists.range(9000).sort()==[{at}]" for at in range(99)),
    "constants to compare with": "||".join(["pod.spec.priority==lists.range(9000).map(x,x).size()"] * 50),
    "deep lists in a list": "[" + ",".join(["[[[[[[]]]]]]"] * 140) + "]==[]",
    "deep lists that are compared": "||".join(["[[[[[[[[[[[[]]]]]]]]]]]]==[[]]"] * 64),
    "texts of the pod": "&&".join(["'a'+pod.metadata.name==pod.metadata.name"] * 80),
    "patterns, as many as there may be": "||".join(rf"''.matches(r'\pL{{9}}{at}')" for at in range(PATTERNS_MAX)),
    **{f"soup {seed}": soup(seed) for seed in range(8)},
}


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    """The object."""
    header = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "x"}}
    return {**header, "spec": spec}


def of(expression: str) -> dict[str, Any]:
    """A policy with the expression as a filter, and a variable that it may use."""
    variables = [{"name": "v", "expression": "pod.spec.priority>1"}]
    return policy({"variables": variables, "filters": [{"name": "f", "expression": expression}]})


def everywhere(expression: str) -> dict[str, Any]:
    """A policy that has it in each of the 144 places where one may stand."""

    def rules(prefix: str, count: int) -> list[dict[str, Any]]:
        return [{"name": f"{prefix}{at}", "expression": expression} for at in range(count)]

    annotations = [{"key": f"fairlead.dev/a{at}", "expression": f"string({expression})"[:4096]} for at in range(16)]
    return policy(
        {
            "match": {"conditions": rules("c", 16)},
            "variables": rules("v", 32),
            "filters": rules("f", 32),
            "scores": rules("s", 32),
            "preemption": {"protect": rules("p", 16)},
            "binding": {"annotations": annotations},
        }
    )


def objects() -> Iterator[tuple[str, Any]]:
    """Whole objects, whatever the schema says of them."""
    yield "unknown fields", policy({f"x{at}": 1 for at in range(60_000)})
    yield "unknown fields at the top", {**policy({}), **{f"x{at}": 1 for at in range(60_000)}}
    yield "unknown fields in rules", policy({"filters": [{f"x{at}": 1 for at in range(99)}] * 32})
    yield "bad rules", policy({"filters": [{"name": at, "expression": []} for at in range(10_000)]})
    yield "many labels", policy({"match": {"podSelector": {"matchLabels": {f"k{at}": "" for at in range(50_000)}}}})
    yield (
        "much metadata",
        {**policy({}), "metadata": {"name": "x", "annotations": {f"k{at}": "" for at in range(50_000)}}},
    )
    yield "lists in lists", policy({"filters": [[[[1] * 9] * 99] * 99] * 99})
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    yield "deep", policy({"filters": deep})
    yield "a long name", policy({"filters": [{"name": "x" * 1_000_000, "expression": "x" * 1_000_000}]})
    chain = [{"name": "v0", "expression": "pod.spec.priority"}]
    chain += [{"name": f"v{at}", "expression": f"variables.v{at - 1} + variables.v{at - 1}"} for at in range(1, 32)]
    yield "variables that double", policy({"variables": chain})
    for sums in (1, 3, 10):
        chain = [{"name": "v0", "expression": "pod.spec.priority"}]
        chain += [{"name": f"v{at}", "expression": f"variables.v{at - 1}" + "+1" * sums} for at in range(1, 32)]
        yield f"variables in each other, {sums} deep", policy({"variables": chain})
    chain = [{"name": "v0", "expression": "[1]"}]
    chain += [{"name": f"v{at}", "expression": f"[[variables.v{at - 1}]]"} for at in range(1, 32)]
    yield "lists in each other", policy({"variables": chain})
    chain = [{"name": "v0", "expression": "pod.spec.priority"}]
    chain += [{"name": f"v{at}", "expression": f"variables.v{at - 1}+1"} for at in range(1, 31)]
    on_engine = "now.getHours(pod.metadata.name)==variables.v30 && " + "!!" * 50 + "(1==1)"
    yield "variables on the engine", policy({"variables": chain, "filters": [{"name": "f", "expression": on_engine}]})
