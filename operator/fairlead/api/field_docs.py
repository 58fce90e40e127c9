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
    classes = (one for one in model.__mro__ if issubclass(one, BaseModel) and one is not BaseModel)
    inherited = (docs[name] for docs in map(_own_docs, classes) if name in docs)
    return model.model_fields[name].description or next(inherited, "")


def read_field_docs(base: type[BaseModel]) -> None:
    """Read the documentation of `base` and of all models that are made from it: a server reads no files later."""
    _own_docs(base)
    for model in base.__subclasses__():
        read_field_docs(model)


@cache
def _own_docs(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the documentation of the fields that a model itself defines."""
    return dict(_documented(model))


def _documented(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
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
