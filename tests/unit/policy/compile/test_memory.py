"""What a compiled policy keeps: the engine's environments take half a MiB each, so that it keeps none."""

import pytest

from fairlead.cel.engine.environment import CONDITION, RULE, environment
from fairlead.cel.syntax.ast import Type
from support.policy import policy

LOWERED = "node.metadata.name != 'b'"


def test_policies_with_the_same_variables_share_an_environment() -> None:
    one = {"a": Type("bool"), "b": Type("list", (Type("string"),))}
    assert environment(RULE, one) is environment(RULE, dict(reversed(one.items())))
    assert environment(RULE, {}) is not environment(CONDITION, {})
    assert environment(RULE, {}) is not environment(RULE, {"a": Type("bool")})
    assert environment(RULE, {"a": Type("bool")}) is not environment(RULE, {"a": Type("string")})


@pytest.mark.parametrize("variables", [{}, {"v": LOWERED}])
def test_a_compiled_policy_keeps_nothing_of_the_engine(variables: dict[str, str]) -> None:
    made = policy(
        variables=variables,
        filters={"f": f"{LOWERED} && {' && '.join(f'variables.{one}' for one in variables) or 'true'}"},
    )
    assert [one.expression.compiled for one in made.expressions] == [None] * (1 + len(variables))
    assert "_for_engine" not in {name for one in made.expressions for name in vars(one)}
