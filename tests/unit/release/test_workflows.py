"""Workflows: each step is a target of the Makefile or a pinned action, with the permissions that it needs."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from release.lint import shell_scripts
from release.project import ROOT, tool

from release import audit
from testbed.providers.kind_config import minor
from testbed.versions import KIND_NODES, KUBERNETES

_FOLDER = ROOT / ".github" / "workflows"
_WORKFLOWS = sorted(_FOLDER.glob("*.yml"))
_MAKEFILE = (ROOT / "Makefile").read_text()
_TARGETS = {*re.findall(r"^([a-z-]+):(?!=)", _MAKEFILE, re.MULTILINE)}
_OF_CI = {"check", "unit", "dist", "lint"}
"""Targets whose steps `make test` runs, or its tests."""
_ELSEWHERE: Mapping[str, str] = {
    "audit": "asks a public database of weaknesses",
    "binary": "takes minutes; the nightly workflow runs the tests of what it makes, as `make test-release`",
    "bench": "its figures are of a machine on which nothing else runs",
    "compare": "takes hours; tests/unit/cel runs its first cases",
    "coverage": "runs the unit tests a second time, to print a figure on which nothing depends",
    "fuzz": "takes hours; tests/unit/webhook/test_fuzz.py runs its first cases",
    "interleavings": "takes hours; the unit tests run their first cases",
    "lock-check": "fails when any package has a newer version, so it is no check of a change",
    "publish": "needs a registry and its password; tests/integration/test_published.py publishes to a local one",
    "sbom": "tests/integration/test_published.py writes the same of the same image",
    "sign": "needs the identity of a workflow and a public log",
    "soak": "takes an hour, and its figures are of a machine on which nothing else runs",
    "test-pythons": "takes as long as the unit tests, for each Python",
    "test-release": "takes minutes for programs that change seldom",
    "test-cert-manager": "builds cert-manager, which takes minutes, for one way to have certificates",
    "test-karpenter": "builds Karpenter, which takes minutes; other tests show that pods get the affinity",
    "test-cluster": "needs Docker and the images of kind; CI runs the same tests on a cluster of its own",
    "test-kind": "takes ten minutes; tests/unit/testbed asks the same of commands in place of Docker and kind",
    "test-matrix": "takes as long as the tests of one version, for each older one",
    "upload": "needs the trust of PyPI in a workflow, or a release on GitHub",
}
"""Targets that CI does not run, with the reason."""


def _workflow(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def _jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in _WORKFLOWS:
        for name, job in _workflow(path)["jobs"].items():
            yield f"{path.name}: {name}", job


def _targets(job: Mapping[str, Any]) -> Iterator[str]:
    for command in (step["run"] for step in job["steps"] if "run" in step):
        found = re.fullmatch(r'make ("\$TARGET"|[a-z-]+)( [A-Z]+=[a-z]+)*', command)
        assert found, f"{command!r} is no target of the Makefile"
        if found[1] == '"$TARGET"':
            yield from job["strategy"]["matrix"]["target"]
        else:
            yield found[1]


def test_every_step_is_a_target_that_anybody_can_run() -> None:
    used = {target for _, job in _jobs() for target in _targets(job)}
    assert used <= _TARGETS
    assert used - _OF_CI == {*_ELSEWHERE}, "say why CI does not run it, or that it does"
    assert used >= {
        "check",
        "unit",
        "test-cluster",
        "fuzz",
        "compare",
        "bench",
        "test-kind",
        "audit",
        "lock-check",
        "publish",
        "sign",
    }


@pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda one: one.name)
def test_every_action_is_pinned_by_hash_and_says_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)$", path.read_text(), re.MULTILINE)
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_an_action_has_one_version() -> None:
    used = {one for path in _WORKFLOWS for one in re.findall(r"uses: (\S+)", path.read_text())}
    names = [one.partition("@")[0] for one in used]
    assert sorted(names) == sorted({*names})


def test_nothing_is_permitted_that_a_job_does_not_ask_for() -> None:
    for path in _WORKFLOWS:
        assert _workflow(path)["permissions"] == {}, path.name
    for name, job in _jobs():
        assert job["permissions"]["contents"] == ("write" if name == "release.yml: draft" else "read"), name
        assert job["timeout-minutes"] <= 360, name
        written = {one for one, access in job["permissions"].items() if access == "write"}
        assert not written or name.startswith("release.yml: "), name


def test_every_version_of_kubernetes_is_tested_on_kind() -> None:
    matrix = _workflow(_FOLDER / "ci.yml")["jobs"]["cluster"]["strategy"]["matrix"]
    assert matrix["kubernetes"] == [one for one in KUBERNETES if minor(one) in KIND_NODES]


def test_every_older_version_has_a_night_of_its_own() -> None:
    """All of them one after another take longer than a hosted runner gives a job."""
    older = _workflow(_FOLDER / "nightly.yml")["jobs"]["older"]
    assert older["strategy"]["matrix"]["kubernetes"] == [*KUBERNETES[1:]]
    assert older["env"] == {"OLDER": "${{ matrix.kubernetes }}"}


def test_every_older_version_is_tested_by_make_and_every_version_recorded() -> None:
    assert re.findall(r"(?m)^OLDER \?= (.*)$", _MAKEFILE) == [" ".join(KUBERNETES[1:])]
    assert f"${{VERSIONS:-{' '.join(KUBERNETES)}}}" in (ROOT / "scripts" / "record").read_text()


def test_only_a_tag_releases() -> None:
    assert '\non:\n  push:\n    tags: ["v*"]\n\n' in (_FOLDER / "release.yml").read_text()


def test_nothing_is_public_before_all_of_it_was_checked() -> None:
    jobs = _workflow(_FOLDER / "release.yml")["jobs"]
    assert [*_targets(jobs["packages"])] == ["check", "unit", "dist"]
    assert jobs["image"]["needs"] == "packages"
    assert {"packages", "image"} == {*jobs["pypi"]["needs"]}
    assert jobs["bundle"]["needs"] == "packages"
    assert {"bundle", "image"} == {*jobs["draft"]["needs"]}


def test_an_audit_that_could_ask_nothing_fails_with_one_line() -> None:
    assert "--strict" in audit.command(Path("pip-audit"), Path("requirements.lock"))
    said = "ERROR:pip_audit._cli:a: Dependency not found on PyPI and could not be audited: a (1.0)\n"
    assert audit.verdict("", said) == (
        "the database of weaknesses could not be asked, so nothing is known: "
        "a: Dependency not found on PyPI and could not be audited: a (1.0)"
    )
    assert audit.verdict("", "").endswith("so nothing is known: no answer")


def test_weaknesses_that_are_known_are_listed() -> None:
    said = audit.verdict("Name Version ID Fix\na 1.0 CVE-1 1.1\n", "Found 1 known vulnerability in 1 package\n")
    assert said.splitlines() == [
        "packages with known weaknesses are locked; `make lock` takes newer ones",
        "Name Version ID Fix",
        "a 1.0 CVE-1 1.1",
    ]


def test_shell_scripts_are_found_by_what_they_begin_with() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in shell_scripts()}
    assert {".ci/run", "scripts/lock", "scripts/setup", "testbed/go/pin.sh"} <= found


@pytest.mark.parametrize(
    ("schema", "file"),
    [("renovate", "renovate.json"), *(("github-workflows", f".github/workflows/{path.name}") for path in _WORKFLOWS)],
)
def test_what_hosted_services_read_is_valid(schema: str, file: str) -> None:
    command = [str(tool("check-jsonschema")), "--builtin-schema", f"vendor.{schema}", str(ROOT / file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_checks_of_workflows_find_something(tmp_path: Path) -> None:
    """An expression of a stranger in a command, which both tools must see."""
    bad = tmp_path / ".github" / "workflows" / "bad.yml"
    bad.parent.mkdir(parents=True)
    bad.write_text(
        "name: bad\non: [issues]\npermissions: {}\njobs:\n  one:\n    name: one\n    runs-on: ubuntu-24.04\n"
        "    steps:\n    - run: echo ${{ github.event.issue.title }}\n"
    )
    command = [str(tool("zizmor")), "--offline", "--no-progress", str(bad)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "template-injection" in done.stdout
