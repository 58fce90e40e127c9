from pathlib import Path
from types import MappingProxyType

from testbed import metrics_server
from testbed.layout import Layout

_LAYOUT = Layout("spec", "1.37.1", network="10.89.3.0/24")
_FLAGS = MappingProxyType(
    dict(
        part.partition("=")[::2]
        for part in metrics_server.component(Path("/bin/metrics-server"), _LAYOUT, "10.89.3.1", 21005).command[1:]
    )
)


def test_it_listens_where_the_api_server_is_told() -> None:
    service, slices, registration = metrics_server.objects("10.89.3.1", 21005).values()
    assert (_FLAGS["--bind-address"], _FLAGS["--secure-port"]) == ("10.89.3.1", "21005")
    assert [one["addresses"] for one in slices["endpoints"]] == [["10.89.3.1"]]
    assert [one["port"] for one in slices["ports"]] == [21005]
    assert "selector" not in service["spec"]  # else the controllers would make a slice of their own
    assert slices["metadata"]["labels"] == {"kubernetes.io/service-name": service["metadata"]["name"]}
    assert [one["name"] for one in service["spec"]["ports"]] == [one["name"] for one in slices["ports"]]
    assert registration["spec"]["service"] == {"name": service["metadata"]["name"], "namespace": "kube-system"}
    assert registration["metadata"]["name"] == metrics_server.API_SERVICE


def test_its_path_is_that_of_the_registered_version() -> None:
    registration = metrics_server.objects("10.89.3.1", 21005).popitem()[1]["spec"]
    assert f"/apis/{registration['group']}/{registration['version']}/nodes" == metrics_server.NODES


def test_objects_are_valid_paths_of_themselves() -> None:
    for path, body in metrics_server.objects("10.89.3.1", 21005).items():
        group, _, name = path.rpartition("/")
        assert body["metadata"]["name"] == name
        prefix = "/api/v1" if body["apiVersion"] == "v1" else f"/apis/{body['apiVersion']}"
        namespace = body["metadata"].get("namespace")
        where = f"/namespaces/{namespace}" if namespace else ""
        assert group == f"{prefix}{where}/{body['kind'].lower()}s"
