"""`fairlead explain` of a cluster's policies of which an earlier generation serves, or none."""

import json

import pytest

from fairlead.webhook.serving.last_good import revision_of
from fairlead.webhook.serving.policy_status import CompiledGeneration
from support.cli.explained import POLICY, REVISIONS, Ask, cluster_answers, live_policy
from support.cli.status_api import items
from support.simulation.snapshot import Object


@pytest.mark.parametrize(
    ("policy", "want"),
    {
        "an older one serves": (live_policy(serving=2), "gpu: generation 3; replicas still serve generation 2"),
        "nobody has said": (
            live_policy(serving=None),
            "gpu: generation 3; its status does not say yet which generation is served",
        ),
        "it does not compile": (
            live_policy(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=2),
            "gpu: generation 3 does not compile, replicas still serve generation 2: spec.scores[0].expression",
        ),
        "nor has it ever": (
            live_policy(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=None),
            "gpu: generation 3 does not compile, its failurePolicy applies: spec.scores[0].expression",
        ),
    }.values(),
)
def test_which_generation_serves_is_said(ask: Ask, policy: Object, want: str) -> None:
    code, out, _ = ask(cluster_answers(LISTED=items(policy)))
    assert f"Serving: {want}" in out
    assert code == int("2: spec.scores" in want)  # what serves is not known then


BROKEN = POLICY.replace("free['cpu'] * 10.0", "fre['cpu']")
STRICT = POLICY.replace("reason: wrong class", "reason: of generation 2")


def _revision(text: str, generation: int) -> Object:
    made = live_policy(text, generation=generation)
    good = CompiledGeneration("gpu", "u", str(generation), made)
    return revision_of(good, generation, "cluster")


def test_a_policy_that_never_compiled_refuses(ask: Ask) -> None:
    code, out, _ = ask(cluster_answers(LISTED=items(live_policy(BROKEN, serving=None))))
    assert code == 0
    assert "gpu: policy gpu does not compile" in out
    assert "UNSCHEDULABLE: none of 5 nodes is possible" in out


def test_the_last_good_generation_is_read_where_it_is_stored(ask: Ask) -> None:
    code, out, _ = ask(
        cluster_answers(LISTED=items(live_policy(BROKEN, serving=2)), REVISIONS=items(_revision(STRICT, 2)))
    )
    assert code == 0
    assert "policies: gpu\n2 of 5 nodes are possible" in out
    assert "gpu/class: of generation 2" in out
    assert "Serving: gpu: generation 3 does not compile, replicas still serve generation 2: spec.scores[0]" in out


def test_the_newest_object_says_whether_the_last_good_generation_is_in_force(ask: Ask) -> None:
    off = live_policy(BROKEN.replace("spec:", "spec:\n  mode: Disabled", 1), serving=2)
    _, out, _ = ask(cluster_answers(LISTED=items(off), REVISIONS=items(_revision(STRICT, 2))))
    assert "No policy matches this pod.\n3 of 5 nodes are possible" in out


def test_of_a_policy_in_shadow_the_last_good_generation_is_in_shadow(ask: Ask) -> None:
    shadow = live_policy(BROKEN.replace("spec:", "spec:\n  mode: Shadow", 1), serving=2)
    _, out, _ = ask(cluster_answers(LISTED=items(shadow), REVISIONS=items(_revision(STRICT, 2))))
    assert "No policy decides for this pod.\nin shadow: gpu/class" in out
    assert "gpu/class would reject it: of generation 2, on " in out
    assert "generation 3 does not compile, and nothing of it decides, because it is in shadow: " in out


def test_an_unknown_generation_in_shadow_leaves_the_result_known(ask: Ask) -> None:
    shadow = live_policy(BROKEN.replace("spec:", "spec:\n  mode: Shadow", 1), serving=2)
    code, out, _ = ask(cluster_answers(LISTED=items(shadow), REVISIONS=items()))
    assert code == 0
    assert "No policy matches this pod.\n3 of 5 nodes are possible" in out
    assert "Note: in shadow, not evaluated: gpu as a whole: replicas serve generation 2, which is not known here" in out
    assert ask(cluster_answers(LISTED=items(shadow), REVISIONS=items()), "--as-enforced")[0] == 1


def test_replicas_that_refuse_what_compiles_here_serve_what_they_have_stored(ask: Ask) -> None:
    slow = live_policy(generation=3, serving=2)
    slow["status"]["observedGeneration"] = 3
    _, out, _ = ask(cluster_answers(LISTED=items(slow), REVISIONS=items(_revision(STRICT, 2))))
    assert "gpu/class: of generation 2" in out


def test_a_policy_of_which_replicas_serve_nothing_is_not_evaluated_because_it_compiles_here(ask: Ask) -> None:
    beyond = live_policy(serving=None)
    why = {
        "type": "Compiled",
        "status": "False",
        "reason": "NothingServes",
        "message": "there are more than 500 policies",
    }
    beyond["status"] = {"observedGeneration": 3, "conditions": [why]}
    _, out, _ = ask(cluster_answers(LISTED=items(beyond)))
    assert "gpu: policy gpu does not compile" in out
    assert "Serving: gpu: generation 3 does not compile, its failurePolicy applies: there are more than 500 pol" in out
    beyond["status"]["observedGeneration"] = 2
    assert "2 of 5 nodes are possible" in ask(cluster_answers(LISTED=items(beyond)))[1]


@pytest.mark.parametrize("revisions", [403, items(), items(_revision(STRICT, 1))], ids=["forbidden", "none", "older"])
def test_a_generation_that_is_not_known_is_not_guessed(ask: Ask, revisions: object) -> None:
    there = cluster_answers(LISTED=items(live_policy(BROKEN, serving=2))) | {REVISIONS: revisions}
    code, out, _ = ask(there)
    assert code == 1
    assert "It is not known whether gpu matches this pod.\nUNKNOWN: 3 of 5 nodes cannot be judged, as gpu was" in out
    assert "3       unknown" in out
    assert "Note: not evaluated: gpu as a whole: replicas serve generation 2, which is not known here: " in out
    found = json.loads(ask(there, "-o", "json")[1])
    assert {one["verdict"] for one in found["nodes"]} == {"Unknown", "DoesNotFit"}
    assert [one["passed"] for one in found["nodes"]] == [None] * 5
    assert (found["preferred"], found["notEvaluated"]) == ([], [{"policy": "gpu", "rule": "", "data": []}])
