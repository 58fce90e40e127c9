"""The chart, rendered by helm. `make crds` writes the golden files anew."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fairlead.render.templates import written
from testbed import build
from testbed.versions import KUBERNETES, program

CHART = Path(__file__).parents[3] / "charts" / "fairlead"
NOTES = Path(__file__).parents[2] / "data" / "chart-notes.txt"
GOLDEN = Path(__file__).parents[2] / "data" / "chart"
CASES = {file.name.removesuffix("-values.yaml"): file for file in sorted((CHART / "ci").glob("*-values.yaml"))}
NAMESPACE = "fairlead-system"


class ChartError(Exception):
    """Helm refuses it; says why."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses what stands there twice, as kustomize does, which comes after helm in Flux."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(made) != len(node.value):
            raise ChartError(f"a key stands there twice: {node.start_mark}")
        return made


def helm(*arguments: str, by: str = "helm") -> str:
    """Print of a Helm command; `by` is the program, which may be helm-3."""
    command = [str(_helm(by)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise ChartError(done.stderr + done.stdout)
    return done.stdout


@cache
def _helm(name: str) -> Path:
    return build.build([program(name)])[name]


def template(
    *values: Path | str, namespace: str = NAMESPACE, release: str = "fairlead", by: str = "helm"
) -> list[dict[str, Any]]:
    """The objects of the chart, with values of files, or written as `a.b=c`."""
    given = [f"--values={one}" if isinstance(one, Path) else f"--set-json={one}" for one in values]
    text = helm("template", release, str(CHART), f"--namespace={namespace}", *given, by=by)
    return [one for one in yaml.load_all(text, _Loader) if one is not None]


def golden(case: str, by: str = "helm") -> str:
    """Manifests of a case, without the CRD, which never differs."""
    objects = [one for one in template(CASES[case], by=by) if one["kind"] != "CustomResourceDefinition"]
    return written(sorted(objects, key=lambda one: (one["kind"], one["metadata"]["name"], str(one["metadata"]))))


def notes(kubernetes: str) -> str:
    """Return what an install on a version of Kubernetes prints; helm prints it in no dry run for another version."""
    with tempfile.TemporaryDirectory() as folder:
        chart = shutil.copytree(CHART, Path(folder) / CHART.name)
        shown = 'notes: |\n{{ include (print $.Template.BasePath "/NOTES.txt") . | indent 2 }}\n'
        (chart / "templates" / "shown.yaml").write_text(shown)
        asked = (f"--namespace={NAMESPACE}", f"--kube-version={kubernetes}", "--show-only=templates/shown.yaml")
        made: str = yaml.safe_load(helm("template", "fairlead", str(chart), *asked))["notes"]
    return made


def can_opt_in(version: str) -> bool:
    """Return whether API servers of a Kubernetes version have MutatingAdmissionPolicy, which optIn needs."""
    return int(version.split(".")[1]) >= 36


def write() -> None:
    """Write the golden files anew."""
    GOLDEN.mkdir(exist_ok=True)
    for name in CASES:
        (GOLDEN / f"{name}.yaml").write_text(golden(name))
    NOTES.write_text(notes(KUBERNETES[0]))
