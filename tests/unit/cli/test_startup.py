"""Modules that commands load: time is not measured here, but a command is as quick as what it loads is little."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from fairlead.api.names import API_VERSION, KIND
from fairlead.pki.identities import NAMESPACE
from support.cli.status import SCENES, policy
from support.cli.status_api import api_server, items, kubeconfig
from support.kube.crd import POLICIES

_LOADED = """
import sys
from pathlib import Path
from fairlead.cli.main import main
try:
    code = main(sys.argv[2:])
except SystemExit as end:
    code = end.code
Path(sys.argv[1]).write_text("\\n".join(sys.modules))
sys.exit(code)
"""
OF_LIBRARIES = ("aiohttp", "kubernetes", "msgspec", "pydantic", "yaml")
NOT_FOR_A_CLUSTER = (
    *("cel_expr_python", "cryptography", "google.protobuf", "jinja2", "kopf", "prometheus_client", "re2"),
    *(
        "kubernetes.aio.client.api.",
        "kubernetes.aio.client.models.",
        "kubernetes.client.api.",
        "kubernetes.client.models.",
    ),
    *("fairlead.api.v1alpha1", "fairlead.cel.engine", "fairlead.policy", "fairlead.process", "fairlead.webhook"),
)
NOT_OF_A_LOGIN = (
    *("charset_normalizer", "multiprocessing", "oauthlib.oauth2", "requests", "requests_oauthlib", "urllib3"),
    *(
        "kubernetes.client",
        "kubernetes.dynamic",
        "kubernetes.informer",
        "kubernetes.leaderelection",
        "kubernetes.stream",
    ),
    *(
        "kubernetes.utils",
        "kubernetes.watch",
        "kubernetes.aio.config",
        "kubernetes.aio.dynamic",
        "kubernetes.aio.stream",
    ),
    *("kubernetes.aio.utils.create_from_yaml", "kubernetes.aio.watch"),
)
"""Modules that the official client loads for everything else that it can do."""
OF_UNINSTALL = ("prometheus_client", "fairlead.process", "fairlead.webhook")
NOT_WITHOUT_ITS_OPTION = (
    *("cryptography", "fairlead.policy.lint.inspection", "fairlead.render.operator_settings", "fairlead.pki.issuing"),
    *("fairlead.cli.inputs.checker", "fairlead.cli.inputs.prometheus_values", "fairlead.cli.inputs.replica_values"),
)
"""Modules that only files of policies, servers of values or the values of a replica need."""
MODULES_MAX = 580
MODULES_MAX_OF_JUDGING = 860
MODULES_MAX_WITH_FILES = 870
"""Modules of commands that read a cluster, that judge it, and that also check files; a few more than today."""
REFUSED = 2
COMPLETED = 0
ABSENT: dict[str, tuple[Sequence[str], int]] = {
    "status": (["status"], REFUSED),
    "data": (["data"], REFUSED),
    "data of a policy": (["data", "p"], REFUSED),
    "explain": (["explain", "pod/p"], REFUSED),
    "explain --pending": (["explain", "--pending"], REFUSED),
    "devices": (["devices"], REFUSED),
    "simulate": (["simulate", "--policies", "live"], REFUSED),
    "diff": (["diff", "--from", "live", "--to", "p.yaml"], REFUSED),
    "uninstall": (["uninstall", "--within", "1s"], REFUSED),
    "a completion": (["__complete", "explain", "pod/"], COMPLETED),
}


def _loaded(folder: Path, arguments: Sequence[str], code: int) -> list[str]:
    file = folder / "modules"
    # What coverage loads into each process, when it is measured, is not the command's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    run = subprocess.run(
        [sys.executable, "-c", _LOADED, str(file), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert run.returncode == code, run.stderr
    return file.read_text().splitlines()


def _among(modules: Sequence[str], names: Sequence[str]) -> list[str]:
    return [one for one in modules if any(one == name or one.startswith(f"{name.rstrip('.')}.") for name in names)]


@pytest.mark.parametrize("arguments", [["--help"], ["help", "status"], ["version"]])
def test_help_loads_no_library(arguments: list[str], tmp_path: Path) -> None:
    assert _among(_loaded(tmp_path, arguments, 0), OF_LIBRARIES) == []


@pytest.mark.parametrize(("arguments", "code"), ABSENT.values(), ids=ABSENT)
def test_without_a_cluster_nothing_that_judges_is_loaded(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig("http://127.0.0.1:1", tmp_path)))
    modules = _loaded(tmp_path, arguments, code)
    assert "kubernetes.aio.client.rest" in modules, "it asked"
    assert _among(modules, [*NOT_FOR_A_CLUSTER, *NOT_OF_A_LOGIN]) == []
    assert len(modules) <= MODULES_MAX


def test_status_of_a_cluster_loads_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(SCENES["well"][0], tmp_path) as file:
        monkeypatch.setenv("KUBECONFIG", str(file))
        modules = _loaded(tmp_path, ["status"], 0)
    assert _among(modules, [*NOT_FOR_A_CLUSTER, *NOT_OF_A_LOGIN]) == []
    assert len(modules) <= MODULES_MAX


_RULE = "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')"
_SPEC = {"schedulerName": "gpu", "filters": [{"name": "class", "expression": _RULE, "reason": "wrong class"}]}
ANSWERS: Mapping[str, object] = {
    **SCENES["well"][0],
    "/version": {},
    "/api/v1/nodes": items(
        {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}
    ),
    "/api/v1/namespaces": items({"metadata": {"name": "ml"}}),
    "/api/v1/configmaps": items(),
    POLICIES: items(policy("gpu-class") | {"spec": _SPEC}),
}


def test_what_deletes_loads_nothing_that_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(ANSWERS, tmp_path) as file:
        monkeypatch.setenv("KUBECONFIG", str(file))
        modules = _loaded(tmp_path, ["uninstall", "--dry-run", "-n", NAMESPACE], REFUSED)
    assert "fairlead.process.uninstaller" in modules, "the cluster answered, until it was asked for Secrets"
    assert {*_among(modules, [*NOT_FOR_A_CLUSTER, *NOT_OF_A_LOGIN])} == {*_among(modules, OF_UNINSTALL)}


JUDGING: dict[str, Sequence[str]] = {
    "explain": ["explain", "--pending"],
    "devices": ["devices"],
    "groups": ["groups"],
    "simulate": ["simulate", "--policies", "live"],
}


@pytest.mark.parametrize("arguments", JUDGING.values(), ids=JUDGING)
def test_what_judges_a_cluster_loads_what_its_options_need(
    arguments: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with api_server(ANSWERS, tmp_path) as file:
        monkeypatch.setenv("KUBECONFIG", str(file))
        modules = _loaded(tmp_path, arguments, 0)
    assert "fairlead.cli.inputs.simulated_cluster" in modules, "the cluster answered"
    assert "cel_expr_python" in modules, "the policy has compiled"
    assert _among(modules, [*NOT_WITHOUT_ITS_OPTION, *NOT_OF_A_LOGIN]) == []
    assert len(modules) <= MODULES_MAX_OF_JUDGING


def test_what_compares_files_with_a_cluster_loads_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "p"}, "spec": _SPEC}))
    with api_server(ANSWERS, tmp_path) as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster))
        modules = _loaded(tmp_path, ["diff", "--from", "live", "--to", str(file)], 0)
    assert "fairlead.cli.inputs.checker" in modules
    not_shown = ("cryptography", "fairlead.policy.lint.policy_checks", "fairlead.render.operator_settings")
    assert _among(modules, [*not_shown, *NOT_OF_A_LOGIN]) == []
    assert len(modules) <= MODULES_MAX_WITH_FILES


_ENDS = """
import atexit, gc, sys
from fairlead.__main__ import run
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000, file=sys.stderr))
sys.argv = ["fairlead", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["version"], 0), (["lint", "none.yaml"], 2)])
def test_no_garbage_is_looked_for_at_the_end(arguments: list[str], code: int, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", _ENDS, *arguments], check=False, capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (run.returncode, run.stderr.splitlines()[-1]) == (code, "False True"), run.stderr
