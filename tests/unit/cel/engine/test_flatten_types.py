"""The types of what `flatten()` returns: those of the elements of its lists, where the checker knows them."""

import pytest

from fairlead.cel.check import VALUE, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Call, walk

IMAGES = "pods.map(q, q.spec.containers.map(c, c.image))"
KNOWN = {
    f"{IMAGES}.flatten()": "list<string>",
    f"{IMAGES}\n . flatten (\n)": "list<string>",
    f"{IMAGES}.flatten().map(i, i.size())": "list<int>",
    f"{IMAGES}.flatten()[0] + '.flatten()'": "string",
    "[[[1]]].flatten().flatten()[0] + 1": "int",
    "['é'].map(x, [x]).flatten() + [['b']].flatten()": "list<string>",
    "node.metadata.labels[?'a'].optMap(a, [[a]].flatten()).orValue([])": "list<string>",
}
UNKNOWN = {
    "[1].flatten()": "list<dyn>",
    "[1, [2]].flatten()": "list<dyn>",
    "[[1]].flatten(1)": "list<dyn>",
    "[[1, 'a']].flatten()": "list<dyn>",
    "[['a']].flatten().filter(i, i == 1)": "list<dyn>",
    "[[[[[1]]]]].flatten().flatten().flatten().flatten()": "list<dyn>",
}


@pytest.mark.parametrize(("text", "type_"), {**KNOWN, **UNKNOWN}.items(), ids=[*KNOWN, *UNKNOWN])
def test_the_type_is_that_of_the_lists_in_the_list(text: str, type_: str) -> None:
    assert str(check(text, Environment(RULE), VALUE).type) == type_


def test_a_call_keeps_its_function_and_its_place() -> None:
    text = f"{IMAGES}.flatten().exists(i, i == 'x')"
    checked = check(text, Environment(RULE), VALUE).checked
    (call,) = (node for node in walk(checked.root) if isinstance(node, Call) and node.function == "flatten")
    assert checked.overloads[call.id] == ("list_flatten",)
    assert text[checked.positions[call.id] :].startswith("().exists")
