"""`fairlead operate`: the operator, as the chart runs it in every replica."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.cli.console.options import add_decisions, add_drain, add_kubeconfig, add_log_format
from fairlead.pki.identities import REPLICAS

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.process.settings import OperateSettings


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "operate",
        help="run the operator",
        description="Answer schedulers according to the policies of the cluster; the leader also manages the "
        "schedulers that the policies name. Environment: LOG_LEVEL is TRACE, DEBUG, INFO (default), WARNING or ERROR; "
        "FAIRLEAD_STRATEGIES is the directory of custom strategies (default: /opt/fairlead/strategies); POD_NAME, "
        "POD_UID, POD_NAMESPACE and POD_IP identify this pod.",
    )
    parser.add_argument(
        "--settings", metavar="FILE", type=Path, help="settings of the operator (default: all defaults)"
    )
    parser.add_argument(
        "--namespace", metavar="NAME", help="namespace of the operator (default: POD_NAMESPACE, or fairlead-system)"
    )
    parser.add_argument(
        "--service", metavar="NAME", default="fairlead", help="Service that schedulers call (default: %(default)s)"
    )
    parser.add_argument(
        "--selector",
        metavar="LABELS",
        default=REPLICAS,
        help="labels of the pods of all replicas (default: %(default)s)",
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default=":8443", help="address for schedulers (default: %(default)s)"
    )
    parser.add_argument(
        "--probes",
        metavar="HOST:PORT",
        default=":8080",
        help="address for /readyz, /livez and /metrics (default: %(default)s)",
    )
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        default="",
        help="address for /metrics over TLS, for callers with a token that may get it; without it, /metrics is at "
        "--probes, for everyone",
    )
    parser.add_argument(
        "--admission",
        metavar="HOST:PORT",
        default=":9443",
        help="address for admission reviews by the API server; empty: none (default: %(default)s)",
    )
    add_decisions(parser)
    parser.add_argument(
        "--tls-cert", metavar="FILE", type=Path, help="server certificate (default: the operator issues its own)"
    )
    parser.add_argument("--tls-key", metavar="FILE", type=Path, help="key of the server certificate")
    parser.add_argument("--client-ca", metavar="FILE", type=Path, help="CA of the client certificates")
    add_kubeconfig(parser)
    add_drain(parser)
    add_log_format(parser, "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the operator until SIGTERM."""
    from fairlead.cli.console.exits import run_until_stopped
    from fairlead.process.leadership import Leadership
    from fairlead.process.operator import operate

    return run_until_stopped(
        "operate", options.log_format, lambda: _settings(options), lambda read: operate(read, Leadership)
    )


def _settings(options: argparse.Namespace) -> "OperateSettings":
    from fairlead.cli.console.options import seconds
    from fairlead.cli.inputs.strategy_folder import custom_strategies
    from fairlead.pki.identities import NAMESPACE
    from fairlead.process.settings import Address, OperateSettings
    from fairlead.webhook.https.tls import Files

    files = [options.tls_cert, options.tls_key, options.client_ca]
    if any(files) and not all(files):
        raise ValueError("--tls-cert, --tls-key and --client-ca belong together: give all of them or none")
    return OperateSettings(
        settings=options.settings,
        namespace=options.namespace or os.environ.get("POD_NAMESPACE") or NAMESPACE,
        service=options.service,
        listen=Address.read(options.listen),
        probes=Address.read(options.probes),
        decisions=Address.read_loopback("--decisions", options.decisions) if options.decisions else None,
        logged_decisions=options.log_decisions,
        admission=Address.read(options.admission) if options.admission else None,
        metrics=Address.read(options.metrics) if options.metrics else None,
        pod=os.environ.get("POD_NAME", ""),
        pod_uid=os.environ.get("POD_UID", ""),
        address=os.environ.get("POD_IP", ""),
        selector=options.selector,
        tls=Files(*files) if all(files) else None,
        kubeconfig=options.kubeconfig,
        context=options.context,
        drain_s=seconds("--drain", options.drain),
        custom=custom_strategies(),
    )
