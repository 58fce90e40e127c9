"""`fairlead operate`: the operator; what the chart runs, in every replica the same."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.pki.identities import REPLICAS

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.process.settings import OperateSettings


def add_to(commands: "Commands") -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "operate",
        help="run the operator",
        description="Answers the schedulers by the policies of the cluster, and, where it leads, makes schedulers that "
        "ask it. LOG_LEVEL is TRACE, DEBUG, INFO (the default), WARNING or ERROR; POD_NAME, POD_UID, POD_NAMESPACE and "
        "POD_IP "
        "say which pod this is.",
    )
    parser.add_argument("--settings", metavar="FILE", type=Path, help="the operator's settings (all defaults)")
    parser.add_argument("--namespace", metavar="NAME", help="of the operator (POD_NAMESPACE, or fairlead-system)")
    parser.add_argument("--service", metavar="NAME", default="fairlead", help="that schedulers call (%(default)s)")
    parser.add_argument(
        "--selector",
        metavar="LABELS",
        default=REPLICAS,
        help="of the pods of all replicas (%(default)s)",
    )
    parser.add_argument("--listen", metavar="HOST:PORT", default=":8443", help="for schedulers (%(default)s)")
    parser.add_argument(
        "--probes", metavar="HOST:PORT", default=":8080", help="for /readyz, /livez and /metrics (%(default)s)"
    )
    parser.add_argument(
        "--admission",
        metavar="HOST:PORT",
        default=":9443",
        help="for the API server's check of policies; empty: not at all (%(default)s)",
    )
    parser.add_argument("--tls-cert", metavar="FILE", type=Path, help="the server's certificate (one of our own)")
    parser.add_argument("--tls-key", metavar="FILE", type=Path, help="its key")
    parser.add_argument("--client-ca", metavar="FILE", type=Path, help="the authority of the callers")
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="(KUBECONFIG, or the cluster that this runs in, or ~/.kube/config)",
    )
    parser.add_argument("--context", metavar="NAME", default="", help="of the kubeconfig (its current one)")
    parser.add_argument("--drain", metavar="TIME", default="5s", help="how long to go on after SIGTERM (%(default)s)")
    parser.add_argument("--log-format", choices=["console", "json"], default="json", help="(%(default)s)")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Operate until told to stop."""
    from fairlead.cli.console.exits import run_until_stopped
    from fairlead.process.leadership import Leadership
    from fairlead.process.operator import operate

    return run_until_stopped(
        "operate", given.log_format, lambda: _settings(given), lambda read: operate(read, Leadership)
    )


def _settings(given: argparse.Namespace) -> "OperateSettings":
    from fairlead.cli.console.options import seconds
    from fairlead.process.settings import NAMESPACE, Address, OperateSettings
    from fairlead.webhook.https.tls import Files

    files = [given.tls_cert, given.tls_key, given.client_ca]
    if any(files) and not all(files):
        raise ValueError("--tls-cert, --tls-key and --client-ca go together: give all of them or none")
    return OperateSettings(
        settings=given.settings,
        namespace=given.namespace or os.environ.get("POD_NAMESPACE") or NAMESPACE,
        service=given.service,
        listen=Address.read(given.listen),
        probes=Address.read(given.probes),
        admission=Address.read(given.admission) if given.admission else None,
        pod=os.environ.get("POD_NAME", ""),
        pod_uid=os.environ.get("POD_UID", ""),
        address=os.environ.get("POD_IP", ""),
        selector=given.selector,
        tls=Files(*files) if all(files) else None,
        kubeconfig=given.kubeconfig,
        context=given.context,
        drain_s=seconds("--drain", given.drain),
    )
