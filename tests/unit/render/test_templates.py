import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.render.templates import RenderError, TemplateEngine, as_value, read, written

text = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4))


@given(values)
@example("a\nkind: Secret")
@example("\"}\n---\nkind: 'Secret'")
@example("yes")
@example("1e3")
@example("&a")
@example("{{ 7 * 7 }}")
@example("{% raw %}")
@example("\x00\x7f\x85\u2028\ufeff\U0001f600")
@example([1e16, 1e-7, -5e-324, 1.5e300, -0.0])
@example({"<<": "a", "": None})
@example({"k" * 2000: {"k" * 2000: "v" * 2000}})
def test_whatever_goes_into_a_template_comes_out_as_it_is(value: Any) -> None:
    engine = TemplateEngine({"a": "before: 1\nhere: {{ value }}\nlist:\n- {name: {{ value }}}\nafter: 2\n"})
    (got,) = engine.render("a", value=value)
    assert got == {"before": 1, "here": value, "list": [{"name": value}], "after": 2}
    assert repr(got["here"]) == repr(value)  # true is not 1
    assert yaml.safe_load(as_value(value)) == value


@given(st.dictionaries(text, values, max_size=4))
@example({"k" * 2000: {"k" * 2000: "v" * 2000}})
@example({"a": "two\nlines\n", "b": "\n  indented\n\n", "c": "trailing \n", "d": "\ttab\nx", "e": "a\r\nb"})
def test_what_is_written_is_what_is_read(obj: dict[str, Any]) -> None:
    assert read(written([obj])) == obj
    assert [*yaml.safe_load_all(written([obj, obj]))] == [obj, obj]


@given(st.dictionaries(text, scalars, max_size=4))
def test_the_order_of_keys_does_not_count(obj: dict[str, Any]) -> None:
    assert written([obj]) == written([dict(reversed(obj.items()))])


def test_what_is_the_same_twice_is_written_twice() -> None:
    shared = {"a": ["b"]}
    assert written([{"x": shared, "y": shared}]) == "x:\n  a:\n  - b\n'y':\n  a:\n  - b\n"


@pytest.mark.parametrize(
    ("template", "values", "want"),
    [
        ("a: {{ nobody }}", {}, "'nobody' is undefined"),
        ("a: {{ some.thing }}", {"some": {}}, "has no attribute 'thing'"),
        ("{% if nobody %}{% endif %}", {}, "'nobody' is undefined"),
        ("a: {{ some }}", {"some": {"set"}}, "this set cannot be written"),
        ("a: {{ some }}", {"some": math.nan}, "this float cannot be written"),
        ("a: {{ some }}", {"some": [-math.inf]}, "this float cannot be written"),
        ("a: [", {}, "while parsing"),
        ("- a", {}, "not an object"),
        ("{% if %}", {}, "Expected an expression"),
    ],
)
def test_a_template_that_is_wrong_is_never_rendered(template: str, values: dict[str, object], want: str) -> None:
    with pytest.raises(RenderError, match=want) as error:
        TemplateEngine({"some.yaml": template}).render("some.yaml", **values)
    assert str(error.value).startswith("some.yaml: ")


def test_a_template_that_is_not_there_is_said_by_its_name() -> None:
    with pytest.raises(RenderError, match=r"gone\.yaml"):
        TemplateEngine({}).render("gone.yaml")
