"""Paths of fields that documents name, such as `spec.match`: the CustomResourceDefinition has them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from support.docs.pages import CHECKOUT

DOCUMENTS: Final = [
    one
    for one in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("charts/*/*.md"), *CHECKOUT.glob("docs/**/*.md"))
    if not one.is_relative_to(CHECKOUT / "docs" / "decisions") and one.name != "CHANGELOG.md"  # what was
]
OF_OTHER_KINDS: Final = {
    "spec.nodeName": "Pod",
    "spec.schedulingGates": "Pod",
    "spec.schedulingGroup": "Pod",
    "spec.workloadRef": "Pod of Kubernetes 1.35",
    "spec.template.metadata.labels": "NodePool of Karpenter",
    "spec.uninstall.disableHooks": "HelmRelease of Flux",
}
_PATH: Final = re.compile(r"`((?:spec|status)\.[A-Za-z][A-Za-z0-9.\[\]]*)[`:]")
_CRD: Final = yaml.safe_load((CHECKOUT / "crds" / "fairlead.dev_schedulerextenderpolicies.yaml").read_text())


def paths(schema: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the path of every field, of a list with `[]` at its end and without."""
    for name, field in schema.get("properties", {}).items():
        path = f"{above}.{name}" if above else name
        yield path
        if field.get("type") == "array":
            yield f"{path}[]"
            yield from paths(field["items"], f"{path}[]")
        else:
            yield from paths(field, path)


KNOWN: Final = {*paths(_CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])} | {*OF_OTHER_KINDS}


def unknown(text: str) -> list[str]:
    """Return the paths in backquotes that no object has."""
    found = {re.sub(r"\[\d+\]", "[]", one) for one in _PATH.findall(text)}
    return sorted(found - KNOWN)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: str(one.relative_to(CHECKOUT)))
def test_a_document_names_fields_that_exist(document: Path) -> None:
    assert unknown(document.read_text()) == []


def test_a_field_that_does_not_exist_is_found() -> None:
    assert unknown("`spec.scheduler.name`, `spec.filters[2].expression` and `spec.match`") == ["spec.scheduler.name"]
