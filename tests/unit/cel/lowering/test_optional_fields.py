"""A field of what an optional holds, chosen at run time: where the engine raises and where it gives up."""

from itertools import product
from types import SimpleNamespace

import pytest

from fairlead.cel.check import VALUE, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.engine.evaluate import engine_inputs, evaluate
from fairlead.cel.lowering.program import Program, translated
from fairlead.cel.values.errors import Abort, CelError
from fairlead.cel.values.structs import empty, from_json

HELD = ("timestamp(1)", "1", "'s'", "[1]", "pods[0]", "{'a': 1}", "{'b': 1}", "null", "optional.of(1)")
WRAPPED = ("dyn(optional.of({}))", "optional.of(dyn({}))", "dyn({})")
ACCESS = ("{}.?a.hasValue()", "type({}.a) == int", "has({}.a)", "{}[?'a'].hasValue()", "{}.?metadata.hasValue()")
RULES = Environment(RULE)
PODS = [from_json("PlacedPod", {"metadata": {"name": "p"}})]


def of_engine(text: str) -> object:
    """What the engine makes of it."""
    try:
        return evaluate(check(text, RULES, VALUE).compiled, engine_inputs({"pods": PODS})).value()
    except (CelError, Abort) as error:
        return type(error).__name__


def of_lowered(text: str) -> object:
    """What lowered code makes of it."""
    pod = SimpleNamespace(pod=empty("Pod"), namespaceObject=empty("Namespace"), request={})
    try:
        return Program(check(text, RULES, VALUE).checked).for_pod(pod)(SimpleNamespace(pods=PODS), 0)
    except Abort as error:
        return type(error).__name__
    except (CelError, KeyError, IndexError) as error:
        return type(translated(error)).__name__


@pytest.mark.parametrize(("held", "wrapped"), [*product(HELD, WRAPPED)])
def test_both_agree(held: str, wrapped: str) -> None:
    for access in ACCESS:
        text = access.format(wrapped.format(held))
        assert of_lowered(text) == of_engine(text), text
