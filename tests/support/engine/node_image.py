"""The node image of kind's newest Kubernetes, built by kind itself on its own base, and named as the published one.

Its base is what the first stage of kind's own Dockerfile makes of its files and packages. Its programs and images are
those of the testbed. What has no Go module there, or asks for more than a container of a test may have, is a stand-in:
the network's and the storage's daemon wait, and the node's network is written down beforehand.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.engine import image_archive
from support.engine.docker_engine import DockerEngine
from support.engine.image_archive import Image
from testbed import build, cache, go_modules, prometheus, rootfs
from testbed.providers.kind_nodes import SHARE
from testbed.versions import KIND, KUBERNETES, MODULES, PROMETHEUS, program

NAME = "fairlead.dev/testbed/kind-node"
_VERSION = KUBERNETES[0]
_COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")
_RUNTIME = ("containerd", "ctr", "containerd-shim-runc-v2", "crictl")
_PLUGINS = ("host-local", "loopback", "portmap", "ptp")
_BINARIES = ("kubeadm", "kubelet", "kubectl")
_BESIDE = ("coreutils", "dash", "iptables", "nftables")
_TABLES = ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore")
_WAITS = "#!/bin/dash\nexec sleep infinity\n"
_NETWORK = {
    "cniVersion": "0.3.1",
    "name": "kindnet",
    "plugins": [
        {
            "type": "ptp",
            "ipMasq": False,
            "ipam": {
                "type": "host-local",
                "dataDir": "/run/cni-ipam-state",
                "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": SHARE}]],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}
# In a container of a machine without CAP_SYS_RESOURCE nothing may be made less likely to be killed than we are; and
# where the machine has version 1 of control groups, the kubelet would refuse it.
_CHANGES = {
    "etc/systemd/system/containerd.service": (r"OOMScoreAdjust=.*\n", ""),
    "etc/containerd/config.toml": ("restrict_oom_score_adj = false", "restrict_oom_score_adj = true"),
    "etc/default/kubelet": (r"(KUBELET_EXTRA_ARGS=.*)", r"\1 --fail-cgroupv1=false"),
}
_LAST = """
COPY programs/ /usr/local/bin/
COPY plugins/ /opt/cni/bin/
COPY network/ /etc/cni/net.d/
{specification}
ENV container=docker
STOPSIGNAL SIGRTMIN+3
ENTRYPOINT [ "/usr/local/bin/entrypoint", "/sbin/init" ]
"""


def ensure(engine: DockerEngine) -> str:
    """Have it in the engine, built unless it is there; its tag."""
    kind = go_modules.download("sigs.k8s.io/kind", of=MODULES / "tools")
    log = engine.folder / "logs" / "node-image.log"
    folder = engine.folder / "packages"
    for each in (folder, log.parent):
        each.mkdir(parents=True, exist_ok=True)
    base = kind / "images" / "base"
    node = rootfs.pack(folder, log, "kind-node", [*packages_of((base / "Dockerfile").read_text()), "runc"])
    beside = rootfs.pack(folder, log, "kind-beside", _BESIDE, variant="extract")
    programs = build.build(
        map(program, (*_COMPONENTS, *_RUNTIME, *_PLUGINS, *_BINARIES, "kind", "etcd", "coredns", "pod"))
    )
    programs["prometheus"] = prometheus.program()
    sources = [KIND, node.name, beside.name, *map(str, programs.values()), Path(__file__).read_text()]
    tag = f"{NAME}:{hashlib.sha256(''.join(sources).encode()).hexdigest()[:12]}"
    if engine.id_of(tag):
        return tag
    with tempfile.TemporaryDirectory(dir=engine.folder) as made:
        context, server = Path(made, "base"), Path(made, "server.tar.gz")
        write_base(base, context, programs)
        engine.must("docker", "import", str(node), f"{NAME}-system")
        engine.must("docker", "build", f"--build-arg=BASE_IMAGE={NAME}-system", f"--tag={NAME}-base", str(context))
        write_server(server, programs, images(kind, programs, beside))
        shutil.rmtree(context)
        command = [str(programs["kind"]), "build", "node-image", "--type=file", f"--base-image={NAME}-base"]
        engine.must(*command, f"--image={tag}", str(server))
    return tag


def packages_of(dockerfile: str) -> list[str]:
    """The packages that kind's Dockerfile installs in its first stage."""
    found = re.search(r"clean-install \\\n(.*?)&&", dockerfile, re.DOTALL)
    assert found
    return [word for word in found[1].split() if word != "\\"]


