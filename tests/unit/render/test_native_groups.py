"""Kubernetes' own groups: when a scheduler gets their gate, and what is said if it does not."""

from typing import Any

import pytest

from fairlead.render.extenders import Wiring
from support.render.schedulers import facts, named, planned

_DIGEST = f"sha256:{'a' * 64}"
_GATE = "--feature-gates=GenericWorkload=true"
_NOT_SERVED = (
    "the API server does not serve podgroups of scheduling.k8s.io/v1beta1: start each with "
    f"{_GATE} and --runtime-config=scheduling.k8s.io/v1beta1=true"
)

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], bool, str]] = {
    "all is there": ({}, {}, True, f"it runs with {_GATE}"),
    "a later version": ({"image": {"tag": "v1.38.0-rc.1"}}, {}, True, f"it runs with {_GATE}"),
    "a tag of a vendor": ({"image": {"tag": "v1.37.2-eks-1"}}, {}, True, f"it runs with {_GATE}"),
    "nothing was asked for": ({"groups": "Off"}, {}, False, "its setting groups is Off"),
    "no API": (
        {},
        {"pod_groups": False},
        False,
        _NOT_SERVED,
    ),
    "an API server is older": (
        {},
        {"server_versions": ("v1.36.3", "v1.37.1")},
        False,
        "an API server is v1.36.3, and Kubernetes has them from 1.37 on",
    ),
    "an older image": (
        {"image": {"tag": "v1.36.3"}},
        {},
        False,
        "its image is v1.36.3, and Kubernetes has them from 1.37 on",
    ),
    "an image by its digest": (
        {"image": {"digest": _DIGEST}},
        {},
        False,
        "its image has a digest and no tag, so its version is not known: set image.tag, too",
    ),
    "an image by both": ({"image": {"digest": _DIGEST, "tag": "v1.37.1"}}, {}, True, f"it runs with {_GATE}"),
    "a tag without a version": (
        {"image": {"tag": "latest"}},
        {},
        False,
        "its image has the tag latest, which names no version: set a tag that begins with one",
    ),
    "run by others": (
        {"management": "ConfigOnly"},
        {},
        False,
        f"you run it: start it with {_GATE}, which needs kube-scheduler 1.37",
    ),
    "run by others, no API": (
        {"management": "ConfigOnly"},
        {"server_versions": ("v1.35.4",)},
        False,
        "an API server is v1.35.4, and Kubernetes has them from 1.37 on",
    ),
    "the gate is set by hand": (
        {"groups": "Off", "featureGates": {"GenericWorkload": True}},
        {"pod_groups": False},
        True,
        "its setting featureGates has GenericWorkload: true",
    ),
    "the gate is off by hand": (
        {"featureGates": {"GenericWorkload": False}},
        {},
        False,
        "its setting featureGates has GenericWorkload: false",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whether_a_scheduler_places_them(case: str) -> None:
    fields, cluster, is_on, message = CASES[case]
    made = planned(Wiring(fails=True), facts(**({"pod_groups": True} | cluster)), **({"groups": "Auto"} | fields))
    assert (made.groups.is_on, made.groups.message) == (is_on, message)
    if fields.get("management") != "ConfigOnly":
        assert (_GATE in _arguments(made)) == is_on


@pytest.mark.parametrize(
    ("fields", "pod_groups", "may_be_on"),
    [
        ({"management": "ConfigOnly", "groups": "Auto"}, True, True),
        ({"management": "ConfigOnly", "groups": "Off"}, True, True),
        ({"management": "ConfigOnly", "groups": "Auto"}, False, False),
        ({"management": "ConfigOnly", "groups": "Off"}, False, False),
        ({"groups": "Auto"}, True, False),
        ({"groups": "Off"}, True, False),
    ],
)
def test_a_scheduler_that_others_run_may_place_them_wherever_they_are_served(
    fields: dict[str, Any], pod_groups: bool, may_be_on: bool
) -> None:
    assert planned(cluster=facts(pod_groups=pod_groups), **fields).groups.may_be_on == may_be_on


def test_it_is_one_of_several_gates() -> None:
    made = planned(cluster=facts(pod_groups=True), groups="Auto", featureGates={"Z": False, "A": True})
    assert _arguments(made)[-1] == "--feature-gates=A=true,GenericWorkload=true,Z=false"


def test_a_scheduler_that_is_rolled_back_says_what_its_pods_have() -> None:
    without, with_gate = (planned(cluster=facts(pod_groups=found), groups="Auto") for found in (False, True))
    kept = without.rolled_back_to(named(with_gate, "ConfigMap"))
    assert (kept.groups.is_on, kept.groups.message) == (True, f"it was rolled back to pods with {_GATE}")
    kept = with_gate.rolled_back_to(named(without, "ConfigMap"))
    assert (kept.groups.is_on, kept.groups.message) == (False, f"it was rolled back to pods without {_GATE}")
    assert with_gate.rolled_back_to(named(with_gate, "ConfigMap")).groups == with_gate.groups


def _arguments(made: Any) -> list[str]:
    spec = named(made, "Deployment")["spec"]["template"]["spec"]
    checked, runs = (
        [one for one in each["args"] if "gates" in one] for each in spec["initContainers"] + spec["containers"]
    )
    assert checked == runs, "the check of the configuration has the same gates"
    return list(runs)
