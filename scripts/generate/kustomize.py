"""Writer of the OpenAPI schema for kustomize, which tells it by which field the items of lists are merged."""

import json
from pathlib import Path
from typing import Any

from fairlead.api import crdgen, names
from fairlead.strategies.registry import installed_policy

FILE = Path(__file__).parents[2] / "crds" / "kustomize" / "openapi.json"
Schema = dict[str, Any]


def schema() -> Schema:
    """Return the schema of policies, reduced to types and the keys of lists."""
    (version,) = crdgen.custom_resource_definition(installed_policy())["spec"]["versions"]
    whole = _reduced(version["schema"]["openAPIV3Schema"])
    kind = {"group": names.GROUP, "version": version["name"], "kind": names.KIND}
    whole["x-kubernetes-group-version-kind"] = [kind]
    group = ".".join(reversed(names.GROUP.split(".")))
    return {"definitions": {f"{group}.{version['name']}.{names.KIND}": whole}}


def _reduced(node: Schema) -> Schema:
    made: Schema = {"type": node["type"]} if "type" in node else {}
    if properties := node.get("properties"):
        made["properties"] = {name: _reduced(one) for name, one in properties.items() if name != "status"}
    if isinstance(values := node.get("additionalProperties"), dict):
        made["additionalProperties"] = _reduced(values)
    if "items" in node:
        made["items"] = _reduced(node["items"])
    if keys := node.get("x-kubernetes-list-map-keys"):
        (made["x-kubernetes-patch-merge-key"],) = keys
        made["x-kubernetes-patch-strategy"] = "merge"
    return made


def write() -> None:
    """Write what is generated here."""
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(schema(), indent=1) + "\n")
