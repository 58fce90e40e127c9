#!/bin/sh
# Stands in for `docker` and `kind` (by the name it is called by): keeps what it is asked in $FAKE/calls and behaves as
# the files in $FAKE say.
me=$(basename "$0")
{ printf '%s' "$me"; for argument; do printf ' %s' "$argument"; done; echo; } >> "$FAKE/calls"
if grep -qsx "$me $1" "$FAKE/fails"; then
  printf 'ERROR: %s\nStack Trace:\ngo.runtime\n' "$me $1 failed, by order" >&2
  exit 1
fi
case "$me $1" in
  "docker ps") cat "$FAKE/containers" 2>/dev/null || true ;;
  "docker image") [ -e "$FAKE/image" ] ;;
  "docker pull") echo "pull: progress"; [ -e "$FAKE/pulled" ] ;;
  "kind version") echo "kind v$(cat "$FAKE/kind-version") go1.26.6 linux/amd64" ;;
  "docker start") sed -i s/exited/running/ "$FAKE/containers" ;;
  "kind create")
    printf 'Creating cluster "%s" ...\n \342\200\242 Preparing nodes \360\237\223\246  ...\n \342\234\223 Preparing nodes\n' "$CLUSTER" >&2
    printf '%s-control-plane\trunning\tkindest/node:v1.36.3\n' "$CLUSTER" > "$FAKE/containers" ;;
  "kind delete") rm -f "$FAKE/containers" ;;
  "kind get") cat "$FAKE/kubeconfig" ;;
  "kind export")
    mkdir -p "$3/node/containers" "$3/node/pods/a"
    echo up > "$3/node/kubelet.log"
    echo hello > "$3/node/containers/etcd.log"
    echo hello > "$3/node/pods/a/0.log"
    printf '\000\377' > "$3/node/system.journal" ;;
esac
