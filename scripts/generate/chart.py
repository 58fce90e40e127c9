"""Writes what of the chart is made from models: values.yaml, its schema, the table in its README, and its CRD."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from fairlead.api.params import Params
from fairlead.api.values import VALIDATIONS
from generate import crds
from generate.chart_values import Values

CHART = Path(__file__).parents[2] / "charts" / "fairlead"
HEAD = """# The values of the chart, as they are when nothing is said. values.schema.json refuses what is not listed.
# Written by `make crds` from scripts/generate/chart_values.py and operator/fairlead/render: do not edit.
"""
BEGIN, END = "<!-- values: written by `make crds` -->\n", "<!-- end of values -->\n"
_KEPT = {"type", "enum", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "required"}
_MATCHES = re.compile(r"self\.matches\(r'\^(.*?)\$'\)")
_UNKNOWN_TO_GO = ("(?!", "(?=")
_NO_TEXTS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_WIDE = 116

Schema = dict[str, Any]


def schema() -> Schema:
    """Of the values: nothing that is not listed, but in what Kubernetes knows and we pass on."""
    raw = Values.model_json_schema(by_alias=True)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values", **_plain(raw, raw["$defs"])}


def _plain(node: Schema, defs: Schema) -> Schema:
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]] | {key: value for key, value in node.items() if key != "$ref"}
    made = {key: node[key] for key in node if key in _KEPT}
    if "description" in node:
        made = {"description": " ".join(node["description"].split())} | made
    if "const" in node:
        made["enum"] = [node["const"]]
    if patterns := _patterns(node):
        made["pattern"] = patterns[0]
    if "properties" in node:
        made["properties"] = {name: _plain(one, defs) for name, one in node["properties"].items()}
    if node.get("type") == "object":
        made |= _values_of(node, defs)
    if "items" in node:
        made["items"] = _plain(node["items"], defs)
    return made


def _values_of(node: Schema, defs: Schema) -> Schema:
    """What a map holds. Helm tells a wrong place for `propertyNames`, and the right one for a key without a pattern."""
    values = node.get("additionalProperties", False)
    if not isinstance(values, dict):
        return {"additionalProperties": values}
    if keys := _patterns(node.get("propertyNames", {})):
        return {"patternProperties": {keys[0]: _plain(values, defs)}, "additionalProperties": False}
    return {"additionalProperties": _plain(values, defs)}


def _patterns(node: Schema) -> list[str]:
    """Helm is written in Go, whose patterns look neither ahead nor back; the operator refuses the rest."""
    rules = [_MATCHES.match(rule["rule"]) for rule in node.get(VALIDATIONS, ())]
    found = [rule[1] for rule in rules if rule]
    return [f"^({one})$" for one in found if not any(mark in one for mark in _UNKNOWN_TO_GO)]


def values_yaml() -> str:
    """All values with their defaults, each with what it is."""
    return HEAD + "\n".join(_values(Values(), 0)) + "\n"


def _values(of: Params, depth: int) -> Iterator[str]:
    indent = "  " * depth
    for name, field in type(of).model_fields.items():
        value = getattr(of, name)
        if not depth:
            yield ""
        yield from textwrap.wrap(
            " ".join((field.description or "").split()),
            _WIDE,
            initial_indent=f"{indent}# ",
            subsequent_indent=f"{indent}# ",
        )
        if isinstance(value, Params):
            yield f"{indent}{field.alias}:"
            yield from _values(value, depth + 1)
        else:
            plain = {field.alias: json.loads(json.dumps(value))}
            dumped: str = yaml.dump(plain, Dumper=_Quoted, default_flow_style=False, width=_WIDE)
            yield from textwrap.indent(dumped.strip(), indent).splitlines()


class _Quoted(yaml.SafeDumper):
    """Texts that would be something else without quotes have double ones."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = re.fullmatch(r"[A-Za-z][\w./-]*", text) and text.lower() not in (
        "true",
        "false",
        "null",
        "yes",
        "no",
        "on",
        "off",
    )
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Quoted.add_representer(str, _text)


def table() -> str:
    """Each value, its default and what it is, for the README."""
    lines = ["| value | default | what |", "| --- | --- | --- |"]
    lines += _rows(schema(), Values().model_dump(by_alias=True), "")
    return "\n".join(lines) + "\n"


def _rows(node: Schema, default: Any, path: str) -> Iterator[str]:
    for name, one in node["properties"].items():
        here = f"{path}{name}"
        of = default.get(name) if isinstance(default, Mapping) else None
        said = one.get("description", "").replace("|", "\\|")
        if "properties" in one:
            yield from _rows(one, of, f"{here}.")
            continue
        required = name in node.get("required", ())
        shown = "required" if required else f"`{json.dumps(of)}`"
        choices = f" ({', '.join(f'`{choice}`' for choice in one['enum'])})" if "enum" in one else ""
        yield f"| `{here}` | {shown} | {said}{choices} |"
        if "properties" in one.get("items", {}):
            yield from _rows(one["items"], _defaults(here), f"{here}[].")


def _defaults(path: str) -> Any:
    """Of an item of a list: those of a scheduler, once it has its name."""
    if path != "schedulers":
        return {}
    from fairlead.render.operator_settings import SchedulerSettings

    return SchedulerSettings(name="some").model_dump(by_alias=True)


def readme(text: str) -> str:
    """The README with the table as it should be."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


def files() -> dict[Path, str]:
    """What is written, by where."""
    page = CHART / "README.md"
    return {
        CHART / "values.yaml": values_yaml(),
        CHART / "values.schema.json": json.dumps(schema(), indent=2) + "\n",
        CHART / "files" / "crd.yaml": crds.FILE.read_text(),
        page: readme(page.read_text()),
    }


def write() -> None:
    """Write what is generated here."""
    for file, text in files().items():
        file.write_text(text)
