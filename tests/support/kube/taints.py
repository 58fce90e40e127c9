"""Taints of nodes that were just created."""

from testbed.api import Api, wait_for


def wait_until_untainted(api: Api, *nodes: str) -> None:
    """Return once nodes have lost the taint not-ready, with which they are created and which a controller removes."""
    for node in nodes:
        path = f"/api/v1/nodes/{node}"
        wait_for(f"{node} to have no taint", lambda path=path: not api.get(path)["spec"].get("taints"))  # type: ignore[misc]
