"""The kind of policies on an API server that tests share, and an end for policies that a leader held."""

from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from generate.crds import FILE

from fairlead.api.names import API_VERSION, PLURAL
from testbed.api import Api, wait_for

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = f"/apis/{API_VERSION}/{PLURAL}"


@contextmanager
def policies_served(api: Api) -> Iterator[None]:
    """Serve the CRD from the first look on; it has gone, with all policies, before it is made again."""
    crd = yaml.safe_load(FILE.read_text())
    path = f"{_CRDS}/{crd['metadata']['name']}"
    api.create(_CRDS, crd)
    wait_for("the CRD to be served", lambda: _is_established(api, path))
    wait_for("policies to be listed", lambda: api.exists(POLICIES))
    try:
        yield
    finally:
        let_all_go(api)
        api.delete(path)
        wait_for("the CRD to be gone", lambda: not api.exists(path))
        wait_for("policies not to be listed", lambda: not api.exists(POLICIES))


def let_go(api: Api, name: str) -> None:
    """Delete a policy, whoever held it. A leader that is still there holds it again: it has to be gone by then."""
    if api.exists(f"{POLICIES}/{name}"):
        api.patch(f"{POLICIES}/{name}", {"metadata": {"finalizers": None}})
        api.delete(f"{POLICIES}/{name}")


def let_all_go(api: Api) -> None:
    """Of all policies."""
    for policy in api.items(POLICIES):
        let_go(api, policy["metadata"]["name"])


def _is_established(api: Api, path: str) -> bool:
    said = api.get(path).get("status", {}).get("conditions") or []  # null before anybody looked
    conditions = {one["type"]: one for one in said}
    assert conditions.get("NonStructuralSchema", {}).get("status") != "True", conditions
    return str(conditions.get("Established", {}).get("status")) == "True"
