"""Kubeconfig files: merged as kubectl does it, and errors that name file, field and cure."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.kube.access.kubeconfig import choose
from fairlead.kube.access.login import Login, from_kubeconfig, log_in
from fairlead.kube.errors import AccessError

Object = dict[str, Any]


def config(
    name: str = "dev", *, cluster: Object | None = None, user: Object | None = None, context: Object | None = None
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}],
        "users": [{"name": name, "user": {"token": f"token-of-{name}"} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | (context or {})}],
        "current-context": name,
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, object], Path]:
    def write(name: str, document: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        return path

    return write


Write = Callable[[str, object], Path]


def test_the_current_context_is_taken_or_the_one_that_is_named(write: Write) -> None:
    files = [write("a", config("dev")), write("b", config("prod", context={"namespace": "x"}))]
    assert choose(files).server == "https://dev:6443"
    chosen = choose(files, "prod")
    assert (chosen.server, chosen.user.fields.get("token", ""), chosen.namespace) == (
        "https://prod:6443",
        "token-of-prod",
        "x",
    )


def test_of_several_files_the_first_has_its_way(write: Write) -> None:
    first = config("dev", user={"username": "u", "password": "p"}) | {"current-context": ""}
    second = config("dev", cluster={"server": "https://other"}, user={"token": "other"}) | {"current-context": "dev"}
    chosen = choose([write("a", first), write("b", second)])
    assert chosen.server == "https://dev:6443"
    assert chosen.user.fields["username"] == "u"
    assert chosen.user.fields.get("token", "") == "", "not even what the first leaves out"


def test_a_context_may_name_what_stands_in_another_file(write: Write) -> None:
    only_context = {"contexts": [{"name": "x", "context": {"cluster": "dev", "user": "dev"}}], "users": None}
    assert choose([write("a", only_context), write("b", config("dev"))], "x").user.fields["token"] == "token-of-dev"


def test_paths_are_relative_to_the_file_that_they_stand_in(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "token").write_text("secret")
    file = write("one/config", config(user={"tokenFile": "token", "token": "older"}))
    monkeypatch.chdir(tmp_path)
    access = from_kubeconfig([file.relative_to(tmp_path)])
    monkeypatch.chdir("/")
    assert _header(access) == "Bearer secret", "of a token and a file, the file"


def _header(access: Login) -> str:
    return asyncio.run(access.connection()).authorization


def test_a_password_is_shown_as_one(write: Write) -> None:
    access = from_kubeconfig([write("a", config(user={"username": "u", "password": "p:q"}))])
    assert base64.b64decode(_header(access).removeprefix("Basic ")) == b"u:p:q"


def test_a_user_may_show_nothing(write: Write) -> None:
    assert _header(from_kubeconfig([write("a", config(user={}))])) == ""
    assert _header(from_kubeconfig([write("b", config(context={"user": ""}))])) == ""


def test_an_address_without_tls_is_asked_without(write: Write) -> None:
    access = from_kubeconfig([write("a", config(cluster={"server": "http://127.0.0.1:8001/"}))])
    assert access.server == "http://127.0.0.1:8001"


def exec_user(**fields: object) -> Object:
    base = {"command": "me", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}
    return {"exec": base | fields}


def test_data_may_have_several_lines(write: Write) -> None:
    access = from_kubeconfig([write("a", config(cluster={"certificate-authority-data": "aGVs\nbG8=\r\n"}))])
    assert asyncio.run(access.connection()).tls[0] == b"hello"


BAD: dict[str, tuple[object, str]] = {
    "no YAML": ("a: [", "a: is not YAML from line 2 on: "),
    "a tag that does not fit": ("a: !!bool maybe", "a: is not YAML: 'maybe'; give a kubeconfig"),
    "no map": ("[1]", "a: is a list, not a kubeconfig; compare with `kubectl config view`"),
    "empty": ("", "a: current-context: is not set; choose one with `kubectl config use-context NAME`; there are none"),
    "a wrong type": (
        config(cluster={"server": 5}),
        "a: clusters[dev].cluster.server: is int, not a string; compare with `kubectl config view`",
    ),
    "no such context": (config() | {"current-context": "x"}, "a: contexts: there is no 'x'; it must be one of dev"),
    "no such cluster": (
        config(context={"cluster": "x"}),
        "a: contexts[dev].context.cluster: there is no 'x'; it must be one of dev",
    ),
    "no such user": (
        config(context={"user": "x"}),
        "a: contexts[dev].context.user: there is no 'x'; it must be one of dev",
    ),
    "no address": (
        config(cluster={"server": "dev:6443"}),
        "a: clusters[dev].cluster.server: 'dev:6443' is not an address; it must be https://HOST[:PORT]",
    ),
    "no port": (
        config(cluster={"server": "https://dev:http"}),
        "a: clusters[dev].cluster.server: 'https://dev:http' is not an address; it must be https://HOST[:PORT]",
    ),
    "two dots in a row": (
        config(cluster={"server": "https://dev..example"}),
        "a: clusters[dev].cluster.server: 'https://dev..example' is not an address; it must be https://HOST[:PORT]",
    ),
    "half an address": (
        config(cluster={"server": "https://[::1:6443"}),
        "a: clusters[dev].cluster.server: 'https://[::1:6443' is not an address; it must be https://HOST[:PORT]",
    ),
    "no port of a proxy": (
        config(cluster={"proxy-url": "http://x:99999"}),
        "a: clusters[dev].cluster.proxy-url: 'http://x:99999' is not a supported proxy",
    ),
    "a proxy that we do not know": (
        config(cluster={"proxy-url": "socks5://x:1"}),
        "a: clusters[dev].cluster.proxy-url: 'socks5://x:1' is not a supported proxy",
    ),
    "an authority that nobody looks at": (
        config(cluster={"certificate-authority": "x", "insecure-skip-tls-verify": True}),
        "a: clusters[dev].cluster.insecure-skip-tls-verify: is set together with certificate-authority; remove one",
    ),
    "data that is none": (
        config(cluster={"certificate-authority-data": "%"}),
        "a: clusters[dev].cluster.certificate-authority-data: is not base64; encode",
    ),
    "a key without its certificate": (
        config(user={"client-key": "x"}),
        "a: users[dev].user: has a client-certificate or a client-key without the other; give both or none",
    ),
    "two ways to say who": (
        config(user={"username": "u", "token": "t"}),
        "a: users[dev].user: has a token and a username; keep one of the two",
    ),
    "a way of old": (
        config(user={"auth-provider": {"name": "gcp"}}),
        "a: users[dev].user.auth-provider: is no longer supported",
    ),
    "somebody else": (config(user={"token": "t", "as": "root"}), "a: users[dev].user.as: is not supported"),
    "a plugin of old": (
        config(user=exec_user(apiVersion="client.authentication.k8s.io/v1alpha1")),
        "a: users[dev].user.exec.apiVersion: 'client.authentication.k8s.io/v1alpha1' is not known; it must be",
    ),
    "a plugin that may ask": (
        config(user=exec_user(interactiveMode="")),
        "a: users[dev].user.exec.interactiveMode: '' is not known; it must be Never, IfAvailable or Always",
    ),
    "a plugin without a program": (
        config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
        "a: users[dev].user.exec.command: is missing; compare",
    ),
}


@pytest.mark.parametrize(("document", "want"), BAD.values(), ids=BAD)
def test_a_file_is_refused(write: Write, tmp_path: Path, document: object, want: str) -> None:
    with pytest.raises(AccessError) as error:
        from_kubeconfig([write("a", document)])
    assert str(error.value).replace(f"{tmp_path}/", "").startswith(want)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(AccessError, match=r"^/no/such: no such file or directory; give a kubeconfig that can be read"):
        from_kubeconfig([Path("/no/such")])


def test_a_file_that_is_named_by_a_field_is_named_with_it(write: Write, tmp_path: Path) -> None:
    access = from_kubeconfig([write("a", config(user={"tokenFile": "x"}))])
    with pytest.raises(AccessError) as error:
        _header(access)
    want = f"{tmp_path}/x: users[dev].user.tokenFile: no such file or directory; name a file that holds a token"
    assert str(error.value) == want


def test_where_the_cluster_is_looked_for(write: Write, tmp_path: Path) -> None:
    def server(environment: dict[str, str], file: Path | None = None) -> str:
        return log_in(file, environment=environment, service_account=tmp_path / "pod").server

    named, other, home = write("a", config("named")), write("b", config("other")), str(tmp_path / "home")
    (tmp_path / "home").mkdir()
    with pytest.raises(
        AccessError, match=r"no cluster: KUBECONFIG is not set, this is not a pod, and .*config does not exist"
    ):
        server({"HOME": home})
    (tmp_path / "home" / ".kube").mkdir()
    write("home/.kube/config", config("home"))
    write("pod/token", "t")
    write("pod/ca.crt", "c")
    pod = {"HOME": home, "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    kubeconfig = pod | {"KUBECONFIG": f":/no/such:{other}:{named}"}
    assert server({"HOME": home}) == "https://home:6443"
    assert server(pod) == "https://[fd00::1]:443"
    assert server(kubeconfig) == "https://other:6443"
    assert server(kubeconfig, named) == "https://named:6443"
    with pytest.raises(AccessError, match="/no/such: no such file"):
        server(pod | {"KUBECONFIG": "/no/such"})


@pytest.mark.parametrize(
    ("environment", "files", "want"),
    [
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            ["token", "ca.crt"],
            "KUBERNETES_SERVICE_HOST and _PORT: are not both set",
        ),
        (
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"},
            ["ca.crt"],
            "token: the service account's token",
        ),
        (
            {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"},
            ["token"],
            "ca.crt: the cluster's authority",
        ),
    ],
)
def test_a_pod_must_have_what_it_needs(
    write: Write, tmp_path: Path, environment: dict[str, str], files: list[str], want: str
) -> None:
    for name in files:
        write(f"pod/{name}", "x")
    with pytest.raises(AccessError) as error:
        log_in(environment=environment, service_account=tmp_path / "pod")
    assert want in str(error.value)


def test_a_pod_knows_its_namespace(write: Write, tmp_path: Path) -> None:
    for name in ("token", "ca.crt"):
        write(f"pod/{name}", "x")
    write("pod/namespace", "fairlead-system")
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = log_in(environment=environment, service_account=tmp_path / "pod")
    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "fairlead-system")
    assert _header(access) == "Bearer x"
