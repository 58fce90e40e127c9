import json
import tomllib
from pathlib import Path
from types import MappingProxyType

import pytest
import yaml

from testbed import certs, control_plane, kwok, node_config
from testbed.kwok import LABEL
from testbed.layout import Layout
from testbed.process import Component

_PROGRAMS = MappingProxyType({name: Path("/bin", name) for name in control_plane.PROGRAMS})
_BARE = Layout("spec", "1.36.3", api_port=21001, etcd_port=21002, etcd_peer_port=21003, manager_port=21004)
_NODE = Layout("spec", "1.36.3", network="10.89.3.0/24")


def _flags(component: Component) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in component.command[1:])


def _apiserver(layout: Layout) -> dict[str, str]:
    return _flags(control_plane.apiserver(layout, _PROGRAMS, control_plane.make_keys(layout)))


def test_the_store_listens_on_loopback_alone_and_does_not_wait_for_the_disk(own_cache: Path) -> None:
    flags = _flags(control_plane.etcd(_BARE, _PROGRAMS))
    assert "--unsafe-no-fsync" in flags
    assert flags["--listen-client-urls"] == "http://127.0.0.1:21002"
    assert flags["--listen-peer-urls"] == "http://127.0.0.1:21003"
    assert flags["--data-dir"] == f"{_BARE.folder}/etcd"


_SERVERS = {
    "without a node it is this machine's alone": (_BARE, "127.0.0.1", "127.0.0.1", "21001", True),
    "with a node it is where pods reach it": (_NODE, "0.0.0.0", "10.89.3.2", "6443", False),  # noqa: S104
}


@pytest.mark.parametrize(("layout", "bind", "advertise", "port", "alone"), _SERVERS.values(), ids=_SERVERS)
def test_the_api_server_is_where_it_is_needed(
    layout: Layout, bind: str, advertise: str, port: str, alone: bool, own_cache: Path
) -> None:
    flags = _apiserver(layout)
    assert (flags["--bind-address"], flags["--advertise-address"], flags["--secure-port"]) == (bind, advertise, port)
    assert ("--endpoint-reconciler-type" in flags) is alone


def test_the_api_server_authorizes_and_admits_as_a_cluster_does(own_cache: Path) -> None:
    flags = _apiserver(_BARE)
    assert flags["--authorization-mode"] == "Node,RBAC"
    assert flags["--enable-admission-plugins"] == "NodeRestriction"


def test_the_api_server_keeps_what_it_was_asked_within_bounds(own_cache: Path) -> None:
    flags = _apiserver(_BARE)
    assert flags["--audit-log-path"] == f"{_BARE.folder}/audit/audit.log"
    assert int(flags["--audit-log-maxsize"]) * (1 + int(flags["--audit-log-maxbackup"])) <= 400
    policy = yaml.safe_load(Path(flags["--audit-policy-file"]).read_text())
    assert (policy["omitStages"], policy["rules"][-1]) == (["RequestReceived"], {"level": "Metadata"})


def test_every_file_that_a_component_is_given_is_there(own_cache: Path) -> None:
    keys = control_plane.make_keys(_BARE)
    components = [
        control_plane.apiserver(_BARE, _PROGRAMS, keys),
        control_plane.controller_manager(_BARE, _PROGRAMS, keys),
        control_plane.scheduler(_BARE, _PROGRAMS),
    ]
    files = [
        Path(value)
        for component in components
        for flag, value in _flags(component).items()
        if flag.endswith(("file", "kubeconfig", "-key", "certificate", "certificate-authority"))
    ]
    assert len(files) > 10
    assert [file for file in files if not file.is_file()] == []


def test_the_keys_stay_while_the_address_does(own_cache: Path) -> None:
    before = control_plane.make_keys(_BARE).server.certificate.read_bytes()
    assert control_plane.make_keys(_BARE).server.certificate.read_bytes() == before
    assert control_plane.make_keys(_NODE).server.certificate.read_bytes() != before


def test_kwok_sees_to_no_node_but_those_that_carry_our_label() -> None:
    flags = _flags(kwok.component(Path("/bin/kwok"), Path("/config")))
    assert flags["--manage-nodes-with-label-selector"] == "=".join(LABEL)


def test_the_pods_network_is_one_the_node_remembers_only_while_it_runs() -> None:
    network = json.loads(node_config.network())
    assert [plugin["type"] for plugin in network["plugins"]] == ["bridge", "portmap"]
    address = network["plugins"][0]["ipam"]
    assert address["ranges"] == [[{"subnet": control_plane.PODS}]]
    assert Path(address["dataDir"]).is_relative_to("/run")


def test_containerd_is_told_the_plugins_the_snapshotter_and_our_pause() -> None:
    plugins = tomllib.loads(node_config.containerd(Path("/node"), "/opt/cni/bin", "native"))["plugins"]
    config = plugins["io.containerd.grpc.v1.cri"]
    assert config["cni"] == {"bin_dir": "/opt/cni/bin", "conf_dir": "/node/cni"}
    assert config["containerd"]["snapshotter"] == "native"
    assert config["sandbox_image"] == node_config.PAUSE_IMAGE
    assert config["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False}


def test_the_kubelet_lets_nobody_in_unasked_and_keeps_to_its_group() -> None:
    pair = certs.Pair(Path("/crt"), Path("/key"))
    config = yaml.safe_load(node_config.kubelet(Path("/node"), Path("/ca"), pair, "fairlead-x"))
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authentication"]["x509"] == {"clientCAFile": "/ca"}
    assert (config["tlsCertFile"], config["tlsPrivateKeyFile"]) == ("/crt", "/key")
    assert config["cgroupRoot"] == "/fairlead-x"
    assert config["clusterDNS"] == [control_plane.DNS]


def test_kube_proxy_leaves_the_machines_connection_tracking_alone() -> None:
    config = yaml.safe_load(node_config.proxy(Path("/config")))
    assert config["mode"] == "nftables"
    assert {*config["conntrack"].values()} == {0, "0s"}
    assert config["clientConnection"] == {"kubeconfig": "/config"}
