"""Expressions that are deep or huge: lowered, or refused with a reason; never a traceback."""

from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace

import pytest

from fairlead.cel.analysis.node_facts import NODES_MAX
from fairlead.cel.engine.environment import RULE, environment
from fairlead.cel.lowering.program import OF_NODE, OF_POD, Program
from fairlead.cel.syntax.ast import Checked, Type
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.values.errors import CelError, NotLoweredError
from fairlead.cel.values.structs import from_json

POD = SimpleNamespace(**dict.fromkeys(OF_POD))
NODE = SimpleNamespace(**{name: from_json("Node", {}) if name == "node" else {} for name in OF_NODE})

NESTED = {
    "additions": "+".join(["1"] * 32),
    "lists": "[" * 31 + "1" + "]" * 31,
    "conditionals": "node.metadata.name == '' ? 1 : " * 25 + "1",
    "comparisons": "true" + " == true" * 31,
    "calls": "node.metadata.name" + ".trim()" * 29,
    "bindings": "".join(f"cel.bind(v{at}, 1 / size('a'), " for at in range(25)) + "v1 + v2" + ")" * 25,
    "loops": "".join(f"[1].all(x{at}, x{at} > 0 && " for at in range(5)) + "1 / 0 > 0" + ")" * 5,
    "errors that are absorbed": "(".join(["1 / size('') > 0 && "] * 12) + "false" + ")" * 11,
}


def checked(text: str, variables: Mapping[str, Type] | None = None) -> Checked:
    return decode(environment(RULE, variables or {}).compile(text).serialize())


def variables_of(first: str, each: str, count: int) -> dict[str, Checked]:
    """Variables each of which uses the one before."""
    types = {f"v{at}": Type("int") for at in range(count)}
    made = {"v0": checked(first, types)}
    return made | {f"v{at}": checked(each.format(f"variables.v{at - 1}"), types) for at in range(1, count)}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_nesting_to_the_limit_of_the_parser_is_lowered(text: str) -> None:
    program = Program(checked(text))
    program.check()
    with suppress(CelError):
        program.for_pod(POD)(NODE, 0)


def test_what_python_cannot_nest_is_left_to_the_engine() -> None:
    text = "".join(f"[1].all(x{at}, 1 / x{at} > 0 && " for at in range(12)) + "true" + ")" * 12
    with pytest.raises(NotLoweredError, match="nested"):
        Program(checked(text)).check()


def test_variables_that_double_are_refused_with_the_number() -> None:
    variables = variables_of("node.metadata.name.size()", "{0} + {0}", 20)
    root = checked("variables.v19 > 1", {"v19": Type("int")})
    with pytest.raises(NotLoweredError, match=f"more than {NODES_MAX} nodes"):
        Program(root, variables).check()


def test_variables_that_nest_are_refused_with_the_number() -> None:
    variables = variables_of("node.metadata.name.size()", "1 + (2 + (3 + (4 + {0})))", 40)
    root = checked("variables.v39 > 1", {"v39": Type("int")})
    with pytest.raises(NotLoweredError, match="more than 100 levels"):
        Program(root, variables).check()


def test_as_many_levels_as_are_allowed_are_lowered() -> None:
    variables = variables_of("node.metadata.name.size()", "1 + (2 + (3 + {0}))", 24)
    Program(checked("variables.v23 > 1", {"v23": Type("int")}), variables).check()
