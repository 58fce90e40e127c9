#!/usr/bin/env bash
# Writes the Go modules that the testbed builds from: one folder for each Kubernetes version, one for the tools of a
# cluster, one for those of a release, one each for Helm 3, CoreDNS, cosign, krew, metrics-server, Karpenter, Prometheus,
# kubeadm and a node of kind, apart because their versions of shared modules differ, and one for the test data of CEL's
# specification, of which nothing is built. Run it to add or raise a version, then list the version in ../versions.py and
# commit what changed.
set -euo pipefail
cd "$(dirname "$0")"
export GOFLAGS=-mod=mod GOWORK=off

module() { # FOLDER REQUIREMENT... -- COMMAND...
  local folder=$1; shift
  rm -rf "$folder" && mkdir -p "$folder"
  (
    cd "$folder"
    go mod init "fairlead.dev/testbed/${folder//\//-}" 2>/dev/null
    go mod edit -go 1.26.0  # not that of the machine this runs on; tidy raises it where a dependency asks for more
    while [ "$1" != -- ]; do go mod edit -require "$1"; shift; done
    shift
    for command in "$@"; do go mod edit -tool "$command"; done
    if [ -n "${STAGING_OF:-}" ]; then
      # k8s.io/kubernetes replaces its staging modules by folders of its own tree; as a dependency they are named
      go mod download "k8s.io/kubernetes@v$STAGING_OF"
      local mod; mod=$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/v$STAGING_OF.mod
      sed -n 's|^\t*\(k8s.io/[a-z-]*\) => ./staging/.*|\1|p' "$mod" | while read -r staged; do
        go mod edit -replace "$staged=$staged@v0.${STAGING_OF#1.}"
      done
    fi
    go mod tidy
  )
}

kubernetes() {
  STAGING_OF=$1 module "kubernetes/$1" "k8s.io/kubernetes@v$1" -- \
    k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubectl,kubelet,kube-proxy}
}

kubernetes 1.37.1
kubernetes 1.36.3
kubernetes 1.35.4
kubernetes 1.34.11
kubernetes 1.33.13
module tools go.etcd.io/etcd/server/v3@v3.7.3 sigs.k8s.io/kwok@v0.8.0 helm.sh/helm/v4@v4.3.1 sigs.k8s.io/kind@v0.33.0 -- \
  go.etcd.io/etcd/server/v3 sigs.k8s.io/kwok/cmd/kwok helm.sh/helm/v4/cmd/helm sigs.k8s.io/kind
module helm-3 helm.sh/helm/v3@v3.22.0 -- helm.sh/helm/v3/cmd/helm  # beside Helm 4: both render the chart
module coredns github.com/coredns/coredns@v1.15.0 -- github.com/coredns/coredns
module metrics-server sigs.k8s.io/metrics-server@v0.9.0 -- sigs.k8s.io/metrics-server/cmd/metrics-server
module karpenter sigs.k8s.io/karpenter@v1.14.1 -- sigs.k8s.io/karpenter/kwok
module prometheus github.com/prometheus/prometheus@v0.305.1 -- github.com/prometheus/prometheus/cmd/prometheus
module release github.com/google/go-containerregistry@v0.22.1 github.com/rhysd/actionlint@v1.7.12 -- \
  github.com/google/go-containerregistry/cmd/crane github.com/rhysd/actionlint/cmd/actionlint
module cosign github.com/sigstore/cosign/v3@v3.1.3 -- github.com/sigstore/cosign/v3/cmd/cosign
module krew sigs.k8s.io/krew@v0.4.3 -- sigs.k8s.io/krew/cmd/krew
STAGING_OF=1.37.1 module kubeadm k8s.io/kubernetes@v1.37.1 -- k8s.io/kubernetes/cmd/kubeadm
# what the Dockerfile of kind's base image has beside Kubernetes
module kind-node github.com/containerd/containerd/v2@v2.3.4 github.com/containernetworking/plugins@v1.9.1 \
  sigs.k8s.io/cri-tools@v1.36.0 -- \
  github.com/containerd/containerd/v2/cmd/{containerd,ctr,containerd-shim-runc-v2} \
  github.com/containernetworking/plugins/plugins/{main/ptp,main/loopback,ipam/host-local,meta/portmap} \
  sigs.k8s.io/cri-tools/cmd/crictl
spec=cel.dev/expr@v0.26.0
rm -rf cel-spec && mkdir cel-spec
(cd cel-spec && go mod init fairlead.dev/testbed/cel-spec 2>/dev/null && go mod edit -go 1.26.0 -require $spec && go mod download $spec)
