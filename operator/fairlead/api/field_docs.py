"""Documentation of fields: the string under each in the source of its model.

It is read when the CRD is made or an error repeats it. pydantic would parse the source of every model as it is made,
which is a third of the time in which models load.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


def field_doc(model: type[BaseModel], name: str) -> str:
    """Return the documentation of a field; "" if it has none, or if the source is not there."""
    return model.model_fields[name].description or _docs(model).get(name, "")


def read_field_docs(base: type[BaseModel]) -> None:
    """Read the documentation of each model that is made from `base`: a process that serves reads no files later."""
    for model in base.__subclasses__():
        _docs(model)
        read_field_docs(model)


@cache
def _docs(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the documentation of a model's fields, also of those that it inherits."""
    classes = [one for one in reversed(model.__mro__) if issubclass(one, BaseModel) and one is not BaseModel]
    return {name: text for one in classes for name, text in _own_docs(one)}


def _own_docs(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(dedent(inspect.getsource(model)))
    except (OSError, TypeError):  # of a model that was made from another one, or in a bundle without sources
        return
    for body in (one.body for one in tree.body if isinstance(one, ast.ClassDef)):
        for field, below in pairwise(body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    yield name, inspect.cleandoc(text)
