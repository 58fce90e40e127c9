"""`fairlead explain` of members of groups: the section about the group, in text, for programs, and of a cluster."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.main import main
from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import PublishedRest, PublishedTurn, Turns, turns_body
from support.cli.explained import Ask, Run, cluster_answers, live_policy
from support.cli.status_api import items
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import workload

JOBS: Final = (
    HEAD.replace("some", "jobs")
    + """spec:
  binding:
    gang:
    - name: job
      group: pod.metadata.labels[?'job'].orValue('')
      size: int(pod.metadata.annotations[?'size'].orValue('1'))
"""
)
SHADOW: Final = JOBS.replace("spec:", "spec:\n  mode: Shadow")
FILES: Final = ("-n", "ml", "--policies", "jobs.yaml", "--snapshot", "groups.json")
NOW: Final = 1_800_000_000
OWN: Final = group_hash(Group("fairlead", "ml", "a"))
WAITING: Final = "waiting for members of its group"


def member(name: str = "x", job: str = "a", size: str = "3", **more: Any) -> Object:
    made = pod(name, labels={"job": job}, **more)
    made["metadata"]["annotations"] = {"size": size}
    return made


def write(*objects: Object) -> None:
    Path("jobs.yaml").write_text(JOBS)
    Path("groups.json").write_text(json.dumps(listed(node("n1"), node("n2"), *objects)))


def turns(of: Turns) -> Object:
    made = turns_body("fairlead", of)
    made["metadata"] |= {"namespace": "fairlead-system", "uid": "t", "resourceVersion": "4"}
    return made


def section(out: str) -> list[str]:
    """Return the lines about the group, without what its entry computed."""
    lines = out.splitlines()
    begin = lines.index("GROUP") + 1
    return lines[begin : begin + 2]


def test_a_member_that_waits_is_shown_its_group_and_its_nodes(run: Run) -> None:
    write(member("x"), member("y"), member("z", job="b"))
    code, out, err = run("pod/x", *FILES)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:10] == [
        "pod ml/x, scheduler fairlead, requests nothing",
        "policies: jobs",
        f"UNSCHEDULABLE: {WAITING}. Otherwise 2 of 2 nodes would be possible: n1, n2",
        "",
        "NODES   VERDICT     WHICH    WHY",
        "2       preferred   n1, n2   0 points",
        "",
        "GROUP",
        "jobs/binding/job: 'a', size 3, 2 members known, not started",
        f"    the filter rejects it on every node: {WAITING}",
    ]
    rows = [" ".join(line.split()) for line in lines[10:]]
    assert rows[0] == "COMPARED VALUE"
    assert "pod.metadata.labels[?'job'].orValue('') 'a'" in rows
    assert "int(pod.metadata.annotations[?'size'].orValue('1')) 3" in rows
    assert lines[-1].endswith("(the pod uses other pods of a group).")


SEEN: Final[dict[str, tuple[list[Object], list[str]]]] = {
    "complete": (
        [member("x"), member("y"), member("z")],
        [
            "jobs/binding/job: 'a', size 3, 3 members known, not started",
            "    the filter lets it pass, and it is held until 3 members have a node",
        ],
    ),
    "started": (
        [member("x"), member("y", on="n1")],
        [
            "jobs/binding/job: 'a', size 3, 1 member known, started",
            "    the filter lets it pass, and it is bound at once",
        ],
    ),
    "its turn": (
        [
            *(member(one) for one in "xyz"),
            turns(Turns(PublishedTurn(OWN, NOW, NOW + 9, held_members=2, size=3, attempt=4))),
        ],
        [
            "jobs/binding/job: 'a', size 3, 3 members known, 2 held in attempt 4",
            "    the filter lets it pass, and it is held until 3 members have a node",
        ],
    ),
    "at rest": (
        [
            *(member(one) for one in "xyz"),
            turns(Turns(rests={OWN: PublishedRest(NOW + 9, 2)})),
        ],
        [
            "jobs/binding/job: 'a', size 3, 3 members known, resting after attempt 2",
            "    the filter rejects it on every node: its group does not fit",
        ],
    ),
    "undecided": (
        [member("x", job="a\x1b[2J", size="0")],
        [
            "jobs/binding/job: 'a\\x1b[2J', size 0",
            (
                "    the filter rejects it on every node: the group of the pod cannot be decided: "
                "the size of job is not from 1 to 500"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("there", "want"), SEEN.values(), ids=SEEN)
def test_each_state_of_a_group_is_said(run: Run, there: list[Object], want: list[str]) -> None:
    write(*there)
    code, out, _ = run("pod/x", *FILES, "--now", "2027-01-15T08:00:00Z")
    assert code == 0
    assert section(out) == want
    assert "\x1b" not in out
    assert section(run("pod/x", *FILES, "--now", "2027-01-15T08:00:00Z", "--node", "n1")[1]) == want


def test_programs_read_the_group(run: Run) -> None:
    write(member("x"), member("y"), member("none", job=""))
    found = json.loads(run("x", *FILES, "-o", "json")[1])["group"]
    assert found == {
        "policy": "jobs",
        "entry": "job",
        "value": "a",
        "size": 3,
        "known": 2,
        "started": False,
        "state": "Waiting",
        "held": None,
        "attempt": None,
        "verdict": "Rejects",
        "reason": WAITING,
        "why": "",
    }
    assert json.loads(run("x", *FILES, "-o", "json", "--node", "n1")[1])["group"] == found
    code, out, _ = run("none", *FILES)
    assert code == 0
    assert "GROUP" not in out
    assert json.loads(run("none", *FILES, "-o", "json")[1])["group"] is None


def test_pending_members_have_their_reason(run: Run) -> None:
    write(member("x"), member("y"), member("lone", job="b", size="2"), pod("plain"))
    _, out, _ = run("--pending", *FILES)
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert f"2 ml/x, ml/y the group 'a' (2 of 3 known): {WAITING}" in rows
    found = json.loads(run("--pending", *FILES, "-o", "json")[1])
    assert [(one["verdict"], one["count"]) for one in found["groups"]] == [("Group", 2), ("Possible", 1), ("Group", 1)]


def test_a_group_makes_no_evictions(run: Run) -> None:
    write(
        member("x", asks={"cpu": "8"}, priority=9),
        member("alone", job="", asks={"cpu": "8"}, priority=9),
        *(pod(f"low-{name}", on=name, asks={"cpu": "8"}) for name in ("n1", "n2")),
    )
    assert "PREEMPTION" in run("alone", *FILES)[1]
    assert "PREEMPTION" not in run("x", *FILES)[1]


def test_a_job_that_has_no_pods_yet_is_explained_by_its_template(run: Run) -> None:
    job = workload("Job", "train", parallelism=8, completions=8)
    job["spec"]["template"]["metadata"]["annotations"] = {"size": "8"}
    write(job)
    Path("jobs.yaml").write_text(JOBS.replace("'job'", "'batch.kubernetes.io/job-name'"))
    _, out, _ = run("job/train", *FILES)
    assert section(out)[0] == "jobs/binding/job: 'train', size 8, 1 member known, not started"


def live(*configs: Object, policies: str = JOBS, pods: object = None) -> dict[str, object]:
    members = [member(one) for one in ("train", "y", "z")]
    return cluster_answers() | {
        "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies": items(live_policy(policies)),
        "/api/v1/pods": items(*members) if pods is None else pods,
        "/api/v1/namespaces/ml/pods/train": members[0],
        "/api/v1/configmaps": items(*configs),
    }


def test_of_a_cluster_the_turns_are_read(ask: Ask) -> None:
    rest = turns(Turns(rests={OWN: PublishedRest(4e9, 2)}))
    code, out, _ = ask(live(rest))
    assert code == 0
    assert section(out)[0].endswith("3 members known, resting after attempt 2")
    assert "turns of groups" not in out


def test_turns_that_may_not_be_read_are_named(ask: Ask) -> None:
    answers = live()
    answers["/api/v1/configmaps"] = 403
    answers["/api/v1/namespaces/fairlead-system/configmaps"] = 403
    _, out, _ = ask(answers)
    assert "Note: the turns of groups are unknown: " in out
    assert section(out)[0].endswith("3 members known, not started")


def test_members_are_not_counted_where_pods_may_not_be_read(ask: Ask) -> None:
    _, out, _ = ask(live(pods=403))
    assert section(out) == [
        "jobs/binding/job: 'a', size 3",
        "    what the filter says is not known: the pods of the cluster may not be read",
    ]


def test_a_policy_that_is_not_evaluated_leaves_the_group_unknown(ask: Ask) -> None:
    selecting = JOBS.replace("spec:\n", "spec:\n  match: {namespaceSelector: {matchLabels: {team: x}}}\n")
    answers = live(policies=selecting)
    answers["/api/v1/namespaces/ml"] = 403
    code, out, _ = ask(answers)
    assert code == 1
    assert section(out) == [
        "jobs/binding/job: the group is not known",
        "    what the filter says is not known: the policy is not evaluated",
    ]
    assert "UNKNOWN: 4 of 5 nodes cannot be judged, as jobs was not evaluated" in out


def test_a_group_in_shadow_leaves_a_member_without_a_node(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write(*(member(one) for one in "xy"), *(member(one, job="b", size="2") for one in ("v", "w")))
    Path("jobs.yaml").write_text(SHADOW)
    _, out, _ = run("x", *FILES)
    assert out.splitlines()[-4:-2] == [
        "If enforced, what is in shadow would leave none of 2 possible nodes.",
        f"    jobs/binding/job would reject it on every node: the group 'a' (2 of 3 known): {WAITING}",
    ]
    found = json.loads(run("x", *FILES, "-o", "json")[1])
    assert (found["shadow"]["effects"], found["shadow"]["unknown"]) == (["restricted", "unschedulable"], [])
    assert (found["shadow"]["lost"], found["shadow"]["preferred"]) == (["n1", "n2"], [])
    assert "If enforced, what is in shadow would change nothing for this pod." in run("v", *FILES)[1]
    for command in (["simulate"], ["diff", "--from", "jobs.yaml", "--to"]):
        policies = ["jobs.yaml"] if command[1:] else ["--policies", "jobs.yaml"]
        main([*command, *policies, "--snapshot", "groups.json"])
        assert "If enforced, 2 pods would be left without a node" in capsys.readouterr().out


def test_a_group_in_shadow_that_is_not_known_may_leave_a_member_without_a_node(ask: Ask) -> None:
    answers = live(policies=SHADOW, pods=403)
    answers["/api/v1/namespaces/ml/pods"] = items(*(member(one) for one in ("train", "y", "z")))
    _, out, _ = ask(answers)
    assert (
        "It is not known what it would change for this pod, if enforced: the group 'a': not known, because the pods of "
        "the cluster may not be read." in out
    )
    found = json.loads(ask(answers, "-o", "json")[1])["shadow"]
    assert (found["effects"], found["unknown"]) == ([], ["restricted", "unschedulable"])
