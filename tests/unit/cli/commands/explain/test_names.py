"""`fairlead explain` of pods whose scheduler has no such name, or is one of others."""

import json
from pathlib import Path

import pytest

from support.cli import status
from support.cli.explained import FILES, NAMESPACE, NODES, PODS, T4, UNSCHEDULABLE, WEB, Ask, Run, cluster_answers
from support.cli.status_api import items
from support.simulation.snapshot import Object, listed, pod

LEASES, WORKLOADS = (
    "/apis/coordination.k8s.io/v1/leases",
    {f"/apis/apps/v1/{plural}": items() for plural in ("deployments", "statefulsets", "daemonsets")},
)
TYPO = pod("train", labels=T4, asks={"cpu": "2"}, schedulerName="fairleed")


def _typo(placed: Object | None = None, **changes: object) -> dict[str, object]:
    there = cluster_answers(PODS=items(WEB, TYPO, status.pod("fairlead-a")), **changes)
    there |= {f"{NAMESPACE}/pods/train": TYPO, LEASES: items(), **WORKLOADS}
    placed_by = "spec.nodeName!=,spec.schedulerName=fairleed"
    return there | {f"{PODS}?{placed_by}": items(*[placed] if placed else [])}


def test_a_name_that_no_scheduler_has_is_named(ask: Ask) -> None:
    code, out, _ = ask(_typo())
    assert code == 0
    assert (
        "scheduler fairleed: no policy and no scheduler has this name: did you mean fairlead? "
        "schedulerName cannot be changed, create the pod again." in out
    )
    assert "NOT SCHEDULED: there is no scheduler fairleed: did you mean fairlead?. Otherwise" not in out
    assert "NOT SCHEDULED: there is no scheduler fairleed (did you mean fairlead?). Otherwise 3 of 5 nodes would" in out
    said = json.loads(ask(_typo(), "-o", "json")[1])["scheduling"]["scheduler"]
    assert (said["exists"], said["meant"]) == (False, "fairlead")
    managed = {status.DEPLOYMENTS: items(status.deployment("fairleeds"))}  # no policy names it
    assert "did you mean fairleeds?" in ask(_typo() | managed)[1]


@pytest.mark.parametrize(
    ("there", "said"),
    {
        "it has placed pods": (_typo(WEB), "another scheduler named fairleed has placed pods"),
        "it holds a Lease": (
            _typo()
            | {
                LEASES: items(
                    {
                        "metadata": {"name": "fairleed", "namespace": "x"},
                        "spec": {
                            "holderIdentity": "a",
                            "leaseDurationSeconds": 15,
                            "renewTime": "2999-01-01T00:00:00.000000Z",
                        },
                    }
                )
            },
            "another scheduler named fairleed holds Lease x/fairleed",
        ),
        "it has tried the pod": (
            _typo() | {PODS: items(WEB, TYPO | {"status": {"conditions": [UNSCHEDULABLE]}})},
            "it has tried this pod",
        ),
    }.values(),
)
def test_a_scheduler_of_others_is_no_typo(ask: Ask, there: dict[str, object], said: str) -> None:
    _, out, _ = ask(there)
    assert f"scheduler fairleed: not known: no policy names it; {said}" in out
    assert "did you mean" not in out
    assert "3 of 5 nodes are possible" in out


@pytest.mark.parametrize("source", ["snapshot", "file"])
def test_a_misspelt_scheduler_is_named_without_a_cluster(run: Run, source: str) -> None:
    named = pod("lone", labels=T4)
    named["spec"]["schedulerName"] = "fairlaed"
    Path("one.json").write_text(json.dumps(named))
    Path("c2.json").write_text(json.dumps(listed(*NODES, named)))
    asked = ("lone", "-n", "ml") if source == "snapshot" else ("-f", "one.json")
    code, out, _ = run(*asked, "--policies", "p.yaml", "--snapshot", "c2.json" if source == "snapshot" else "c.json")
    again = "schedulerName cannot be changed, create the pod again" if source == "snapshot" else "correct schedulerName"
    lines = out.splitlines()
    assert f"scheduler fairlaed: no policy here has this name: did you mean fairlead? {again}." in lines
    said = "NOT SCHEDULED: no policy here is for scheduler fairlaed (did you mean fairlead?). Otherwise 4 of 5 nodes"
    assert f"{said} would be possible" in lines
    assert "No match: 2 policies of the scheduler fairlead" in lines
    assert code == 0
    data = json.loads(run(*asked, *FILES[:2], "--snapshot", "c2.json", "-o", "json")[1])
    assert data["scheduling"]["scheduler"]["meant"] == "fairlead"
    assert data["scheduling"]["scheduler"]["exists"] is None


def test_a_scheduler_of_others_is_not_taken_for_a_mistake_and_nothing_is_preferred(run: Run) -> None:
    named = pod("lone", labels=T4)
    named["spec"]["schedulerName"] = "volcano"
    Path("one.json").write_text(json.dumps(named))
    code, out, _ = run("-f", "one.json", *FILES)
    assert code == 0
    assert "scheduler volcano: not known: no policy here has this name" in out.splitlines()
    assert "4 of 5 nodes are possible" in out.splitlines()
    assert "preferred" not in out
    assert "0 points" not in out
    rows = [line.split() for line in out.splitlines() if "t4-1" in line]
    assert rows == [["4", "possible", "t4-1,", "t4-2,", "v100-1,", "v100-2", "no", "policy", "applies"]]
    assert json.loads(run("-f", "one.json", *FILES, "-o", "json")[1])["preferred"] == []
