"""The command `python -m testbed`."""

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from testbed import (
    build,
    cache,
    cel_spec,
    control_plane,
    device_plugin,
    images,
    metrics_server,
    node_template,
    node_template_file,
    nodes,
    operator_image,
    packages,
    providers,
    sandbox,
    versions,
)
from testbed import layout as layouts
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.phases import say
from testbed.real_node import RealNode

DEFAULT_NAME = "fairlead"
_MOST_NODES = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 when it failed, with what to do next on standard error."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except ClusterError as error:
        say(f"error: {error}")
        for note in getattr(error, "__notes__", []):
            say(note)
        return 1
    except BrokenPipeError:  # of `logs | head`, whose reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        say("interrupted; `up` goes on from here, `down` removes what there is")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m testbed", description="Start, use and delete a real Kubernetes cluster on this machine."
    )
    parser.add_argument(
        "--name",
        default=os.environ.get("FAIRLEAD_CLUSTER") or DEFAULT_NAME,
        help="of the cluster (default: %(default)s)",
    )
    parser.add_argument(
        "--provider",
        choices=providers.NAMES,
        default=os.environ.get("FAIRLEAD_PROVIDER") or None,
        help="how to have a cluster (default: what is up; else kind where Docker can run it, local where it cannot)",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start the cluster, or repair what is broken in it")
    up.add_argument(
        "--kubernetes",
        choices=versions.KUBERNETES,
        help=f"version (default: what is up, else {versions.KUBERNETES[0]})",
    )
    up.add_argument(
        "--node", action=argparse.BooleanOptionalAction, help="with a real node (default: where there can be one)"
    )
    up.add_argument("--gates", action="store_true", help="with Kubernetes' own groups of pods (PodGroup): 1.37, local")
    up.set_defaults(run=_up)

    commands.add_parser("down", help="delete the cluster and everything that belongs to it").set_defaults(run=_down)
    commands.add_parser("status", help="print the state of each part; exit 1 if one is not well").set_defaults(
        run=_status
    )
    commands.add_parser("env", help='print what a shell needs to use it: eval "$(python -m testbed env)"').set_defaults(
        run=_env
    )

    many = commands.add_parser("nodes", help="have exactly N kwok nodes: add or remove as many as needed")
    many.add_argument("count", type=_count, metavar="N")
    many.add_argument("--template", type=Path, metavar="FILE", help="of the nodes (default: the testbed's own)")
    many.add_argument("--seed", type=int, default=0, help="the same seed gives the same nodes (default: %(default)s)")
    many.set_defaults(run=_nodes)

    load = commands.add_parser("load", help="bring images to the real node")
    load.add_argument("archive", type=Path, metavar="IMAGE-ARCHIVE", help="what `docker save` writes")
    load.set_defaults(run=_load)

    image = commands.add_parser("image", help="build the operator's image; prints the archive to load")
    image.add_argument(
        "--scheduler",
        action="store_true",
        help="kube-scheduler's, which the real node cannot pull",
    )
    image.set_defaults(run=_image)

    logs = commands.add_parser("logs", help="print the log of a component, or of all")
    logs.add_argument("component", nargs="?")
    logs.set_defaults(run=_logs)

    builds = commands.add_parser("build", help="download and build the programs that a cluster needs")
    builds.add_argument("--kubernetes", choices=versions.KUBERNETES, default=versions.KUBERNETES[0])
    builds.set_defaults(run=_build)
    return parser


def _provider(options: argparse.Namespace) -> providers.Provider:
    return providers.choose(options.name, options.provider)


def _up(options: argparse.Namespace) -> None:
    providers.choose(
        options.name, options.provider, kubernetes=options.kubernetes, node=options.node, gates=options.gates
    ).up()
    say(f'ready; to use it: eval "$({_this_command(options)} env)"')


def _down(options: argparse.Namespace) -> None:
    _provider(options).down()
    say(f"the cluster {options.name} is gone")


def _status(options: argparse.Namespace) -> int:
    provider = _provider(options)
    parts = provider.status()
    if not parts:
        print(f"the cluster {options.name} is down")
        return 1
    width = max(len(part.name) for part in parts)
    for part in parts:
        print(f"{part.name:{width}}  {part.state:8}  {part.detail}".rstrip())
    return int(not all(part.is_well for part in parts))


def _env(options: argparse.Namespace) -> None:
    provider = _provider(options)
    # with the checkout's own: a kubectl that finds its plugin, and `fairlead` as the guide types it
    folders = ":".join(map(str, [*provider.programs(), Path(sys.executable).parent]))
    print(f"export KUBECONFIG={shlex.quote(str(provider.kubeconfig()))}")
    if isinstance(provider, providers.Local) and any(name.lower() == "https_proxy" for name in os.environ):
        host = urlsplit(provider.server()).hostname  # which no proxy reaches
        print(f'export NO_PROXY="${{NO_PROXY:-$no_proxy}},{host}"')
    print(f'export PATH={shlex.quote(folders)}:"$PATH"')


def _nodes(options: argparse.Namespace) -> None:
    provider = _provider(options)
    template = (
        node_template_file.read_template(options.template)
        if options.template
        else node_template_file.default_template()
    )
    made = node_template.make(options.count, template, seed=options.seed)
    nodes.ensure(folder_of(provider.cluster), provider.kubeconfig(), made)
    say(f"the cluster {options.name} has {options.count} kwok nodes, all of them Ready")


def _load(options: argparse.Namespace) -> None:
    if not options.archive.is_file():
        raise ClusterError(f"{options.archive} is no file", cure="name what `docker save` wrote")
    megabytes, began = options.archive.stat().st_size / 1e6, time.monotonic()
    say(f"loading {options.archive} ({megabytes:,.0f} MB) into the cluster {options.name}")
    _provider(options).load(options.archive)
    say(f"loaded in {time.monotonic() - began:.0f} s")


def _logs(options: argparse.Namespace) -> None:
    logs = _provider(options).logs()
    if options.component and options.component not in logs:
        raise ClusterError(
            f"there is no log of {options.component}",
            cure=f"name one of: {', '.join(logs) or 'none, as nothing ran yet'}",
        )
    for name, text in logs.items():
        if options.component in (None, name):
            print(text if options.component else "\n".join(f"{name} | {line}" for line in text.splitlines()))


def _build(options: argparse.Namespace) -> None:
    names = [*control_plane.PROGRAMS, "kubectl", "kwok", "helm", "pod"]
    if sandbox.is_possible():
        packages.ensure(packages.NODE)
        names += [*RealNode.PROGRAMS, metrics_server.NAME, device_plugin.NAME]
    paths = build.build(versions.program(name, options.kubernetes) for name in names)
    for path in (*paths.values(), cel_spec.folder()):
        print(path)
    if sandbox.is_possible():
        print(operator_image.build().archive)


def _image(options: argparse.Namespace) -> None:
    if options.scheduler:
        layout = layouts.load(options.name)
        version = layout.kubernetes if layout else versions.KUBERNETES[0]
        tag = f"registry.k8s.io/kube-scheduler:v{version}"
        made = build.build([versions.program("kube-scheduler", version)])["kube-scheduler"]
        archive = cache.root() / "images" / f"kube-scheduler-{version}.tar"
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(images.of_kubernetes(tag, made))
        say(f"its tag is {tag}")
        print(archive)
        return
    image = operator_image.build()
    say(f"its tag is {image.tag}")
    print(image.archive)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > _MOST_NODES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and {_MOST_NODES}")
    return int(text)


def _this_command(options: argparse.Namespace) -> str:
    """Command line of this program: what is printed must work when it is pasted."""
    python = Path(sys.executable)
    near = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    return f"{near} -m testbed{'' if options.name == DEFAULT_NAME else f' --name {shlex.quote(options.name)}'}"
