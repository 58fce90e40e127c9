"""Kubeconfigs mean what they mean to kubectl, also where the official client's loaders differ."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.kube.access.login import log_in
from fairlead.kube.errors import AccessError
from scripted.loop import in_loop

Object = dict[str, Any]


def one(name: str, *, cluster: Object | None = None, user: Object | None = None, current: str | None = None) -> Object:
    return {
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"} | (cluster or {})}],
        "users": [{"name": name, "user": {"token": name} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name if current is None else current,
    }


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
OLD_PLUGIN = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}
MERGED: dict[str, tuple[Mapping[str, Object | str], str]] = {
    "both files have a current context": ({"a": one("a"), "b": one("b")}, "Bearer a"),
    "the second has none": ({"a": one("a"), "b": one("b", current="")}, "Bearer a"),
    "the first has none": ({"a": one("a", current=""), "b": one("b")}, "Bearer b"),
    "the first is empty": ({"a": "", "b": one("b")}, "Bearer b"),
    "the first is a comment": ({"a": "# nothing", "b": one("b")}, "Bearer b"),
    "a token file ends in a newline": ({"token": "t\n", "a": one("a", user={"tokenFile": "token"})}, "Bearer t"),
    "a token and a token file": ({"token": "t", "a": one("a", user={"token": "x", "tokenFile": "token"})}, "Bearer t"),
    "a token and a plugin": ({"a": one("a", user={"token": "t", "exec": PLUGIN | {"command": "false"}})}, "Bearer t"),
    "fields without a value": ({"a": one("a", user={"token": "t", "tokenFile": "", "exec": None})}, "Bearer t"),
    "malformed users": ({"a": one("a") | {"users": {"a": {}}}}, "users: is not a list"),
    "a user without a name": ({"a": one("a") | {"users": [{"user": {}}]}}, "users[0].name: is missing"),
    "acts as another": ({"a": one("a", user={"token": "t", "as": "root"})}, "user.as: is not supported"),
    "acts as a group": ({"a": one("a", user={"token": "t", "as-groups": ["g"]})}, "as-groups: is not supported"),
    "oidc": ({"a": one("a", user={"auth-provider": {"name": "oidc"}})}, "oidc is not supported here; use exec"),
    "gcp": ({"a": one("a", user={"auth-provider": {"name": "gcp"}})}, "is no longer supported"),
    "azure": ({"a": one("a", user={"auth-provider": {"name": "azure"}})}, "is no longer supported"),
    "a plugin that fails": (
        {"a": one("a", user={"exec": PLUGIN | {"command": "sh", "args": ["-c", "echo expired >&2; exit 1"]}})},
        "exec: sh: returned 1. expired",
    ),
    "a plugin that is missing": ({"a": one("a", user={"exec": PLUGIN | {"command": "no-such"}})}, "no such file"),
    "a plugin of another version": (
        {"a": one("a", user={"exec": OLD_PLUGIN})},
        "exec.apiVersion: 'client.authentication.k8s.io/v1alpha1' is not known",
    ),
}


@pytest.mark.parametrize(("files", "want"), MERGED.values(), ids=MERGED)
def test_what_is_presented_or_why_not(tmp_path: Path, files: Mapping[str, Object | str], want: str) -> None:
    for name, document in files.items():
        (tmp_path / name).write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    named = [str(tmp_path / "missing"), *(str(tmp_path / name) for name in files if name != "token")]
    try:
        presented = asyncio.run(log_in(environment={"KUBECONFIG": ":".join(named)}).connection()).authorization
    except AccessError as error:
        presented = str(error)
    assert presented == want if want.startswith("Bearer") else want in presented


@in_loop
async def test_the_cluster_says_which_proxy_and_which_name(tmp_path: Path) -> None:
    cluster = {"proxy-url": "http://proxy:1", "tls-server-name": "api"}
    (tmp_path / "a").write_text(yaml.safe_dump(one("a", cluster=cluster)))
    made = (
        await log_in(tmp_path / "a", environment={"HTTPS_PROXY": "http://x"}, use_proxy=True).connection()
    ).configuration
    assert (made.proxy, made.tls_server_name, made.host) == ("http://proxy:1", "api", "https://a")


@in_loop
async def test_a_token_of_the_pod_that_was_replaced_is_read_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"token": "one\n", "ca.crt": "x"}.items():
        (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    login = log_in(environment=environment, service_account=tmp_path)
    time = [0.0]
    monkeypatch.setattr(login, "_monotonic", lambda: time[0])
    seen = [(await login.connection()).authorization]
    (tmp_path / "token").write_text("two\n")
    for now in (59.0, 61.0):
        time[0] = now
        seen.append((await login.connection()).authorization)
    (tmp_path / "token").unlink()
    time[0] = 200.0
    seen.append((await login.connection()).authorization)
    assert seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


@in_loop
async def test_a_client_certificate_that_was_replaced_is_presented_after_a_refusal(tmp_path: Path) -> None:
    for name in ("crt", "key"):
        (tmp_path / name).write_text("old")
    user = {"client-certificate": "crt", "client-key": "key"}
    (tmp_path / "a").write_text(yaml.safe_dump(one("a", user=user)))
    login = log_in(tmp_path / "a")
    first = await login.connection()
    assert not login.renew(first), "nothing has changed"
    (tmp_path / "crt").write_text("new")
    assert login.renew(first)
    assert (await login.connection()).tls == (b"", b"new", b"old")
