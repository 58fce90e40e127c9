"""Where expressions are compared: the engine's environment, with variables of a policy and facts for both sides."""

from collections.abc import Mapping
from functools import cache

from cel_expr_python import cel

from differential.data import some_facts
from fairlead.cel.engine.environment import PROTECTION, environment
from fairlead.cel.engine.flatten_types import flatten_types_steps
from fairlead.cel.syntax.ast import Checked, Type
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cooperative import finish

VARIABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "number": ("int", ("pod.spec.priority", "pod.spec.priority + 1", "1 / pod.spec.priority", "request.size()")),
    "text": ("string", ("pod.metadata.name", "pod.metadata.labels['gpu']", "pod.metadata.labels[?'a'].orValue('any')")),
    "truth": (
        "bool",
        ("pod.spec.priority > 1", "request['cpu'] > 0.5", "pod.spec.containers.exists(c, c.name == 'a')"),
    ),
    "list": ("[int]", ("[1, 2, pod.spec.priority]", "pod.spec.containers.map(c, c.ports.size())")),
    "held": ("?string", ("pod.metadata.labels[?'gpu']", "pod.?spec.nodeName", "optional.none()")),
}
_TYPES = {"?string": Type("optional_type", (Type("string"),)), "[int]": Type("list", (Type("int"),))}


@cache
def env() -> cel.Env:
    return environment(PROTECTION, {name: _TYPES.get(type_, Type(type_)) for name, (type_, _) in VARIABLES.items()})


@cache
def activation(index: int) -> cel.Activation:
    return env().Activation(some_facts()[index].for_engine)


@cache
def variable(text: str) -> Checked:
    return typed(text, env().compile(text))


def typed(text: str, compiled: cel.Expression) -> Checked:
    """A checked expression with the types that lowering relies on."""
    return finish(flatten_types_steps(text, decode(compiled.serialize()), env()))
