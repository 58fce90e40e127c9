"""Proxies of the environment: for the command line, with kubectl's exceptions."""

from pathlib import Path

import pytest
import yaml

from fairlead.kube.access.login import log_in
from fairlead.kube.access.proxies import environment_proxy
from scripted.loop import in_loop

PROXY = "http://proxy:3128"
CASES = {
    "a server": ("https://api.example:6443", {"HTTPS_PROXY": PROXY}, PROXY),
    "lower case": ("https://api.example", {"https_proxy": PROXY}, PROXY),
    "no scheme": ("https://api.example", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
    "plain HTTP": ("http://api.example", {"HTTPS_PROXY": PROXY}, ""),
    "loopback": ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
    "localhost": ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
    "excluded": ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "x, example"}, ""),
    "a domain with a dot": ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example"}, ""),
    "another domain": ("https://apiexample", {"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, PROXY),
    "a network": ("https://10.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, ""),
    "another network": ("https://11.1.2.3", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, PROXY),
    "another port": ("https://api.example:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:443"}, PROXY),
    "everything": ("https://api.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
}


@pytest.mark.parametrize(("server", "environment", "want"), CASES.values(), ids=CASES)
def test_which_proxy_is_used(server: str, environment: dict[str, str], want: str) -> None:
    assert environment_proxy(server, environment) == want


@pytest.mark.parametrize(("use_proxy", "want"), [(True, PROXY), (False, None)])
@in_loop
async def test_the_command_line_follows_the_environment_and_the_operator_does_not(
    tmp_path: Path, use_proxy: bool, want: str | None
) -> None:
    file = tmp_path / "config"
    document = {
        "clusters": [{"name": "x", "cluster": {"server": "https://api.example"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(document))
    login = log_in(file, environment={"HTTPS_PROXY": PROXY}, use_proxy=use_proxy)
    assert (await login.connection()).configuration.proxy == want
