"""Writes the reference page of the custom resource from the CRD, so that it says what `kubectl explain` says."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairlead.api import crdgen
from generate.crds import installed_policy

PAGE = Path(__file__).parents[2] / "docs/reference/schedulerextenderpolicy.md"
HEAD = """# SchedulerExtenderPolicy

Every field of the resource, as `kubectl explain schedulerextenderpolicy` tells it. This page is written by `make crds`.
What the API server checks beyond single fields stands under the part that it is about.
"""


def page() -> str:
    """The page as it should be."""
    crd = crdgen.custom_resource_definition(installed_policy())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    parts = [HEAD]
    for name in ("spec", "status"):
        parts += _section(name, schema["properties"][name])
    return "\n".join(parts)


def _section(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A part of the resource: its fields, then the parts below it."""
    yield f"## `{path}`\n"
    yield f"{_line(schema)}\n"
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- {rule.get('message') or 'checked: ' + rule['messageExpression']}"
    if schema.get("x-kubernetes-validations"):
        yield ""
    fields = schema.get("properties", {})
    yield "| field | type | what |"
    yield "| --- | --- | --- |"
    required = schema.get("required", ())
    for name, field in fields.items():
        needed = " (required)" if name in required else ""
        yield f"| `{name}`{needed} | {_type(field)} | {_line(field)} |"
    yield ""
    for name, field in fields.items():
        below = field.get("items", field)
        if "properties" in below:
            yield from _section(f"{path}.{name}{'[]' if 'items' in field else ''}", below)


def _type(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_type(field['items'])}, at most {field['maxItems']}"
    if field["type"] == "object":
        values = field.get("additionalProperties")
        return f"map of {_type(values)}, at most {field['maxProperties']}" if values else "object"
    bounds = [f"from {field['minimum']}"] if "minimum" in field else []
    bounds += [f"to {field['maximum']}"] if "maximum" in field else []
    bounds += [f"at most {field['maxLength']} characters"] if "maxLength" in field else []
    return ", ".join([field["type"], *bounds])


def _line(field: Mapping[str, Any]) -> str:
    return " ".join(str(field.get("description", "")).split()).replace("|", "\\|")


def write() -> None:
    """Write what is generated here."""
    PAGE.write_text(page())
