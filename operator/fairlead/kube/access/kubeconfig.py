"""Kubeconfig files, merged by the official client with kubectl's precedence, and checked.

If several files define a cluster, a user, a context or the current context, the first one wins. Paths in a file are
relative to it.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from fairlead.kube.access.official_client import ConfigNode, KubeConfigMerger
from fairlead.kube.errors import AccessError

_BYTES_MAX: Final = 4 << 20
_COMPARE: Final = "compare with `kubectl config view`"
_EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_NO_TEXT: Final = ("exec", "auth-provider", "extensions", "insecure-skip-tls-verify", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True)
class Entry:
    """A cluster, user or context, and where it stands. Fields without a value are left out."""

    fields: Mapping[str, Any] = field(repr=False)
    file: str
    field: str

    @property
    def folder(self) -> Path:
        """Folder that its paths are relative to."""
        return Path(self.file).absolute().parent

    def wrong(self, name: str, what: str, hint: str) -> AccessError:
        """Return an error of one of its fields."""
        return AccessError(self.file, f"{self.field}.{name}" if name else self.field, what, hint)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Cluster and user of a context."""

    cluster: Entry
    user: Entry
    namespace: str

    @property
    def server(self) -> str:
        """Address of the API server."""
        return str(self.cluster.fields["server"]).rstrip("/")

    @property
    def asks(self) -> bool:
        """Return whether an exec plugin says who the user is."""
        return "exec" in self.user.fields


def choose(files: Iterable[Path], context: str = "") -> Chosen:
    """Return the cluster and the user of a context, or of the current one. Raises AccessError."""
    merger, current, read = KubeConfigMerger(""), "", list[str]()
    for file in files:
        path = file.absolute()
        read.append(str(file))
        document = _checked_document(file)
        if document:
            merger.load_config(str(path))
            current = current or document.get("current-context") or ""
    merged = merger.config.value if merger.config else {}
    where = ", ".join(read)
    name = context or current
    if not name:
        hint = "choose one with `kubectl config use-context NAME`"
        names = _names(merged.get("contexts", []))
        raise AccessError(where, "current-context", "is not set", f"{hint}; there are {names}")
    chosen = _pick(merged, "contexts", name, where, "contexts")
    cluster = _pick(merged, "clusters", chosen.fields.get("cluster", ""), chosen.file, f"{chosen.field}.cluster")
    user = Entry({}, chosen.file, chosen.field)
    if user_name := chosen.fields.get("user"):
        user = _pick(merged, "users", user_name, chosen.file, f"{chosen.field}.user")
    _check_cluster(cluster)
    return Chosen(cluster, _checked_user(user), str(chosen.fields.get("namespace", "default")))


