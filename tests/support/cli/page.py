"""The page of a cluster in files, without a server."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fairlead.api.names import API_VERSION, KIND
from fairlead.cli.main import parser
from fairlead.cli.ui.page_reader import PageReader
from fairlead.cli.ui.page_view import PageInput, PageView, page_view
from fairlead.cli.ui.shown_pods import ShownPods

Object = Mapping[str, Any]


def node(name: str, gpus: int = 8, *, cpu: str = "8", labels: Mapping[str, str] | None = None, **rest: Any) -> Object:
    """A node with GPUs."""
    allocatable = {"cpu": cpu, "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": allocatable, "conditions": conditions}
    metadata = {"name": name, "labels": dict(labels or {}), "annotations": rest.pop("annotations", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status, "spec": rest}


def pod(name: str, gpus: int = 1, *, on: str = "", job: str = "", cpu: str = "1", **labels: str) -> Object:
    """A pod of the scheduler of the policies."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}
    requests = {"cpu": cpu, "nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "resources": {"requests": requests, "limits": {"nvidia.com/gpu": str(gpus)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "labels": labels, "ownerReferences": [owner] if job else []},
        "spec": {"schedulerName": "fairlead", "containers": [container], **({"nodeName": on} if on else {})},
        "status": {"phase": "Running" if on else "Pending"},
    }


def policy(name: str, *filters: tuple[str, str], scores: Sequence[str] = (), **spec: Any) -> Object:
    """A policy of filters, each an expression and its reason, and scores."""
    rules = [{"name": f"f{at}", "expression": text, "reason": why} for at, (text, why) in enumerate(filters)]
    rated = [{"name": f"s{at}", "expression": text} for at, text in enumerate(scores)]
    whole = {**({"filters": rules} if rules else {}), **({"scores": rated} if rated else {}), **spec}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": whole}


def write(folder: Path, objects: Iterable[Object], policies: Iterable[Object]) -> list[str]:
    """Write a cluster and its policies; return the options that name them."""
    snapshot, rules = folder / "cluster.json", folder / "policies.yaml"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
    rules.write_text(yaml.safe_dump_all([*policies], sort_keys=False))
    return ["--snapshot", str(snapshot), "--policies", str(rules)]


def read(options: Sequence[str]) -> PageInput:
    """Read what the page shows of the cluster of these options."""
    return asyncio.run(PageReader(parser().parse_args(["ui", *options])).read())


def page_of(folder: Path, objects: Iterable[Object], policies: Iterable[Object]) -> tuple[PageView, ShownPods]:
    """The views of a cluster, and its judged pods."""
    return page_view(read(write(folder, objects, policies)))
