"""Generator of the CRD: the JSON schema of the models, converted to the structural schema of the API server.

Whatever a structural schema cannot express raises here, so that a new field fails in `make crds` and not on a cluster.
Nothing in `spec` has a default in the schema: an object stays as its owner wrote it.
"""

import hashlib
import json
from typing import Any

from pydantic import BaseModel

from fairlead.api import names
from fairlead.api.params import LIST_KEYS, PRESERVED
from fairlead.api.published_affinity import PublishedAffinity
from fairlead.api.values import VALIDATIONS
from fairlead.yaml_output import to_yaml

Schema = dict[str, Any]

_DROPPED = {"title", "default", "additionalProperties", "propertyNames", "const", LIST_KEYS}
_KEPT = {
    *("description", "type", "properties", "required", "items", "enum", "format", "pattern"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", VALIDATIONS, PRESERVED),
}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_EPOCH = "1970-01-01T00:00:00Z"

# Until an operator has observed an object, tools that wait for it must not take it for healthy.
_UNSEEN = {
    "conditions": [
        {
            "type": "Ready",
            "status": "Unknown",
            "reason": "Pending",
            "message": "Waiting for the operator",
            "lastTransitionTime": _EPOCH,
        }
    ]
}
_COLUMNS = (
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].reason'},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
    {"name": "Scheduler", "type": "string", "jsonPath": ".status.scheduler.name"},
    {"name": "Hash", "type": "string", "jsonPath": ".status.scheduler.configHash", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    # last, because its length is unbounded
    {"name": "Message", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].message'},
)

_PUBLISHED_COLUMNS = (
    {"name": "Policies", "type": "string", "jsonPath": ".spec.policies[*].name"},
    {"name": "Hash", "type": "string", "jsonPath": ".spec.hash"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def custom_resource_definition(policy: type[BaseModel]) -> Schema:
    """Return the CRD of a policy model of `policy_model`."""
    root = _root(policy)
    root["properties"]["status"]["default"] = _UNSEEN
    naming = {"kind": names.KIND, "plural": names.PLURAL, "shortNames": [names.SHORT_NAME]}
    version = {"additionalPrinterColumns": [*_COLUMNS], "subresources": {"status": {}}}
    return _definition(root, naming, version)


def published_affinity_definition() -> Schema:
    """Return the CRD of PublishedAffinity."""
    naming = {"kind": names.PUBLISHED_KIND, "plural": names.PUBLISHED_PLURAL}
    return _definition(_root(PublishedAffinity), naming, {"additionalPrinterColumns": [*_PUBLISHED_COLUMNS]})


def _root(model: type[BaseModel]) -> Schema:
    """Return the schema of a whole object."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    root = structural(raw, raw.get("$defs", {}))
    fields = root["properties"]
    name = fields["metadata"]["properties"]["name"]
    fields["apiVersion"] = {"type": "string", "description": fields["apiVersion"]["description"]}
    fields["kind"] = {"type": "string", "description": fields["kind"]["description"]}
    # A schema may restrict only the name in metadata, and not by CEL rules.
    fields["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "maxLength": name["maxLength"]}}}
    root["required"] = ["spec"]
    return root


def _definition(root: Schema, naming: Schema, version: Schema) -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{naming['plural']}.{names.GROUP}",
            "annotations": {names.SCHEMA_HASH_ANNOTATION: _hash(root)},
        },
        "spec": {
            "group": names.GROUP,
            "scope": "Cluster",
            "names": {
                "kind": naming["kind"],
                "listKind": f"{naming['kind']}List",
                "singular": naming["kind"].lower(),
                **{key: value for key, value in naming.items() if key != "kind"},
                "categories": [*names.CATEGORIES],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    **version,
                    "schema": {"openAPIV3Schema": root},
                }
            ],
        },
    }


def structural(node: Schema, defs: Schema, above: tuple[str, ...] = ()) -> Schema:
    """Return a structural schema: no references, only keywords that a CRD may use. Raises ValueError."""
    node, above = _resolved(node, defs, above)
    unknown = {*node} - _KEPT - _DROPPED - {"$defs"}
    if unknown:
        raise ValueError(f"a CRD does not support {', '.join(sorted(unknown))}: {json.dumps(node)[:200]}")
    made = {key: value for key, value in node.items() if key in _KEPT}
    if "description" in made:
        made["description"] = " ".join(made["description"].split())
    if "const" in node:
        made |= {"enum": [node["const"]], "type": _TYPES[type(node["const"])]}
    for side in ("Minimum", "Maximum"):
        if (bound := made.pop(f"exclusive{side}", None)) is not None:
            made |= {side.lower(): bound, f"exclusive{side}": True}
    if made.get("type") == "object":
        made |= _object(node, defs, above)
    if made.get("type") == "array":
        made |= _array(node, defs, above)
    return made


def _resolved(node: Schema, defs: Schema, above: tuple[str, ...]) -> tuple[Schema, tuple[str, ...]]:
    """Return the schema behind an optional field or a reference; keywords beside a reference win."""
    if "anyOf" in node:
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        options = [one for one in node["anyOf"] if one != {"type": "null"}]
        if len(options) != 1:
            raise ValueError(f"a field must have one type, not {len(options)}: {json.dumps(node)[:200]}")
        return _resolved(options[0] | rest, defs, above)
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name in above:
            raise ValueError(f"{name} contains itself")
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _resolved(defs[name] | rest, defs, (*above, name))
    return node, above


def _object(node: Schema, defs: Schema, above: tuple[str, ...]) -> Schema:
    if "properties" in node:
        fields = {name: structural(one, defs, above) for name, one in node["properties"].items()}
        if undocumented := [name for name, one in fields.items() if not one.get("description")]:
            raise ValueError(f"{node.get('title')} does not document {', '.join(undocumented)}")
        return {"properties": fields}
    if PRESERVED in node:
        return {}
    values = node.get("additionalProperties")
    if not isinstance(values, dict):
        if values is False:
            return {}  # an object without fields
        raise ValueError(f"a map must declare the type of its values: {json.dumps(node)[:200]}")
    # A CRD has no rules for the keys of a map, but a rule of the map can check each key.
    of_keys = [
        rule | {"rule": f"self.all(key, {rule['rule'].replace('self', 'key')})"}
        for rule in node.get("propertyNames", {}).get(VALIDATIONS, [])
    ]
    return {"additionalProperties": structural(values, defs, above)} | ({VALIDATIONS: of_keys} if of_keys else {})


def _array(node: Schema, defs: Schema, above: tuple[str, ...]) -> Schema:
    item, _ = _resolved(node["items"], defs, above)
    made: Schema = {"items": structural(node["items"], defs, above)}
    if made["items"]["type"] != "object":
        return made | {"x-kubernetes-list-type": "set"}
    keys = item.get(LIST_KEYS, [])
    if not keys:
        return made | {"x-kubernetes-list-type": "atomic"}
    if missing := {*keys} - {*made["items"].get("required", [])}:
        raise ValueError(f"{item.get('title')} has the list key {', '.join(sorted(missing))}, which is not required")
    return made | {"x-kubernetes-list-type": "map", LIST_KEYS: [*keys]}


def _hash(schema: Schema) -> str:
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:16]


def as_yaml(crd: Schema) -> str:
    """Return the text of the file in `crds/`, the same bytes every time."""
    head = "# Made by `make crds` from operator/fairlead/api and the installed strategies. Do not edit.\n"
    return head + to_yaml(crd)
