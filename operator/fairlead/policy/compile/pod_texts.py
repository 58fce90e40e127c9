"""Expressions of pods among the parameters of a strategy, such as the type of a pod."""

from fairlead.api.errors import FieldPath
from fairlead.api.params import pod_texts
from fairlead.api.rules import ScoreSpec
from fairlead.cel.check import STRING
from fairlead.cel.engine.environment import POD_TYPE
from fairlead.cooperative import Steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_compiler import ExpressionCompiler
from fairlead.policy.compile.expression_rules import error_verdict
from fairlead.policy.views.faults import RAISED
from fairlead.strategies.contract import TypeOf
from fairlead.strategies.facts import PodFacts, Unknown


def pod_texts_of(
    path: FieldPath, rule: ScoreSpec, expressions: ExpressionCompiler
) -> Steps[tuple[dict[str, CompiledExpression], bool]]:
    """Compile the expressions among the parameters of a rule, by field; report whether all of them compile."""
    compiled: dict[str, CompiledExpression] = {}
    if rule.strategy is None:
        return compiled, True
    strategy, params = rule.strategy
    wanted = [*pod_texts(params)]
    for name, at, text in wanted:
        made = yield from expressions.compile((*path, strategy, *at), text, POD_TYPE, STRING)
        if made is not None:
            compiled[name] = made
    return compiled, len(compiled) == len(wanted)


def pod_type_of(name: str, expression: CompiledExpression) -> TypeOf:
    """Return the function that gives the type of a pod by an expression."""

    def kind(pod: PodFacts) -> str | Unknown:
        try:
            found: str = expression.for_pod(pod)(None, 0)
        except RAISED as error:
            return error_verdict(error, rule=f"the type of rule {name}", written=expression.written)
        return found

    return kind
