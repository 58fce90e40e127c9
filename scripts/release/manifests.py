"""Renders the chart for those who install without Helm: install.yaml, and crds.yaml with the definition of policies."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from release import chart
from release.project import DIST, IMAGE, ROOT, ReleaseError, say

NAMESPACE = "fairlead-system"
_HEAD = f"""# Fairlead without Helm. Apply it with `kubectl apply --server-side -f install.yaml`.
# Before you delete it, run `fairlead uninstall --namespace {NAMESPACE}`.
apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}}}
"""
_CRD = "# Source: fairlead/templates/crd.yaml"


def render(values: Sequence[str] = ()) -> dict[str, str]:
    """Return the files by name; `values` are options of helm, such as `--set=image.tag=v1`."""
    command = [
        str(chart.helm()),
        "template",
        "fairlead",
        str(chart.CHART),
        f"--namespace={NAMESPACE}",
        "--no-hooks",
        *values,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(done.stderr.strip())
    text = done.stdout.replace("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
    documents = [one.strip() for one in re.split(r"(?m)^---\n", text) if one.strip()]
    crds = [one for one in documents if one.startswith(_CRD)]
    files = {"install.yaml": [_HEAD.strip(), *documents], "crds.yaml": crds}
    return {name: "---\n".join(f"{one}\n" for one in parts) for name, parts in files.items()}


def main(values: Sequence[str], folder: Path = DIST) -> None:
    """Write the files."""
    folder.mkdir(exist_ok=True)
    files = render(values)
    if f"image: {IMAGE}" in files["install.yaml"].replace('"', ""):
        say(
            f"warning: no image is published under {IMAGE} yet: name yours in SET, such as"
            ' SET="image.registry=registry.example.com image.repository=platform/fairlead image.tag=TAG"'
        )
    for name, text in files.items():
        (folder / name).write_text(text)
        say(f"{(folder / name).relative_to(ROOT)}: {len(text.encode()):,} bytes")
