"""Templates to objects.

What a template puts out is written as one YAML value, whatever it is: no text can become anything else than that text.
What was rendered is read back, so that neither the order nor the comments of a template are part of the outcome.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from jinja2 import DictLoader, Environment, StrictUndefined, TemplateError, Undefined

from fairlead.yaml_output import to_yaml

Object = dict[str, Any]

_UNSAFE = re.compile(r'[^\x20-\x7e]|["\\]')
_WIDE = 1 << 20
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where there is one


class RenderError(Exception):
    """A template that cannot be rendered, or does not give objects: a fault of ours."""


@dataclass(frozen=True, slots=True)
class TemplateEngine:
    """Templates, by their names."""

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
        """The objects that a template gives, in its order."""
        try:
            text = self._environment.get_template(template).render(values)
            found = [one for one in yaml.load_all(text, _Loader) if one is not None]
        except (TemplateError, yaml.YAMLError, TypeError) as error:
            raise RenderError(f"{template}: {error}") from error
        if not all(isinstance(one, dict) for one in found):
            raise RenderError(f"{template}: there is something that is no object")
        return found


def as_value(value: object) -> str:
    """A value as YAML in one line, which reads back as the same value."""
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            # YAML 1.1 knows a number with an exponent by its dot only
            return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
        case str():
            return '"' + _UNSAFE.sub(_escaped, value) + '"'
        case Mapping():
            # a key without its "?" may have a thousand characters at most
            return "{" + ", ".join(f"? {as_value(str(key))} : {as_value(one)}" for key, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(as_value, value)) + "]"
        case Undefined():
            return str(value)  # which raises
        case _:
            raise TypeError(f"this {type(value).__name__} cannot be written")


def written(objects: Iterable[Mapping[str, Any]]) -> str:
    """Objects as YAML for people: sorted, the same bytes for the same objects."""
    return "---\n".join(map(_written, objects))


def read(text: str) -> Object:
    """What `written` made of one object."""
    obj: Object = yaml.load(text, _Loader)  # noqa: S506 - it is safe
    return obj


def _written(obj: Mapping[str, Any]) -> str:
    return to_yaml(obj, sort_keys=True, blocks=True, width=_WIDE)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
