import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.webhook.data_sources.node_names import NodeNames
from support.webhook.polled import nodes

NODES = nodes(
    {
        "a": {"InternalIP": ["10.0.0.1", "fd00::1"], "Hostname": ["host-a"], "ExternalIP": ["1.2.3.4"]},
        "b": {"InternalIP": ["10.0.0.2", "10.0.0.9"], "Hostname": ["b"]},
        "c": {"InternalIP": ["10.0.0.9"], "Hostname": ["a"]},
        "d.example.com": {},
    }
)


@pytest.mark.parametrize(
    ("label", "node"),
    [
        ("a", "a"),  # although it is the host name of another
        ("a:9100", "a"),
        ("host-a", "a"),
        ("host-a:9100", "a"),
        ("10.0.0.1", "a"),
        ("10.0.0.1:9100", "a"),
        ("fd00::1", "a"),
        ("[fd00::1]:9100", "a"),
        ("[fd00::1]", "a"),
        ("b", "b"),
        ("d.example.com:10250", "d.example.com"),
        ("10.0.0.9:9100", None),  # two have it
        ("1.2.3.4:9100", None),  # not an address by which nodes are told apart
        ("10.0.0.1:http", None),
        ("10.0.0.1:", None),
        ("[fd00::1]9100", None),
        ("fd00::1:9100", None),  # could be an address
        ("[fd00::1]:", None),
        ("[fd00::1", None),
        ("[]", None),
        (":9100", None),
        ("", None),
        ("e", None),
        ("A", None),
    ],
)
def test_a_node_is_named_by_its_name_or_an_address_with_or_without_a_port(label: str, node: str | None) -> None:
    assert NodeNames(NODES)(label) == node


def test_a_node_that_is_gone_names_nothing() -> None:
    some = nodes({"a": {"InternalIP": ["10.0.0.1"]}, "b": {"InternalIP": ["10.0.0.1"]}})
    assert NodeNames(some)("10.0.0.1") is None
    some.remove("b")
    assert [NodeNames(some)(one) for one in ("10.0.0.1", "b")] == ["a", None]


@given(st.text(alphabet="[]:.a1", max_size=12))
def test_whatever_a_label_says_it_names_a_node_or_none(label: str) -> None:
    assert NodeNames(NODES)(label) in {None, "a", "b", "c", "d.example.com"}


def test_others_choose_the_labels_so_that_few_are_kept() -> None:
    names = NodeNames(NODES)
    for number in range(1000):
        assert names(f"stranger-{number}") is None
        assert names(f"a:{number}") == "a"
    assert len(names._known) == 4 * len(NODES.slots)
