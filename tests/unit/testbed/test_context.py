"""What is read must be what kubectl reads: of several files, the first that defines a thing."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.errors import ClusterError
from testbed.providers import context

_PATHS = {
    "KUBECONFIG names one file": ({"KUBECONFIG": "/a"}, ["/a"]),
    "KUBECONFIG names several, and nothing in between": ({"KUBECONFIG": "/a::/b:"}, ["/a", "/b"]),
    "an empty KUBECONFIG is none": ({"KUBECONFIG": "", "HOME": "/home/me"}, ["/home/me/.kube/config"]),
    "without KUBECONFIG it is the user's own": ({"HOME": "/home/me"}, ["/home/me/.kube/config"]),
}


@pytest.mark.parametrize(("environment", "wanted"), _PATHS.values(), ids=_PATHS)
def test_the_files_are_those_that_kubectl_reads(environment: dict[str, str], wanted: list[str]) -> None:
    assert context.paths(environment) == [Path(path) for path in wanted]


def test_of_several_files_the_first_that_defines_a_thing_counts(tmp_path: Path) -> None:
    first = _write(tmp_path / "a", contexts={"here": ("one", "me")}, clusters={"one": {"server": "https://first"}})
    second = _write(
        tmp_path / "b",
        current="here",
        contexts={"here": ("two", "me")},
        clusters={"one": {"server": "https://second"}, "two": {"server": "https://third"}},
        users={"me": {"token": "t"}, "other": {"token": "secret"}},
    )
    found = context.read_current([first, tmp_path / "missing", second])
    assert (found.name, found.server) == ("here", "https://first")
    assert found.document["users"] == [{"name": "me", "user": {"token": "t"}}]
    assert "secret" not in yaml.safe_dump(found.document)


def test_files_that_it_names_are_inside_whatever_the_current_directory(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "ca.crt").write_bytes(b"ca")
    (tmp_path / "keys" / "me.key").write_bytes(b"key")
    file = _write(
        tmp_path / "config",
        current="here",
        contexts={"here": ("one", "me")},
        clusters={"one": {"server": "https://x", "certificate-authority": "keys/ca.crt"}},
        users={
            "me": {"client-key": str(tmp_path / "keys/me.key"), "tokenFile": "token", "exec": {"command": "./login"}}
        },
    )
    document = context.read_current([file]).document
    assert document["clusters"][0]["cluster"] == {"server": "https://x", "certificate-authority-data": _base64(b"ca")}
    assert document["users"][0]["user"] == {
        "client-key-data": _base64(b"key"),
        "tokenFile": str(tmp_path / "token"),
        "exec": {"command": str(tmp_path / "login")},
    }


def test_a_program_found_on_the_path_is_left_so(tmp_path: Path) -> None:
    users: dict[str, Any] = {"me": {"exec": {"command": "aws"}}}
    file = _write(
        tmp_path / "config",
        current="x",
        contexts={"x": ("c", "me")},
        clusters={"c": {"server": "https://x"}},
        users=users,
    )
    assert context.read_current([file]).document["users"][0]["user"] == {"exec": {"command": "aws"}}


_WRONG = {
    "no file": (None, "there is no kubeconfig .*config"),
    "an empty file": ("", "has no current context"),
    "not YAML": ("a: [", "config cannot be read"),
    "a context that is not there": ("current-context: gone", "has no context 'gone'"),
    "a cluster that is not there": (
        "{current-context: x, contexts: [{name: x, context: {cluster: lost, user: me}}]}",
        "has no cluster 'lost'",
    ),
    "a certificate that is not there": (
        """{current-context: x, contexts: [{name: x, context: {cluster: c}}],
            clusters: [{name: c, cluster: {server: s, certificate-authority: gone.crt}}]}""",
        "gone.crt, which the kubeconfig names, cannot be read",
    ),
}


@pytest.mark.parametrize(("text", "wanted"), _WRONG.values(), ids=_WRONG)
def test_what_is_wrong_is_said(text: str | None, wanted: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ClusterError, match=wanted):
        context.read_current([file])


def _write(
    path: Path,
    *,
    current: str = "",
    contexts: dict[str, tuple[str, str]] | None = None,
    clusters: dict[str, Any] | None = None,
    users: dict[str, Any] | None = None,
) -> Path:
    document = {
        "current-context": current,
        "contexts": [
            {"name": name, "context": {"cluster": cluster, "user": user}}
            for name, (cluster, user) in (contexts or {}).items()
        ],
        "clusters": [{"name": name, "cluster": entry} for name, entry in (clusters or {}).items()],
        "users": [{"name": name, "user": entry} for name, entry in (users or {}).items()],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