def dockerfile_of(dockerfile: str) -> str:
    """The first stage of kind's Dockerfile, and what its last one adds."""
    first = "\nFROM ".join(dockerfile.split("\nFROM ")[:2])
    found = re.search(r"^RUN ctr oci spec.*?[^\\]\n", dockerfile, re.DOTALL | re.MULTILINE)
    assert found
    return re.sub(r"--chmod=\d+ ", "", first) + _LAST.format(specification=found[0])


def write_base(base: Path, context: Path, programs: dict[str, Path]) -> None:
    """Write what the base is built from, as kind's Dockerfile wants it; its packages are there already."""
    shutil.copytree(base / "files", context / "files", copy_function=shutil.copyfile)
    for path in [context / "files", *(context / "files").rglob("*")]:
        runs = path.is_dir() or path.parent.name == "bin"
        path.chmod(0o755 if runs else 0o644)
    for name, (old, new) in _CHANGES.items():
        file = context / "files" / name
        file.write_text(re.sub(old, new, file.read_text()))
    (context / "files" / "usr" / "local" / "bin" / "clean-install").write_text("#!/bin/sh\n")
    for folder, names in (("programs", _RUNTIME), ("plugins", _PLUGINS)):
        (context / folder).mkdir()
        for name in names:
            shutil.copy(programs[name], context / folder / name)
    cache.write(context / "network" / "10-kindnet.conflist", json.dumps(_NETWORK))
    (context / "Dockerfile").write_text(dockerfile_of((base / "Dockerfile").read_text()))


def images(kind: Path, programs: dict[str, Path], beside: Path) -> list[Image]:
    """The images that the node needs: those of Kubernetes, and stand-ins for what kind would pull."""
    command = [str(programs["kubeadm"]), "config", "images", "list", f"--kubernetes-version=v{_VERSION}"]
    wanted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    made = [
        Image(_one(wanted, f"/{name}:"), programs[name], f"usr/local/bin/{name}", entrypoint=["/go-runner"])
        for name in (*_COMPONENTS[:3], "etcd")
    ]
    links = {f"usr/sbin/{name}": "xtables-nft-multi" for name in _TABLES}
    proxy = programs["kube-proxy"]
    made += [
        Image(_one(wanted, "/kube-proxy:"), proxy, "usr/local/bin/kube-proxy", below=beside, links=links),
        Image(_one(wanted, "/coredns:"), programs["coredns"], "coredns"),
        Image(f"quay.io/prometheus/prometheus:v{PROMETHEUS}", programs["prometheus"], "bin/prometheus", below=beside),
    ]
    pod, waits = programs["pod"], ["/pod", "pause"]
    daemons = {"usr/local/bin/local-path-provisioner": _WAITS}
    return [*made, *(Image(tag, pod, "pod", waits, below=beside, scripts=daemons) for tag in pulled(kind))]


def pulled(kind: Path) -> list[str]:
    """The images that kind would pull for its network, its storage and its sandboxes, by the names it has for them."""
    folder = kind / "pkg" / "build" / "nodeimage"
    texts = [(folder / name).read_text() for name in ("const_cni.go", "const_storage.go")]
    daemons = re.findall(r'Image = "(docker\.io/kindest/[^"]+)"', "".join(texts))
    config = (kind / "images" / "base" / "files" / "etc" / "containerd" / "config.toml").read_text()
    return [*daemons, *re.findall(r'sandbox_image = "([^"]+)"', config)]


def write_server(target: Path, programs: dict[str, Path], made: Sequence[Image]) -> None:
    """Write what Kubernetes publishes as its server: programs, and an archive of images for each component."""
    folder = target.parent
    own = {name: [image for image in made if f"/{name}:" in image.tag] for name in _COMPONENTS}
    own[_COMPONENTS[0]] += [image for image in made if not any(image in known for known in own.values())]
    with tarfile.open(target, "w:gz", compresslevel=0) as tar:
        version = folder / "version"
        version.write_text(f"v{_VERSION}")
        tar.add(version, "kubernetes/version")
        for name in _BINARIES:
            tar.add(programs[name], f"kubernetes/server/bin/{name}")
        for name, its in own.items():
            archive = folder / f"{name}.tar"
            image_archive.write(archive, its)
            tar.add(archive, f"kubernetes/server/bin/{archive.name}")
            archive.unlink()


def _one(tags: Sequence[str], part: str) -> str:
    (found,) = (tag for tag in tags if part in tag)
    return found
