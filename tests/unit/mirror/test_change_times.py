"""When labels became so, as this process saw it: what `holdOff` waits for."""

from fairlead.policy.views.pod_view import PodView
from support.mirror import CREATED_NS, FOUND, FedMirror
from support.policy import Evaluation, pod, policy

SECOND = 10**9
HOLD_OFF = policy(filters={"ready": {"nodeReadiness": {"labels": [{"key": "gpu", "value": "a"}], "holdOff": "20s"}}})


def _since(told: FedMirror, value: str | None = None) -> int | None:
    return told.view().since("labels", "gpu", value)


def test_what_was_so_at_first_sight_counts_from_the_creation_of_the_node() -> None:
    told = FedMirror()
    told.node(labels={"gpu": "a"}, annotations={"x": "1"})
    assert (_since(told), _since(told, "a"), _since(told, "b")) == (CREATED_NS, CREATED_NS, None)
    assert told.view().since("annotations", "x", None) == CREATED_NS
    assert told.view().since("labels", "x", None) is None


def test_a_key_that_comes_is_seen_then() -> None:
    told = FedMirror()
    told.node()
    told.now += 5
    told.node(labels={"gpu": "a"}, annotations={"gpu": "z"})
    assert (_since(told), _since(told, "a")) == (FOUND + 5, FOUND + 5)
    assert told.view().since("annotations", "gpu", "z") == FOUND + 5


def test_another_value_is_new_and_the_key_is_not() -> None:
    told = FedMirror()
    told.node(labels={"gpu": "a"})
    for at, value in enumerate("ba", start=1):
        told.now = FOUND + at
        told.node(labels={"gpu": value})
    assert (_since(told), _since(told, "a"), _since(told, "b")) == (CREATED_NS, FOUND + 2, None)


def test_a_key_that_went_begins_again() -> None:
    told = FedMirror()
    told.node(labels={"gpu": "a"})
    told.node(labels={"gpu": "b"})
    told.node()
    assert _since(told) is None
    assert told.mirror._entries["n1"]._change_times._stamps == {}  # keys that come and go do not add up
    told.now += 5
    told.node(labels={"gpu": "a"})
    assert (_since(told), _since(told, "a")) == (FOUND + 5, FOUND + 5)


def test_other_news_of_the_node_change_no_stamp() -> None:
    told = FedMirror()
    told.node()
    told.node(labels={"gpu": "a"})
    told.now += 5
    told.node(labels={"gpu": "a", "x": "1"}, unschedulable=True, version=9)
    told.pod()
    assert _since(told, "a") == FOUND


def test_another_node_of_the_name_begins_anew() -> None:
    told = FedMirror()
    told.node()
    told.node(labels={"gpu": "a"})
    told.node(labels={"gpu": "a"}, uid="other")
    assert _since(told) == CREATED_NS


def test_a_rule_holds_a_node_off_for_as_long_as_it_says_and_no_restart_does() -> None:
    told = FedMirror()
    told.node()
    assert _refused(told, pod()) == "label gpu is not a"
    told.node(labels={"gpu": "a"})
    assert _refused(told, pod()) == "waiting after becoming ready"
    told.now += 20 * SECOND
    assert _refused(told, pod()) is None
    restarted = FedMirror()
    restarted.node(labels={"gpu": "a"})
    assert _refused(restarted, pod()) is None


def _refused(told: FedMirror, one: PodView) -> str | None:
    refusal = Evaluation([HOLD_OFF], [told.view()]).refusal(one, now=told.now)
    return None if refusal is None else refusal.reason
