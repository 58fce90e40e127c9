import random
import socket
from pathlib import Path

import pytest

from testbed import layout
from testbed.errors import ClusterError
from testbed.layout import Layout

_PORTS = ("api_port", "etcd_port", "etcd_peer_port", "manager_port")


def _same() -> random.Random:
    return random.Random(1)  # noqa: S311  what is picked must be the same each time


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


def test_its_ports_are_four_and_no_other_clusters(own_cache: Path) -> None:
    first = layout.with_free_ports(Layout("one", "1.36.3"), randomly=_same())
    assert len(_ports(first)) == 4
    again = layout.with_free_ports(Layout("two", "1.36.3"), randomly=_same())
    assert _ports(again) == _ports(first)  # nobody has them yet
    first.save()
    second = layout.with_free_ports(Layout("two", "1.36.3"), randomly=_same())
    assert not _ports(first) & _ports(second)


def test_its_own_ports_are_not_another_clusters(own_cache: Path) -> None:
    first = layout.with_free_ports(Layout("one", "1.36.3"), randomly=_same())
    first.save()
    assert _ports(layout.with_free_ports(first, randomly=_same())) == _ports(first)


def test_a_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not layout.is_free(taken.getsockname()[1])


def test_where_no_port_is_free_it_says_so(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "is_free", lambda _: False)
    with pytest.raises(ClusterError, match="no four free ports"):
        layout.with_free_ports(Layout("one", "1.36.3"))
