"""Documentation of fields, and models that are not built before they are used."""

import subprocess
import sys
from typing import Annotated

import pytest
from pydantic import Field

from fairlead.api.field_docs import field_doc, read_field_docs
from fairlead.api.params import Params
from fairlead.api.rules import FilterSpec
from fairlead.strategies import installed
from fairlead.strategies.registry import policy_with


class _Base(Params):
    """Model with documented fields."""

    first: int
    """First line
    and second."""
    second: int
    third: Annotated[int, Field(description="said elsewhere")]
    """Not this."""


class _Made(_Base):
    """Model with one more."""

    fourth: int = 0
    """Last."""


_LOADED = """
import ast, inspect
from fairlead.strategies import installed
from fairlead.strategies.registry import policy_with

def refuse(*_, **__):
    raise AssertionError("the source of a model is parsed")

ast.parse = inspect.getsource = refuse
model = policy_with(installed())
spec = {"filters": [{"name": "a", "expression": "true", "reason": "no"}]}
parsed = model.model_validate(
    {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "p"}, "spec": spec}
)
from fairlead.api.params import Params

def below(of):
    return [of, *(one for sub in of.__subclasses__() for one in below(sub))]

models = below(Params)
print(len(models), *(one.__name__ for one in models if one.__pydantic_complete__))
"""


def test_the_text_under_a_field_documents_it() -> None:
    docs = {name: field_doc(_Made, name) for name in _Made.model_fields}
    assert docs == {"first": "First line\nand second.", "second": "", "third": "said elsewhere", "fourth": "Last."}


def test_once_all_are_read_no_source_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    read_field_docs(Params)

    def refuse(*_: object) -> None:
        raise AssertionError("the source of a model is read")

    monkeypatch.setattr("inspect.getsource", refuse)
    assert field_doc(_Made, "first") == "First line\nand second."
    assert field_doc(FilterSpec, "expression")


def test_models_that_are_made_of_others_have_their_documentation() -> None:
    spec = policy_with(installed()).model_fields["spec"].annotation
    assert isinstance(spec, type)
    assert issubclass(spec, Params)
    assert field_doc(spec, "filters").startswith("Rules that reject nodes.")


def test_a_policy_is_parsed_without_sources_and_builds_no_other_model() -> None:
    run = subprocess.run([sys.executable, "-c", _LOADED], check=False, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    count, *built = run.stdout.split()
    assert "SchedulerExtenderPolicy" in built
    assert len(built) < int(count) / 5, "else only models of which an instance is a default"
