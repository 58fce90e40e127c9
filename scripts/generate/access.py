"""Writes the chart's roles from what the operator says that it needs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from fairlead.render.rbac import OPERATOR, UNINSTALL, Place, RbacRule, RoleGrant

TEMPLATES = Path(__file__).parents[2] / "charts" / "fairlead" / "templates"
_HEAD: Final = "{{- /* Written by `make crds` from operator/fairlead/render/rbac.py. Do not edit. */ -}}\n"
_OWN: Final = "{{ .Release.Namespace }}"
_QUOTED: Final = "{{ .Release.Namespace | quote }}"
_NAMESPACES: Final[dict[Place, str]] = {"own": _QUOTED, "kube-system": "kube-system", "default": "default"}


def operator() -> str:
    """The roles of the operator."""
    return _HEAD + _documents(OPERATOR, "operator", '{{ include "fairlead.serviceAccountName" . | quote }}', 0)


def uninstall() -> str:
    """Those of the job that takes everything away, which are there while it runs."""
    account = '{{ include "fairlead.fullname" . }}-uninstall'
    body = _documents(UNINSTALL, "uninstall", account, -5)
    return f"{_HEAD}{{{{- if .Values.uninstall.enabled }}}}\n{body}{{{{- end }}}}\n"


def _documents(grants: Iterable[RoleGrant], what: str, account: str, weight: int) -> str:
    return "---\n".join(
        _role(grant, what, weight) + "---\n" + _binding(grant, what, account, weight) for grant in grants
    )


def _head(kind: str, grant: RoleGrant, what: str, weight: int) -> str:
    lines = ["apiVersion: rbac.authorization.k8s.io/v1", f"kind: {kind}", "metadata:", f"  name: {_name(grant, what)}"]
    if grant.place in _NAMESPACES:
        lines.append(f"  namespace: {_NAMESPACES[grant.place]}")
    lines += ["  labels:", '    {{- include "fairlead.labels" . | nindent 4 }}']
    if weight:
        lines += ["  annotations:", f'    {{{{- include "fairlead.hook" {weight} | nindent 4 }}}}']
    return "\n".join(lines) + "\n"


def _name(grant: RoleGrant, what: str) -> str:
    """Outside our namespace there may be another operator's; ours may be one of the others."""
    elsewhere = "" if grant.place in ("cluster", "own") else f"-in-{grant.place}"
    return f"fairlead.{_OWN}.{what}{elsewhere}"


def _role(grant: RoleGrant, what: str, weight: int) -> str:
    kind = "ClusterRole" if grant.place == "cluster" else "Role"
    return _head(kind, grant, what, weight) + "rules:\n" + "".join(map("".join, map(_rule, grant.rules)))


def _rule(rule: RbacRule) -> Iterator[str]:
    if rule.self_managed:
        yield '{{- if eq .Values.tls.mode "SelfManaged" }}\n'
    if rule.unlisted:
        yield '{{- if eq .Values.unlistedSchedulers "Allow" }}\n'
    yield f"# {rule.why}\n"
    yield f'- apiGroups: ["{rule.group}"]\n'
    yield f"  resources: [{', '.join(rule.resources)}]\n"
    if rule.names:
        names = ", ".join(f'"{name}"' for name in rule.names).replace("{namespace}", _OWN)
        yield f"  resourceNames: [{names}]\n"
    yield f"  verbs: [{', '.join(rule.verbs)}]\n"
    if rule.self_managed or rule.unlisted:
        yield "{{- end }}\n"


def _binding(grant: RoleGrant, what: str, account: str, weight: int) -> str:
    kind = "ClusterRole" if grant.place == "cluster" else "Role"
    return _head(f"{kind}Binding", grant, what, weight) + (
        f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {_name(grant, what)}}}\n"
        "subjects:\n"
        f"- kind: ServiceAccount\n  name: {account}\n  namespace: {_QUOTED}\n"
    )


def files() -> dict[Path, str]:
    """What is written, by where."""
    return {TEMPLATES / "rbac.yaml": operator(), TEMPLATES / "uninstall-rbac.yaml": uninstall()}


def write() -> None:
    """Write what is generated here."""
    for file, text in files().items():
        file.write_text(text)
