"""What is found about a pod: it has what is published, or what was, or lacks it although it should have it."""

from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.cel.values.structs import from_json
from fairlead.policy.affinity.published_pods import as_created
from fairlead.webhook.publication.affinity_feed import CurrentAffinity
from fairlead.webhook.publication.pod_findings import PodFinding, find_about, manifest_of
from support.published import SCHEDULER, affinity, current, part, required, requirement

AT = {"a": requirement("pool", "a"), "b": requirement("pool", "b"), "ab": requirement("pool", "a", "b")}
DISK, ZONE = requirement("disk"), requirement("zone", "x")
ONLY_A, ONLY_B, BOTH = part("p", [AT["a"]]), part("p", [AT["b"]]), part("p", [AT["ab"]])
OF_RED, WITH_DISK = part("red", [AT["a"]], team="red"), part("disk", [DISK])
EITHER = part("p", [AT["a"]], [AT["b"]])
SINCE, CREATED = 1_000, 2_000
CONTROLLED = [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u-j", "controller": True}]


def pod(version: str | None = None, *terms: Any, created_s: int = CREATED, owners: Any = (), **labels: str) -> Any:
    annotations = {} if version is None else {"fairlead.dev/published-affinity": version}
    metadata = {"name": "x", "namespace": "ml", "uid": "u-x", "labels": labels, "annotations": annotations}
    spec: dict[str, Any] = {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "a", "resources": {"limits": {"gpu": "1"}}}],
    }
    if terms:
        spec["affinity"] = required(*terms)
    made: Any = from_json("Pod", {"metadata": {**metadata, "ownerReferences": [*owners]}, "spec": spec})
    return _created(made, created_s)


def _created(pod: Any, created_s: int) -> Any:
    text = f"1970-01-01T{created_s // 3600:02}:{created_s // 60 % 60:02}:{created_s % 60:02}Z"
    stamped: Any = from_json("Pod", {"metadata": {"creationTimestamp": text}})
    return replace(pod, metadata=replace(pod.metadata, creationTimestamp=stamped.metadata.creationTimestamp))


CASES: dict[str, tuple[Any, CurrentAffinity, PodFinding]] = {
    "it has what is published": (pod("new", [AT["a"]]), current("new", ONLY_A), PodFinding(current=("p",))),
    "of several policies those that are for it": (
        pod("new", [AT["a"], DISK], team="blue"),
        current("new", ONLY_A, OF_RED, WITH_DISK),
        PodFinding(current=("p", "disk")),
    ),
    "a looser rule": (pod("old", [AT["a"]]), current("new", BOTH), PodFinding(outdated=("p",))),
    "a tighter rule": (pod("old", [AT["ab"]]), current("new", ONLY_A), PodFinding(outdated=("p",))),
    "another policy was edited": (
        pod("old", [AT["a"], DISK]),
        current("new", BOTH, WITH_DISK),
        PodFinding(outdated=("p",)),
    ),
    "a policy for others was edited": (pod("old", [DISK]), current("new", OF_RED, WITH_DISK), PodFinding()),
    "alternatives, of which each term has one": (
        pod("old", [ZONE, AT["b"]], [ZONE, AT["a"]]),
        current("new", EITHER),
        PodFinding(),
    ),
    "alternatives, of which one term has none": (
        pod("old", [ZONE, AT["b"]], [ZONE]),
        current("new", EITHER),
        PodFinding(outdated=("p",)),
    ),
    "nothing is published for it any more": (
        pod("old", [AT["a"]]),
        current("new", OF_RED, before=[ONLY_A]),
        PodFinding(outdated=("p",)),
    ),
    "nothing was published for it by what changed": (
        pod("old", [DISK], team="blue"),
        current("new", WITH_DISK, before=[OF_RED]),
        PodFinding(),
    ),
    "the edit was a moment ago": (
        pod("old", [AT["a"]]),
        current("new", BOTH, since_s=CREATED + 950),
        PodFinding(),
    ),
    "an edit a minute ago": (
        pod("old", [AT["a"]]),
        current("new", BOTH, since_s=CREATED + 940),
        PodFinding(outdated=("p",)),
    ),
    "it was created a moment ago": (pod("old", [AT["a"]], created_s=CREATED + 950), current("new", BOTH), PodFinding()),
    "nothing at all is published": (pod("old", [AT["a"]]), current(""), PodFinding()),
    "it has none": (pod(), current("new", ONLY_A), PodFinding(missed=("p",))),
    "it has none, of several policies": (
        pod(team="red"),
        current("new", ONLY_A, OF_RED, WITH_DISK),
        PodFinding(missed=("p", "red", "disk")),
    ),
    "none is for it": (pod(team="blue"), current("new", OF_RED), PodFinding()),
    "it is not to have any": (pod("None"), current("new", ONLY_A), PodFinding()),
    "a bare pod with terms of its own": (pod(None, [ZONE]), current("new", ONLY_A), PodFinding()),
    "one with a controller": (pod(None, [ZONE], owners=CONTROLLED), current("new", ONLY_A), PodFinding(missed=("p",))),
    "its own terms say it already": (pod(None, [AT["a"]], owners=CONTROLLED), current("new", ONLY_A), PodFinding()),
    "it was created 5 s after it": (pod(), current("new", ONLY_A, since_s=CREATED - 5), PodFinding()),
    "it was created 6 s after it": (pod(), current("new", ONLY_A, since_s=CREATED - 6), PodFinding(missed=("p",))),
    "it was created before it": (pod(), current("new", ONLY_A, since_s=CREATED + 500), PodFinding()),
}


@pytest.mark.parametrize("case", CASES)
def test_findings(case: str) -> None:
    about, published, expected = CASES[case]
    assert find_about(about, {}, published, CREATED + 1_000) == expected


def test_a_pod_of_the_mirror_reads_as_the_one_that_was_created() -> None:
    published = affinity("new", part("gpu", [AT["a"]], team="red"))
    for made in (pod(team="red"), pod(None, [ZONE], [DISK], team="red", owners=CONTROLLED)):
        plain = manifest_of(made)
        created: Any = as_created(plain, {}, published)
        again: Any = from_json("Pod", created)
        assert manifest_of(again) == created
        assert find_about(_created(again, CREATED), {}, current("new", *published["policies"]), 0.0).current == ("gpu",)
