import json
from collections.abc import Iterator
from typing import Annotated, ClassVar

import pytest
import yaml
from generate.crds import FILE, installed_policy
from pydantic import Field

from fairlead.api import crdgen
from fairlead.api.params import Listed, Params
from fairlead.api.v1alpha1 import policy_model
from fairlead.api.values import Duration, within
from policies.good import Object

_TYPES = {"object", "array", "string", "integer", "number", "boolean"}
_KEYWORDS = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "format",
    "default",
}
_BOUNDS = {
    *("minLength", "maxLength", "minItems", "maxItems", "maxProperties", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum"),
}
_EXTENSIONS = {
    *("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
    "x-kubernetes-preserve-unknown-fields",
}
_CLIENT_SIDE_APPLY_MAX = 256 * 1024


class Favourite(Params):
    """Likes some nodes."""

    hour: Annotated[int, Field(gt=0, lt=24)] = 1
    """When."""
    wait: Annotated[Duration, within("0s", "1h")] | None = None
    """How long."""


def crd_of(**filters: type[Params]) -> Object:
    return crdgen.custom_resource_definition(policy_model(filters, {}))


def spec_of(crd: Object) -> Object:
    (version,) = crd["spec"]["versions"]
    spec: Object = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


@pytest.fixture(scope="module")
def crd() -> Object:
    made: Object = yaml.safe_load(FILE.read_text())
    return made


def test_the_file_is_what_the_models_say() -> None:
    made = crdgen.custom_resource_definition(installed_policy())
    assert FILE.read_text() == crdgen.as_yaml(made), "run `make crds`"


def test_what_client_side_apply_keeps_of_it_fits_twice_into_annotations(crd: Object) -> None:
    kept = json.dumps(crd, separators=(",", ":"))  # kubectl keeps it as JSON, which is shorter than the file
    assert len(kept) < _CLIENT_SIDE_APPLY_MAX / 2


def test_the_same_models_give_the_same_bytes() -> None:
    assert crdgen.as_yaml(crd_of(favourite=Favourite)) == crdgen.as_yaml(crd_of(favourite=Favourite))


def test_the_schema_is_structural(crd: Object) -> None:
    (version,) = crd["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert root["type"] == "object"
    assert [*_not_structural(root, "")] == []


def test_everything_in_the_spec_has_a_bound_and_a_description_and_no_default(crd: Object) -> None:
    spec = spec_of(crd)
    assert [*_not_bounded(spec, "spec")] == []
    assert [*_undocumented(spec, "spec")] == []
    assert [path for path, schema in _walk(spec, "spec") if "default" in schema] == []


def test_only_the_strategies_that_are_given_are_in_the_schema() -> None:
    fields = spec_of(crd_of(favourite=Favourite))["properties"]["filters"]["items"]["properties"]
    assert {"favourite", "expression"} <= {*fields}
    assert "nodeReadiness" not in fields
    assert "favourite" not in spec_of(crd_of())["properties"]["filters"]["items"]["properties"]
    assert fields["favourite"] == {
        "description": "Likes some nodes.",
        "type": "object",
        "properties": {
            "hour": {
                "description": "When.",
                "type": "integer",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 24,
                "exclusiveMaximum": True,
            },
            "wait": {
                "description": "How long.",
                "type": "string",
                "minLength": 1,
                "maxLength": 21,
                "x-kubernetes-validations": [
                    {
                        "rule": "self.matches(r'^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$')"
                        " && duration(self) >= duration('0s') && duration(self) <= duration('1h')",
                        "message": "write a duration such as 90s, 5m or 1h30m, from 0s to 1h",
                    }
                ],
            },
        },
    }


@pytest.mark.parametrize("rules", ["filters", "scores"])
def test_parameters_of_custom_strategies_are_kept_as_they_are(rules: str) -> None:
    custom = spec_of(crd_of())["properties"][rules]["items"]["properties"]["custom"]
    assert custom["required"] == ["name"]
    assert {key: value for key, value in custom["properties"]["params"].items() if key != "description"} == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


def test_the_hash_changes_with_the_schema() -> None:
    hashes = {str(one["metadata"]["annotations"]) for one in (crd_of(), crd_of(), crd_of(favourite=Favourite))}
    assert len(hashes) == 2


class Undocumented(Params):
    """Says nothing of its field."""

    what: int = 0


class TwoTypes(Params):
    """Takes two types."""

    what: int | str = 0
    """What."""


class Endless(Params):
    """Contains itself."""

    more: "Endless | None" = None
    """More."""


class Loose(Params):
    """A map of anything."""

    what: dict[str, object] = Field(default_factory=dict)
    """What."""


class Unkeyed(Params):
    """A list whose items nothing tells apart."""

    class Item(Params):
        """An item without a name."""

        size: int = 0
        """Its size."""

    items: Listed[Item] = ()
    """The items."""


class Pairs(Params):
    """A tuple."""

    pair: tuple[int, str] = (0, "")
    """A pair."""


REFUSED: dict[str, tuple[type[Params], str]] = {
    "a field without a description": (Undocumented, "does not document what"),
    "a field of two types": (TwoTypes, "one type, not 2"),
    "a model that contains itself": (Endless, "Endless contains itself"),
    "a map of anything": (Loose, "a map must declare the type of its values"),
    "a list of objects without keys": (Unkeyed, "has the list key name, which is not required"),
    "a tuple of several types": (Pairs, "prefixItems"),
}


@pytest.mark.parametrize(("model", "want"), REFUSED.values(), ids=REFUSED)
def test_no_crd_is_made_of(model: type[Params], want: str) -> None:
    with pytest.raises(ValueError, match=want):
        crd_of(model=model)


def test_a_strategy_cannot_take_the_name_of_a_field() -> None:
    with pytest.raises(ValueError, match="a filter has a field of its own named onError"):
        policy_model({"onError": Favourite}, {})
    with pytest.raises(ValueError, match="a score has a field of its own named custom"):
        policy_model({}, {"custom": Favourite})


class Atomic(Params):
    """A list that is one value."""

    class Item(Params):
        """An item."""

        list_keys: ClassVar[tuple[str, ...]] = ()
        size: int = 0
        """Its size."""

    items: Annotated[Listed[Item], Field(max_length=3)] = ()
    """The items."""


def test_lists_say_how_they_are_merged(crd: Object) -> None:
    spec = spec_of(crd)["properties"]
    assert spec["filters"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["binding"]["properties"]["annotations"]["x-kubernetes-list-map-keys"] == ["key"]
    assert spec["match"]["properties"]["namespaces"]["x-kubernetes-list-type"] == "set"
    atomic = spec_of(crd_of(atomic=Atomic))["properties"]["filters"]["items"]["properties"]["atomic"]
    assert atomic["properties"]["items"]["x-kubernetes-list-type"] == "atomic"


def _walk(schema: Object, path: str) -> Iterator[tuple[str, Object]]:
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from _walk(one, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _walk(schema[key], f"{path}[]")


def _not_structural(schema: Object, path: str) -> Iterator[str]:
    """The rules that Kubernetes' documentation gives for structural schemas, as far as we use them."""
    for at, one in _walk(schema, path):
        if unknown := {*one} - _KEYWORDS - _BOUNDS - _EXTENSIONS:
            yield f"{at}: {unknown}"
        if one.get("type") not in _TYPES:
            yield f"{at}: no type"
        if "properties" in one and "additionalProperties" in one:
            yield f"{at}: fields and a map at once"
        if {*one.get("required", [])} - {*one.get("properties", {})}:
            yield f"{at}: requires what is not there"
        if (one["type"] == "array") != ("items" in one):
            yield f"{at}: items belong to lists"
        keys = {*one.get("x-kubernetes-list-map-keys", [])}
        if keys - {*one.get("items", {}).get("required", [])}:
            yield f"{at}: the keys {keys} are not required"
        if bool(keys) != (one.get("x-kubernetes-list-type") == "map"):
            yield f"{at}: a list is a map by its keys"
        for rule in one.get("x-kubernetes-validations", []):
            unknown = {*rule} - {"rule", "message", "messageExpression", "fieldPath", "reason"}
            if unknown or "\n" in rule["message"]:
                yield f"{at}: {rule}"


def _not_bounded(schema: Object, path: str) -> Iterator[str]:
    bound = {"string": "maxLength", "array": "maxItems", "integer": "maximum", "number": "maximum"}
    for at, one in _walk(schema, path):
        wanted = "maxProperties" if "additionalProperties" in one else bound.get(one["type"])
        if wanted and wanted not in one and "enum" not in one:
            yield at


def _undocumented(schema: Object, path: str) -> Iterator[str]:
    return (at for at, one in _walk(schema, path) if not one.get("description") and not at.endswith("[]"))