def named(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the files in KUBECONFIG. Missing ones are skipped, unless all are missing."""
    paths = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [path for path in paths if path.exists()] or paths[:1]


def _pick(merged: Mapping[str, Any], kind: str, name: str, file: str, at: str) -> Entry:
    entries: list[ConfigNode] = merged.get(kind, [])
    for entry in entries:
        if entry.value["name"] == name:
            one = kind.removesuffix("s")
            fields = entry.value.get(one) or {}
            kept = {key: value for key, value in fields.items() if value not in (None, "", [], {})}
            place = Entry(kept, entry.path, f"{kind}[{name}].{one}")
            for key, value in kept.items():
                if not isinstance(value, str) and key not in _NO_TEXT:
                    raise place.wrong(key, f"is {type(value).__name__}, not a string", _COMPARE)
            return place
    raise AccessError(file, at, f"there is no {name!r}", f"it must be one of {_names(entries)}")


def _names(entries: Iterable[ConfigNode]) -> str:
    return ", ".join(sorted(str(one.value["name"]) for one in entries)) or "none"


def _checked_document(path: Path) -> dict[str, Any]:
    """Return the contents of a file in the form that the official client takes for granted. Raises AccessError."""
    hint = "give a kubeconfig that can be read, with --kubeconfig or KUBECONFIG"
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise AccessError(str(path), "", (error.strerror or str(error)).lower(), hint) from error
    if len(data) > _BYTES_MAX:
        raise AccessError(str(path), "", "is too large to be a kubeconfig", hint)
    try:
        document = yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}  # noqa: S506  a safe loader
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:  # tags that do not fit
        mark = getattr(error, "problem_mark", None)
        place = f" from line {mark.line + 1} on: {getattr(error, 'problem', '')}" if mark else f": {error}"
        raise AccessError(str(path), "", f"is not YAML{place}", hint) from error
    if not isinstance(document, dict):
        raise AccessError(str(path), "", f"is a {type(document).__name__}, not a kubeconfig", _COMPARE)
    for kind in ("clusters", "users", "contexts"):
        entries = document.get(kind) or []
        if not isinstance(entries, list):
            raise AccessError(str(path), kind, "is not a list", _COMPARE)
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise AccessError(str(path), f"{kind}[{index}].name", "is missing", _COMPARE)
            if not isinstance(entry.get(kind[:-1]) or {}, dict):
                raise AccessError(str(path), f"{kind}[{index}].{kind[:-1]}", "is not an object", _COMPARE)
    return document


def _check_cluster(cluster: Entry) -> None:
    fields = cluster.fields
    if not _is_address(fields.get("server", "")):
        server = fields.get("server", "")
        raise cluster.wrong("server", f"{server!r} is not an address", "it must be https://HOST[:PORT]")
    proxy = fields.get("proxy-url", "")
    if proxy and not _is_address(proxy):
        hint = "it must be http://HOST:PORT or https://HOST:PORT"
        raise cluster.wrong("proxy-url", f"{proxy!r} is not a supported proxy", hint)
    _check_data(cluster, "certificate-authority")
    if fields.get("insecure-skip-tls-verify") and any(name.startswith("certificate-authority") for name in fields):
        what = "is set together with certificate-authority"
        raise cluster.wrong("insecure-skip-tls-verify", what, "remove one of the two")


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        host = (address.hostname or "").encode("idna")
        return address.scheme in ("http", "https") and address.port != 0 and bool(host)
    except ValueError:  # an unclosed bracket, an invalid port, two dots in a row
        return False


def _checked_user(user: Entry) -> Entry:
    """Return a user without what kubectl does not look at. Raises AccessError for what would be ignored."""
    fields = dict(user.fields)
    if provider := fields.get("auth-provider"):
        name = provider.get("name", "") if isinstance(provider, dict) else ""
        if name == "oidc":
            raise user.wrong("auth-provider", "oidc is not supported here", "use exec, with `kubectl oidc-login`")
        raise user.wrong("auth-provider", "is no longer supported", "kubectl does not support it either; use exec")
    for name in ("as", "as-uid", "as-groups", "as-user-extra"):
        if fields.get(name):
            raise user.wrong(name, "is not supported", "use a user that has the permissions itself")
    for name in ("client-certificate", "client-key"):
        _check_data(user, name)
    pair = [name in fields or f"{name}-data" in fields for name in ("client-certificate", "client-key")]
    if pair[0] != pair[1]:
        raise user.wrong("", "has a client-certificate or a client-key without the other", "give both or none")
    has_token = "token" in fields or "tokenFile" in fields
    if has_token and "username" in fields:
        raise user.wrong("", "has a token and a username", "keep one of the two")
    if has_token or "username" in fields:
        fields.pop("exec", None)
    if "exec" in fields:
        _check_exec(user)
    return Entry(fields, user.file, user.field)


def _check_exec(user: Entry) -> None:
    plugin = user.fields["exec"]
    if not isinstance(plugin, dict) or not isinstance(plugin.get("command"), str):
        raise user.wrong("exec.command", "is missing", _COMPARE)
    version = plugin.get("apiVersion", "")
    if version not in _EXEC_VERSIONS:
        hint = f"it must be {' or '.join(_EXEC_VERSIONS)}; a newer version of the program has it"
        raise user.wrong("exec.apiVersion", f"{version!r} is not known", hint)
    mode = plugin.get("interactiveMode") or ("IfAvailable" if version == _EXEC_VERSIONS[1] else "")
    if mode not in ("Never", "IfAvailable", "Always"):
        raise user.wrong("exec.interactiveMode", f"{mode!r} is not known", "it must be Never, IfAvailable or Always")


def _check_data(entry: Entry, name: str) -> None:
    try:
        base64.b64decode("".join(entry.fields.get(f"{name}-data", "").split()), validate=True)  # may have several lines
    except (binascii.Error, ValueError) as error:
        raise entry.wrong(f"{name}-data", "is not base64", "encode the PEM file with `base64 -w0`") from error
