import socket
from pathlib import Path

import pytest

from testbed import cache, layout
from testbed.errors import ClusterError
from testbed.layout import Layout

_PORTS = ("api_port", "etcd_port", "etcd_peer_port", "manager_port")


def _ports(one: Layout) -> set[int]:
    return {getattr(one, port) for port in _PORTS}


def test_what_is_saved_is_loaded(own_cache: Path) -> None:
    saved = Layout("one", "1.36.3", network="10.89.3.0/24", api_port=21001)
    saved.save()
    assert layout.load("one") == saved


_BROKEN = {
    "no file": None,
    "half a file": '{"name": "one", ',
    "not an object": "[]",
    "a field that there is not": '{"name": "one", "kubernetes": "1.36.3", "color": "red"}',
    "a field missing": '{"name": "one"}',
}


@pytest.mark.parametrize("text", _BROKEN.values(), ids=_BROKEN)
def test_what_cannot_be_read_is_no_layout(text: str | None, own_cache: Path) -> None:
    if text is not None:
        file = layout.folder_of("one") / "layout.json"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert layout.load("one") is None


def test_without_a_sandbox_everything_is_on_loopback() -> None:
    assert (Layout("one", "1.36.3").server, Layout("one", "1.36.3").has_node) == ("https://127.0.0.1:6443", False)


def test_in_a_sandbox_it_is_the_second_address_of_its_network() -> None:
    one = Layout("one", "1.36.3", network="10.89.3.0/24")
    assert (one.server, one.has_node) == ("https://10.89.3.2:6443", True)


@pytest.fixture
def eight_ports(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """All the ports there are, of which nobody listens on any."""
    monkeypatch.setattr(layout, "_PORTS", range(1, 9))
    monkeypatch.setattr(layout, "is_free", lambda _: True)
    return {*range(1, 9)}


def test_its_ports_are_four_and_no_other_clusters(own_cache: Path, eight_ports: set[int]) -> None:
    first = layout.with_free_ports(Layout("one", "1.36.3"))
    assert len(_ports(first)) == 4
    first.save()
    second = layout.with_free_ports(Layout("two", "1.36.3"))
    assert _ports(second) == eight_ports - _ports(first)
    second.save()
    with pytest.raises(ClusterError, match="no 4 free ports"):
        layout.with_free_ports(Layout("three", "1.36.3"))
    layout.with_free_ports(first)  # its own are not another cluster's


def test_a_cluster_in_a_sandbox_takes_no_port_of_loopback(own_cache: Path, eight_ports: set[int]) -> None:
    Layout("one", "1.36.3", network="10.89.3.0/24", api_port=1, etcd_port=2, etcd_peer_port=3, manager_port=4).save()
    layout.with_free_ports(Layout("two", "1.36.3")).save()
    layout.with_free_ports(Layout("three", "1.36.3"))


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not layout.is_free(taken.getsockname()[1])


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/tmp/x", "a/b", "a b", "A", "-a", "a-", "a\n", "a" * 64])  # noqa: S108
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="cannot be the name of a cluster"):
        layout.folder_of(name)


@pytest.mark.parametrize("name", ["a", "fairlead", "my-cluster-2", "a" * 63])
def test_an_ordinary_name_is_a_folder_among_the_clusters(name: str) -> None:
    assert layout.folder_of(name).parent == cache.clusters()
