"""Rendering of templates to objects.

Every output of a template is written as one YAML value, so that no text is ever read as another type. The result is
parsed, so that neither the order nor the comments of a template are part of it.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from jinja2 import DictLoader, Environment, StrictUndefined, TemplateError, Undefined

from fairlead.render.object_names import Object
from fairlead.yaml_output import to_yaml

_UNSAFE = re.compile(r'[^\x20-\x7e]|["\\]')
_WIDE = 1 << 20
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if it is available


class RenderError(Exception):
    """Template that cannot be rendered, or does not produce objects: a bug of ours."""


@dataclass(frozen=True, slots=True)
class TemplateEngine:
    """Engine with templates by name."""

    sources: Mapping[str, str]
    _environment: Environment = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        environment = Environment(
            loader=DictLoader(self.sources),
            undefined=StrictUndefined,
            finalize=as_value,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # noqa: S701 - this is no HTML; `finalize` escapes
        )
        object.__setattr__(self, "_environment", environment)

    def render(self, template: str, /, **values: object) -> list[Object]:
        """Return the objects of a template, in its order."""
        try:
            text = self._environment.get_template(template).render(values)
            found = [one for one in yaml.load_all(text, _Loader) if one is not None]
        except (TemplateError, yaml.YAMLError, TypeError) as error:
            raise RenderError(f"{template}: {error}") from error
        if not all(isinstance(one, dict) for one in found):
            raise RenderError(f"{template}: a document is not an object")
        return found


def as_value(value: object) -> str:
    """Return a value as one line of YAML that is read as the same value."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            # in YAML 1.1 a number with an exponent needs a dot
            return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
        case str():
            return '"' + _UNSAFE.sub(_escaped, value) + '"'
        case Mapping():
            # a key without "?" may have at most a thousand characters
            return "{" + ", ".join(f"? {as_value(str(key))} : {as_value(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(as_value, value)) + "]"
        case Undefined():
            return str(value)  # raises
        case _:
            raise TypeError(f"this {type(value).__name__} cannot be written")


def written(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as readable YAML: sorted, and the same bytes for the same objects."""
    return "---\n".join(map(_written, objects))


def read(text: str) -> Object:
    """Return the object in a text of `written`."""
    obj: Object = yaml.load(text, _Loader)  # noqa: S506 - it is safe
    return obj


def _written(obj: Mapping[str, Any]) -> str:
    return to_yaml(obj, sort_keys=True, blocks=True, width=_WIDE)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
