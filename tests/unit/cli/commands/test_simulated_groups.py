"""`fairlead simulate` and `fairlead diff` of members of groups."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.main import main
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import workload

PLAIN: Final = HEAD.replace("some", "jobs") + "spec:\n  filters: [{name: all, expression: 'true'}]\n"
JOBS: Final = (
    PLAIN
    + """\
  binding:
    gang:
    - {name: job, group: "pod.metadata.labels[?'job'].orValue('')", size: "int(pod.metadata.annotations['size'])"}
"""
)
WAITING: Final = "waiting for members of its group"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, text in (("plain.yaml", PLAIN), ("jobs.yaml", JOBS)):
        Path(name).write_text(text)

    def run(command: str, *pods: Object, there: tuple[Object, ...] = (), output: str = "table") -> tuple[int, str]:
        Path("c.json").write_text(json.dumps(listed(node("n1"), node("n2"), pod("web", on="n1"), *there)))
        Path("p.json").write_text(json.dumps(listed(*pods)))
        code = main([*command.split(), "--snapshot", "c.json", "--pods", "p.json", "-o", output])
        return code, capsys.readouterr().out

    return run


def member(name: str = "x", job: str = "a", size: str = "3", **more: Any) -> Object:
    made = pod(name, labels={"job": job}, **more)
    made["metadata"]["annotations"] = {"size": size}
    return made


def rows(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines()]


def test_members_that_are_simulated_together_are_known_together(run: Run) -> None:
    code, out = run("simulate --policies jobs.yaml", *(member(one) for one in "xyz"), member("lone", job="b"))
    assert code == 0
    assert f"ml/lone jobs 2 of 2 any of them - in the group 'b' (1 of 3 known): {WAITING}" in rows(out)
    assert "ml/x jobs 2 of 2 any of them - in the group 'a' (3 of 3 known)" in rows(out)
    assert "4 pods on 2 nodes: all can be placed." in rows(out)
    assert "As members of groups, 1 pod has to wait." in rows(out)
    assert any("(used: other pods of a group by 4 pods)" in row for row in rows(out))


def test_those_that_wait_already_are_known_too(run: Run) -> None:
    found = json.loads(run("simulate --policies jobs.yaml", member("x"), there=(member("y"),), output="json")[1])
    assert found["pods"][0]["group"] == {
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
    assert json.loads(run("simulate --policies plain.yaml", member("x"), output="json")[1])["pods"][0]["group"] is None


def test_the_pods_of_a_job_have_its_labels(run: Run) -> None:
    job = workload("Job", "train", parallelism=3, completions=3)
    job["spec"]["template"]["metadata"]["annotations"] = {"size": "3"}
    Path("jobs.yaml").write_text(JOBS.replace("'job'", "'batch.kubernetes.io/job-name'"))
    _, out = run("simulate --policies jobs.yaml", job)
    assert "ml/train-0 and 2 alike jobs 2 of 2 any of them - in the group 'train' (3 of 3 known)" in rows(out)


def test_a_group_that_comes_or_goes_is_a_change(run: Run) -> None:
    code, out = run("diff --from plain.yaml --to jobs.yaml", member("x"), member("y"))
    assert code == 1
    assert f"joins the group 'a' (2 of 3 known): {WAITING}" in rows(out)
    code, out = run("diff --from jobs.yaml --to plain.yaml", member("x"), member("y"))
    assert code == 1
    assert f"leaves the group 'a' (2 of 3 known): {WAITING}" in rows(out)
    assert run("diff --from jobs.yaml --to jobs.yaml", member("x"))[0] == 0


def test_another_size_is_a_change(run: Run) -> None:
    Path("to.yaml").write_text(JOBS.replace("int(pod.metadata.annotations['size'])", "2"))
    code, out = run("diff --from jobs.yaml --to to.yaml", member("x"), member("y"), output="json")
    found = json.loads(out)["pods"][0]
    assert code == 1
    assert [found["group"][side]["verdict"] for side in ("from", "to")] == ["Rejects", "Passes"]
    assert (found["lost"], found["rules"]) == ([], ["jobs/binding/job"])
    _, out = run("diff --from jobs.yaml --to to.yaml", member("x"), member("y"))
    assert "is now in the group 'a' (2 of 2 known)" in rows(out)
