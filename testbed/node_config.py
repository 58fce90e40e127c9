"""The real node's configuration: what containerd, CNI, the kubelet and kube-proxy are told. Pure."""

import json
from pathlib import Path

import yaml

from testbed.certs import Pair
from testbed.control_plane import DNS, PODS

NODE = "real-node"
PAUSE_IMAGE, POD_IMAGE, DNS_IMAGE = (
    "registry.k8s.io/pause:testbed",
    "fairlead.dev/testbed/pod:1",
    "registry.k8s.io/coredns/coredns:testbed",
)
# Debian and Fedora keep the plugins of their packages at different places
PLUGIN_FOLDERS = ("/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin")
SOCKET = "/run/containerd/containerd.sock"


def containerd(folder: Path, plugins: str, snapshotter: str) -> str:
    """Containerd's own file. Its state lies on /run and its images in /var/lib, both of which are the sandbox's own."""
    return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # without CAP_SYS_RESOURCE nothing may be made less likely to be killed than we are
  restrict_oom_score_adj = true
  enable_selinux = false
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


def network() -> str:
    """The pods' network: a bridge, addresses remembered on /run so that they end with the node, host ports."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni",
            "ranges": [[{"subnet": PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "testbed", "plugins": [bridge, ports]}, indent=2)


def kubelet(folder: Path, authority: Path, pair: Pair, cgroup: str) -> str:
    """The kubelet's file."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pair.certificate),
            "tlsPrivateKeyFile": str(pair.key),
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "clusterDomain": "cluster.local",
            "clusterDNS": [DNS],
            "resolvConf": f"{folder}/resolv.conf",
            "makeIPTablesUtilChains": False,
            # a full disk of the machine is not the cluster's business
            "evictionHard": {
                "memory.available": "50Mi",
                "nodefs.available": "0%",
                "imagefs.available": "0%",
                "nodefs.inodesFree": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        },
        sort_keys=False,
    )


def proxy(kubeconfig: Path) -> str:
    """kube-proxy's file. The machine's connection tracking is not touched."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "hostnameOverride": NODE,
            # a Service answers a moment after its pods are ready, not up to a second later
            "mode": "nftables",
            "nftables": {"minSyncPeriod": "100ms"},
            "clusterCIDR": PODS,
            "oomScoreAdj": 0,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        },
        sort_keys=False,
    )
