"""Signs of life of a kubelet, from an API server that was restarted with it."""

from typing import TYPE_CHECKING, Any, cast

from testbed.providers import kind_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from testbed.api import Api

_READY = {"spec": {"podCIDR": "10.244.0.0/24"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class _Server:
    """The Ready condition is of before the stop from the beginning; the Lease is renewed at the third question."""

    def __init__(self) -> None:
        self.renew_times: Iterator[str] = iter(["old", "old", "new"])
        self.asked: list[str] = []

    def text(self, _: str) -> str:
        return "ok"

    def exists(self, _: str) -> bool:
        return True

    def items(self, _: str) -> list[Any]:
        return []

    def get(self, path: str) -> Any:
        self.asked.append(path.rsplit("/", 2)[1])
        return {"spec": {"renewTime": next(self.renew_times)}} if "leases" in path else _READY


def test_a_node_that_was_restarted_is_ready_once_its_kubelet_has_renewed_its_lease() -> None:
    server = _Server()
    kind_nodes.settle(cast("Api", server), ["spec-control-plane"], renewed=True)
    assert server.asked[-3:] == ["leases", "leases", "nodes"]
    assert [*server.renew_times] == []


def test_a_new_node_is_taken_at_its_word() -> None:
    server = _Server()
    kind_nodes.settle(cast("Api", server), ["spec-control-plane"], renewed=False)
    assert "leases" not in server.asked
