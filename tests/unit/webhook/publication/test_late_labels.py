"""Published keys that came on a node after it had joined, as the mirror saw them come."""

import pytest

from fairlead.cooperative import finish
from fairlead.time_units import SECOND_NS
from fairlead.webhook.publication.late_labels import late_labels, published_keys
from support.mirror import CREATED_NS, FedMirror
from support.published import part, requirement

Times = dict[str, int]
"""Seconds after a node has joined at which its labels come."""


def seen(labels: Times) -> FedMirror:
    told = FedMirror()
    for at_s in sorted({0, *labels.values()}):
        told.now = CREATED_NS + at_s * SECOND_NS
        told.node(labels={key: "x" for key, when in labels.items() if when <= at_s})
    return told


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"pool": 0}, {}),
        ({"pool": 12}, {"pool": 12}),
        ({"pool": 12, "disk": 0, "other": 5}, {"pool": 12}),
        ({"pool": 12, "disk": 90}, {"pool": 12, "disk": 90}),
        ({"pool": 86_400}, {"pool": 86_400}),
        ({"pool": 86_401}, {}),  # a person has labelled it
        ({"pool": 12, "karpenter.sh/registered": 12}, {}),  # with those of the template
        ({"pool": 20, "karpenter.sh/registered": 12}, {"pool": 20}),
        ({}, {}),
    ],
)
def test_late_labels(labels: Times, found: Times) -> None:
    late = finish(late_labels(seen(labels).mirror.nodes.views, ["pool", "disk"]))
    assert {key: [(one.node, one.delay_s) for one in each] for key, each in late.items()} == {
        key: [("n1", delay_s)] for key, delay_s in found.items()
    }


def test_what_was_there_before_the_mirror_is_not_late() -> None:
    told = FedMirror()
    told.node(labels={"pool": "x"})
    assert not finish(late_labels(told.mirror.nodes.views, ["pool"]))


def test_keys_that_a_cloud_writes_are_in_every_template() -> None:
    one = part("p", [requirement("pool", "a"), requirement("topology.kubernetes.io/zone", "x")], [requirement("disk")])
    assert published_keys(one) == {"pool", "disk"}
