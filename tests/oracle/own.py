"""The engine with the functions that are ours."""

import functools
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from fairlead.cel.functions import extensions, quantity
from oracle.engine import EXTENSIONS, Outcome, ask


def ask_with_own(expression: str) -> Outcome:
    """Evaluate on an engine that has our functions; quantities come back as such."""
    return ask(expression, _environment())


@functools.cache
def _environment() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="quantity.proto", package="kubernetes", syntax="proto3")
    file.message_type.add(name="Quantity").field.add(name="text", number=1, type=9, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(extensions.QUANTITY))

    overloads: dict[str, list[Any]] = {}
    for declaration in extensions.DECLARATIONS:
        function = declaration.for_engine(
            to_message=lambda value: message(text=quantity.canonical(value)),
            from_message=lambda value: quantity.from_canonical(value.text),
        )
        parameters = [cel.Type(parameter) for parameter in declaration.parameters]
        overloads.setdefault(declaration.name, []).append(
            cel.Overload(
                declaration.overload_id, cel.Type(declaration.result), parameters, declaration.is_member, function
            )
        )
    listed = "".join(f"- name: {name}\n" for name in EXTENSIONS)
    return cel.NewEnv(
        pool,
        config=cel.NewEnvConfigFromYaml(f"name: x\nextensions:\n{listed}"),
        functions=[cel.FunctionDecl(name, of_name) for name, of_name in overloads.items()],
    )
