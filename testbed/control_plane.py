"""The control plane of a local cluster as commands: a function of its layout, its programs and its keys."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testbed import certs, kubeconfig
from testbed.layout import Layout
from testbed.process import Component

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SERVICES, PODS, DNS = "10.96.0.0/16", "10.244.0.0/16", "10.96.0.10"
_FIRST_SERVICE = "10.96.0.1"
_PROXY = "front-proxy-client"
_AUDIT_POLICY = Path(__file__).parent / "manifests" / "audit.yaml"
_LIMIT_BYTES = max(2 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)
_COLLECTS_LESS = MappingProxyType({"GOGC": "400", "GOMEMLIMIT": str(_LIMIT_BYTES)})
"""For what is busy all the time: by default, the collector takes a tenth of its processor to keep it small.

An API server whose 150,000 pods alone take more than its limit collects all the time, with all processors.
"""
GATES = ("--feature-gates=GenericWorkload=true",)
_GATED_API = "--runtime-config=scheduling.k8s.io/v1beta1=true"
# Thousands of nodes appear at once here; with the ordinary limits their taints would be lifted 20 a second.
_FAST = ("--kube-api-qps=2000", "--kube-api-burst=4000")


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys and certificates of the control plane's parts."""

    authority: certs.Authority
    server: certs.Pair
    service_accounts: certs.Pair
    kubelet_client: certs.Pair
    proxies: certs.Authority
    """Of what asks in others' names. Without one, programs that let the API server judge their callers complain."""
    proxy: certs.Pair


def make_keys(layout: Layout) -> Keys:
    """Issue what is missing, and write the kubeconfigs of the parts that call the API server."""
    folder = layout.folder / "pki"
    authority = certs.Authority(folder)
    hosts = [
        "localhost",
        "127.0.0.1",
        layout.host,
        _FIRST_SERVICE,
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    users = {
        "admin": ("fairlead-testbed", "system:masters"),
        "kube-controller-manager": ("system:kube-controller-manager", ""),
        "kube-scheduler": ("system:kube-scheduler", ""),
    }
    for user, (common_name, group) in users.items():
        pair = authority.issue(user, common_name, organizations=[group] if group else [])
        path = layout.kubeconfig if user == "admin" else folder / f"{user}.kubeconfig"
        kubeconfig.write(path, server=layout.server, authority=authority, user=user, pair=pair)
    proxies = certs.Authority(folder / "front-proxy")
    return Keys(
        authority=authority,
        server=authority.issue("kube-apiserver", "kube-apiserver", hosts=hosts),
        service_accounts=certs.signing_key(folder),
        kubelet_client=authority.issue(
            "kubelet-client", "kube-apiserver-kubelet-client", organizations=["system:masters"]
        ),
        proxies=proxies,
        proxy=proxies.issue("client", _PROXY),
    )


def has_authority(layout: Layout) -> bool:
    """Tell whether there is what its keys are issued by."""
    return certs.Authority.is_in(layout.folder / "pki")


def etcd(layout: Layout, programs: Mapping[str, Path]) -> Component:
    """The store. It need not survive the machine, so it does not wait for the disk."""
    client, peer = f"http://127.0.0.1:{layout.etcd_port}", f"http://127.0.0.1:{layout.etcd_peer_port}"
    return Component(
        "etcd",
        [
            str(programs["etcd"]),
            f"--data-dir={layout.folder}/etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--quota-backend-bytes=8589934592",
            "--log-level=warn",
        ],
        _COLLECTS_LESS,
    )


def apiserver(layout: Layout, programs: Mapping[str, Path], keys: Keys) -> Component:
    """The API server, with the authorization and the admission that a cluster has by default."""
    return Component(
        "kube-apiserver",
        [
            str(programs["kube-apiserver"]),
            f"--etcd-servers=http://127.0.0.1:{layout.etcd_port}",
            f"--bind-address={'0.0.0.0' if layout.has_node else '127.0.0.1'}",  # noqa: S104  in a namespace of its own
            f"--secure-port={layout.api_port}",
            f"--advertise-address={layout.host}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--tls-cert-file={keys.server.certificate}",
            f"--tls-private-key-file={keys.server.key}",
            f"--client-ca-file={keys.authority.certificate}",
            f"--kubelet-client-certificate={keys.kubelet_client.certificate}",
            f"--kubelet-client-key={keys.kubelet_client.key}",
            f"--kubelet-certificate-authority={keys.authority.certificate}",
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={keys.service_accounts.certificate}",
            f"--service-account-signing-key-file={keys.service_accounts.key}",
            f"--requestheader-client-ca-file={keys.proxies.certificate}",
            f"--requestheader-allowed-names={_PROXY}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={keys.proxy.certificate}",
            f"--proxy-client-key-file={keys.proxy.key}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            # the API server refuses to be an endpoint on loopback, which without a real node it is
            *([] if layout.has_node else ["--endpoint-reconciler-type=none"]),
            # one client asks for thousands of things at once here
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
            f"--audit-policy-file={_AUDIT_POLICY}",
            f"--audit-log-path={layout.audit_log}",
            # megabytes; a request takes less than one kilobyte
            "--audit-log-maxsize=100",
            "--audit-log-maxbackup=3",
            "--profiling=false",
            *((*GATES, _GATED_API) if layout.gates else ()),
        ],
        _COLLECTS_LESS,
    )


def controller_manager(layout: Layout, programs: Mapping[str, Path], keys: Keys) -> Component:
    """The controllers: Deployments, Jobs, endpoints, the node lifecycle, garbage collection."""
    own = f"{layout.folder}/pki/kube-controller-manager.kubeconfig"
    return Component(
        "kube-controller-manager",
        [
            str(programs["kube-controller-manager"]),
            f"--kubeconfig={own}",
            f"--authentication-kubeconfig={own}",
            f"--authorization-kubeconfig={own}",
            f"--bind-address={layout.host}",
            f"--secure-port={layout.manager_port}",
            f"--cert-dir={layout.folder}/pki/kube-controller-manager",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={keys.service_accounts.key}",
            f"--root-ca-file={keys.authority.certificate}",
            f"--cluster-signing-cert-file={keys.authority.certificate}",
            f"--cluster-signing-key-file={keys.authority.pair.key}",
            # the one left out annotates every node, again and again while their number grows, for kubelets of old
            "--controllers=*,-ttl-controller",
            "--profiling=false",
            *(GATES if layout.gates else ()),
            *_FAST,
        ],
        _COLLECTS_LESS,
    )


def scheduler(layout: Layout, programs: Mapping[str, Path]) -> Component:
    """The default scheduler, which those see to that name no other."""
    return Component(
        "kube-scheduler",
        [
            str(programs["kube-scheduler"]),
            f"--kubeconfig={layout.folder}/pki/kube-scheduler.kubeconfig",
            "--secure-port=0",
            "--leader-elect=false",
            "--profiling=false",
            *(GATES if layout.gates else ()),
            *_FAST,
        ],
    )
