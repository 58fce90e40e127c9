"""Kubeconfig files: found, merged and read as kubectl does.

If several files define a cluster, a user, a context or the current context, the first one wins. Paths in a file are
relative to it.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import yaml

from fairlead.kube.errors import AccessError
from fairlead.plain_data import without_nulls

T = TypeVar("T")
EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_BYTES_MAX: Final = 4 << 20
_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Extension(msgspec.Struct, frozen=True):
    """Data of another tool."""

    name: str = ""
    extension: Any = None  # passed to a plugin unchanged


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    """An API server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = []


class Variable(msgspec.Struct, frozen=True):
    """Environment variable of a plugin."""

    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """Exec plugin of a user."""

    command: str
    api_version: str
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    """A user and its credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    as_: str = msgspec.field(default="", name="as")

    def __repr__(self) -> str:
        """Hide all secrets."""
        return "User(...)"


class Context(msgspec.Struct, frozen=True):
    """A cluster with a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()
    user: User = User()
    context: Context = Context()


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: list[_Named] = []
    users: list[_Named] = []
    contexts: list[_Named] = []
    current_context: str = ""


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    """Location of an entry, and the folder that its paths are relative to."""

    file: str
    field: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Chosen:
    """Cluster and user of a context."""

    cluster: Cluster
    cluster_at: ConfigLocation
    user: User
    user_at: ConfigLocation
    namespace: str


@dataclass(slots=True)
class _Merged:
    files: list[str] = field(default_factory=list)
    clusters: dict[str, tuple[Cluster, ConfigLocation]] = field(default_factory=dict)
    users: dict[str, tuple[User, ConfigLocation]] = field(default_factory=dict)
    contexts: dict[str, tuple[Context, ConfigLocation]] = field(default_factory=dict)
    current: str = ""


def choose(files: Iterable[Path], context: str = "") -> Chosen:
    """Return the cluster and the user of a context, or of the current one. Raises AccessError."""
    merged = _Merged()
    for file in files:
        _merge(merged, file, _read(file))
    where = ", ".join(merged.files)
    name = context or merged.current
    if not name:
        hint = "choose one with `kubectl config use-context NAME`"
        raise AccessError(where, "current-context", "is not set", f"{hint}; there are {_names(merged.contexts)}")
    chosen, at = _pick(merged.contexts, name, where, "contexts")
    cluster, cluster_at = _pick(merged.clusters, chosen.cluster, at.file, f"{at.field}.cluster")
    user, user_at = (User(), at) if not chosen.user else _pick(merged.users, chosen.user, at.file, f"{at.field}.user")
    return Chosen(cluster, cluster_at, user, user_at, chosen.namespace or "default")


def _pick(named: Mapping[str, tuple[T, ConfigLocation]], name: str, file: str, field: str) -> tuple[T, ConfigLocation]:
    if name not in named:
        raise AccessError(file, field, f"there is no {name!r}", f"it must be one of {_names(named)}")
    return named[name]


def _names(named: Iterable[str]) -> str:
    return ", ".join(sorted(named)) or "none"


def _merge(merged: _Merged, path: Path, file: _File) -> None:
    merged.files.append(str(path))
    merged.current = merged.current or file.current_context
    folder = path.absolute().parent
    for one in file.clusters:
        merged.clusters.setdefault(
            one.name, (one.cluster, ConfigLocation(str(path), f"clusters[{one.name}].cluster", folder))
        )
    for one in file.users:
        merged.users.setdefault(one.name, (one.user, ConfigLocation(str(path), f"users[{one.name}].user", folder)))
    for one in file.contexts:
        merged.contexts.setdefault(
            one.name, (one.context, ConfigLocation(str(path), f"contexts[{one.name}].context", folder))
        )


def _read(path: Path) -> _File:
    hint = "give a kubeconfig that can be read, with --kubeconfig or KUBECONFIG"
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise AccessError(str(path), "", (error.strerror or str(error)).lower(), hint) from error
    if len(data) > _BYTES_MAX:
        raise AccessError(str(path), "", "is too large to be a kubeconfig", hint)
    try:
        document = without_nulls(yaml.load(data, _Loader) or {})  # noqa: S506  a safe loader
        return msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        what, _, at = str(error).partition(" - at `$.")
        raise AccessError(str(path), at.rstrip("`"), what, "compare with `kubectl config view`") from error
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:  # tags that do not fit
        raise AccessError(str(path), "", f"is not YAML{_place(error)}", hint) from error


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f" from line {mark.line + 1} on: {getattr(error, 'problem', '')}" if mark else f": {error}"


def named(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Return the files in KUBECONFIG. Missing ones are skipped, unless all are missing."""
    paths = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    return [path for path in paths if path.exists()] or paths[:1]
