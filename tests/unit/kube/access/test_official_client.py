"""The official client, entered without what it loads besides: in processes of their own, because pytest loads much."""

import subprocess
import sys

import pytest

_ENTERED = "import sys; import fairlead.kube.access.official_client as entered; "
_USES = {
    "a part of a package": "import kubernetes; assert kubernetes.watch.Watch and kubernetes.__version__",
    "a part by its name": "from kubernetes import dynamic; assert dynamic.DynamicClient",
    "a part that is imported": "import kubernetes.aio.leaderelection as made; assert made.__file__",
    "a part of the asynchronous one": "import kubernetes.aio as aio; assert aio.watch.Watch and aio.client.ApiClient",
    "what a package exports": "from kubernetes.config import load_kube_config as made; assert made",
    "the client that blocks": "import kubernetes.client as made; assert made.CoreV1Api(made.ApiClient())",
    "helpers": "from kubernetes.aio.utils import create_from_yaml, DEFAULT_RETRY; assert DEFAULT_RETRY",
    "libraries of its own": (
        "from kubernetes.config import kube_config; import requests_oauthlib, oauthlib.oauth2, urllib3; "
        "made = kube_config.OAuth2Session(client_id='x'); assert isinstance(made, requests_oauthlib.OAuth2Session); "
        "assert kube_config.urllib3.PoolManager is urllib3.PoolManager; "
        "assert isinstance(kube_config.Configuration(), __import__('kubernetes').client.Configuration)"
    ),
    "a name and a password": (
        "c = entered.Configuration(); u = {'username': 'a', 'password': 'b'}; "
        "d = {'current-context': 'x', 'contexts': [{'name': 'x', 'context': {'cluster': 'x', 'user': 'x'}}], "
        "'clusters': [{'name': 'x', 'cluster': {'server': 'http://x'}}], 'users': [{'name': 'x', 'user': u}]}; "
        "entered.KubeConfigLoader(d).load_and_set(c); assert c.api_key['BearerToken'] == 'Basic YTpi', c.api_key"
    ),
}


def _run(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("use", _USES.values(), ids=_USES)
def test_others_see_all_of_it(use: str) -> None:
    _run(_ENTERED + use)


@pytest.mark.parametrize("name", ["kubernetes", "kubernetes.aio", "kubernetes.config", "kubernetes.aio.utils"])
def test_a_package_that_was_entered_early_has_the_same_names(name: str) -> None:
    names = f"import importlib, kubernetes.aio; made = importlib.import_module({name!r}); made.__file__; "
    names += "hasattr(made, 'no_such_name'); print(sorted(one for one in dir(made) if one[0] != '_'))"
    assert _run(_ENTERED + names) == _run(names)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    _run(_ENTERED + "import kubernetes; assert not hasattr(kubernetes, 'nothing') and not hasattr(kubernetes, 'other')")


def test_what_is_loaded_already_is_used() -> None:
    before = "import kubernetes; had = kubernetes, kubernetes.client.ApiClient; "
    _run(before + _ENTERED + "assert had == (sys.modules['kubernetes'], sys.modules['kubernetes'].client.ApiClient)")
