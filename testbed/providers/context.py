"""Reads the cluster that the user's kubeconfig names, as one document that works wherever it is copied to.

`kubectl config view --raw --minify --flatten` does the same, but a machine need not have kubectl, and building it
takes minutes.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import ClusterError

_Document = dict[str, Any]
_FILES = {
    "certificate-authority": "certificate-authority-data",
    "client-certificate": "client-certificate-data",
    "client-key": "client-key-data",
}


@dataclass(frozen=True, slots=True)
class Context:
    """One context of a kubeconfig."""

    name: str
    server: str
    source: str
    document: _Document

    def __str__(self) -> str:
        return f"the cluster at {self.server or 'no server'} (context {self.name} of {self.source})"


def paths(environment: Mapping[str, str]) -> list[Path]:
    """The kubeconfigs that kubectl would read, in its order."""
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(environment.get("HOME", "/"), ".kube", "config")]


def read_current(files: Sequence[Path]) -> Context:
    """The current context of several kubeconfigs: what two of them define is taken from the first, as kubectl does."""
    source = os.pathsep.join(map(str, files))
    documents = [(path, _read(path)) for path in files if path.exists()]
    if not documents:
        raise ClusterError(
            f"there is no kubeconfig {source}", cure="set KUBECONFIG to the file that reaches your cluster"
        )
    name = next((str(one["current-context"]) for _, one in documents if one.get("current-context")), "")
    if not name:
        raise ClusterError(f"{source} has no current context", cure="`kubectl config use-context NAME` sets it")
    context, _ = _named(documents, "context", name, source)
    cluster, near = _named(documents, "cluster", str(context.get("cluster", "")), source)
    user, beside = (
        _named(documents, "user", str(context.get("user", "")), source) if context.get("user") else ({}, near)
    )
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context["cluster"], "cluster": _inlined(cluster, near)}],
        "users": [{"name": context.get("user", ""), "user": _inlined(user, beside)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return Context(name, str(cluster.get("server", "")), source, document)


def _read(path: Path) -> _Document:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ClusterError(f"{path} cannot be read: {error}", cure="mend it, or set KUBECONFIG to another") from error
    return document if isinstance(document, dict) else {}


def _named(documents: Sequence[tuple[Path, _Document]], kind: str, name: str, source: str) -> tuple[_Document, Path]:
    for path, document in documents:
        for one in document.get(f"{kind}s") or []:
            if one.get("name") == name:
                return one.get(kind) or {}, path.parent
    raise ClusterError(f"{source} has no {kind} {name!r}", cure="see `kubectl config view`")


def _inlined(entry: _Document, folder: Path) -> _Document:
    """The same with the contents of the files that it names, whose paths are relative to the kubeconfig's folder."""
    inlined = dict(entry)
    for field, data in _FILES.items():
        if file := inlined.pop(field, None):
            inlined.setdefault(data, base64.b64encode(_content(folder / file)).decode())
    if file := inlined.get("tokenFile"):  # it is renewed by somebody: only its place can be kept
        inlined["tokenFile"] = str((folder / file).absolute())
    command = (inlined.get("exec") or {}).get("command", "")
    if "/" in command:
        inlined["exec"] = {**inlined["exec"], "command": str((folder / command).absolute())}
    return inlined


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ClusterError(
            f"{path}, which the kubeconfig names, cannot be read: {error}", cure="mend the kubeconfig"
        ) from error
