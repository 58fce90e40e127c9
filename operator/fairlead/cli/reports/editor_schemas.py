"""JSON Schemas of policies and suites, with which editors complete fields and mark mistakes while one types.

An editor knows less than `fairlead lint` and `fairlead test`: expressions are texts to it, and no rule of a schema
spans fields.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api import names
from fairlead.api.crdgen import Schema, custom_resource_definition
from fairlead.api.params import LIST_KEYS, PRESERVED
from fairlead.api.values import VALIDATIONS
from fairlead.strategies.registry import installed_policy
from fairlead.suites.suite import Suite

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The dialect that every editor's YAML support reads."""
_OF_KUBERNETES: Final = frozenset({VALIDATIONS, LIST_KEYS, PRESERVED, "x-kubernetes-list-type"})
_SET_BY_THE_API_SERVER: Final = frozenset({"status"})


def policy_schema() -> Schema:
    """Return the schema of a policy, with the strategies that are installed."""
    crd = custom_resource_definition(installed_policy())
    (version,) = crd["spec"]["versions"]
    made = _standard(version["schema"]["openAPIV3Schema"])
    fields = made["properties"]
    api_version, kind = f"{names.GROUP}/{names.VERSION}", names.KIND
    fields["apiVersion"] |= {"enum": [api_version], "default": api_version}
    fields["kind"] |= {"enum": [kind], "default": kind}
    fields["metadata"] = {
        "type": "object",
        "description": "Metadata of the object, of which the name is needed.",
        "properties": {
            "name": {**fields["metadata"]["properties"]["name"], "description": "Name of the policy."},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["name"],
    }
    for name in _SET_BY_THE_API_SERVER:
        fields[name] = {"type": "object", "description": fields[name]["description"]}
    required = ["apiVersion", "kind", "metadata", "spec"]
    return {"$schema": DIALECT, "title": kind, **made, "required": required}


def suite_schema() -> Schema:
    """Return the schema of a suite of tests."""
    made: Schema = _without(Suite.model_json_schema(by_alias=True, ref_template="#/definitions/{model}"))
    return {"$schema": DIALECT, **{"definitions" if name == "$defs" else name: one for name, one in made.items()}}


SCHEMAS: Final[Mapping[str, Callable[[], Schema]]] = {"jsonschema": policy_schema, "jsonschema-suites": suite_schema}
"""The schemas by their output format of `fairlead crd`."""


def _standard(node: Schema) -> Schema:
    """Return a structural schema in the words of JSON Schema: unknown fields are errors, bounds are numbers."""
    made = {name: one for name, one in node.items() if name not in _OF_KUBERNETES and name != "default"}
    for side in ("minimum", "maximum"):
        exclusive = f"exclusive{side.capitalize()}"
        if made.pop(exclusive, False):
            made[exclusive] = made.pop(side)
    if "items" in made:
        made["items"] = _standard(made["items"])
    if "properties" in made:
        made["properties"] = {name: _standard(one) for name, one in made["properties"].items()}
        made["additionalProperties"] = False
    elif isinstance(values := made.get("additionalProperties"), dict):
        made["additionalProperties"] = _standard(values)
    return made


def _without(node: Any) -> Any:
    """Return a schema of pydantic without the names that it gives to fields, and without Kubernetes's words."""
    if isinstance(node, list):
        return [_without(one) for one in node]
    if not isinstance(node, dict):
        return node
    kept = {name: one for name, one in node.items() if name not in _OF_KUBERNETES}
    if isinstance(kept.get("title"), str):
        del kept["title"]
    return {name: _without(one) for name, one in kept.items()}
