"""`fairlead serve`: the extender without the operator, for users who configure the scheduler themselves."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.cli.console.options import add_decisions, add_drain, add_kubeconfig, add_log_format

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.process.settings import Settings
    from fairlead.webhook.extender.call import Verb

_BODY_MAX: Final = 1024
_LEAST_S: Final = 0.05


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "serve",
        help="answer a scheduler's extender calls, with policies from files",
        description="Answer kube-scheduler's extender calls according to the policies in a directory, and reload them "
        "when they change. Environment: LOG_LEVEL is TRACE, DEBUG, INFO (default), WARNING or ERROR; "
        "FAIRLEAD_STRATEGIES is the directory of custom strategies (default: /opt/fairlead/strategies).",
        epilog="`fairlead certs --out DIR` creates the certificates.",
    )
    parser.add_argument("--policies", metavar="DIR", type=Path, required=True, help="directory of policies")
    parser.add_argument(
        "--settings",
        metavar="FILE",
        type=Path,
        help="settings of the operator, of which only `prometheus` and `maxPolicies` apply; credentials of a server "
        "are files in the folder prometheus/SERVER beside it (default: no servers)",
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="127.0.0.1:8443",
        help="address for the scheduler (default: %(default)s)",
    )
    parser.add_argument(
        "--probes",
        metavar="HOST:PORT",
        default="127.0.0.1:8081",
        help="address for /readyz, /livez and /metrics (default: %(default)s)",
    )
    add_decisions(parser)
    parser.add_argument("--tls-cert", metavar="FILE", type=Path, required=True, help="server certificate")
    parser.add_argument("--tls-key", metavar="FILE", type=Path, required=True, help="key of the server certificate")
    parser.add_argument("--client-ca", metavar="FILE", type=Path, required=True, help="CA of the client certificates")
    parser.add_argument(
        "--allow",
        metavar="NAME=SCHEDULER[:VERB,...]",
        action="append",
        default=[],
        help="allow the client certificate with this common name to call for the pods of this scheduler, with all "
        "verbs or some of filter, prioritize, preempt and bind; may be repeated (default: the certificate of "
        "`fairlead certs`, for every scheduler that the policies name)",
    )
    add_kubeconfig(parser)
    parser.add_argument(
        "--timeout", metavar="TIME", default="1s", help="httpTimeout of the scheduler (default: %(default)s)"
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        default="fairlead-system",
        help="namespace of the last good generations and of ConfigMaps that policies name (default: %(default)s)",
    )
    parser.add_argument(
        "--max-body", metavar="MIB", type=int, default=10, help="largest request body (default: %(default)s)"
    )
    add_drain(parser)
    parser.add_argument(
        "--verify-every",
        metavar="TIME",
        default="1h",
        help="compare the cache with the API server this often; 0s: never (default: %(default)s)",
    )
    parser.add_argument(
        "--no-prioritize-ahead",
        action="store_false",
        dest="prioritize_ahead",
        help="compute scores when they are asked for, not already after the reply of filter",
    )
    add_log_format(parser, "console")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    from fairlead.cli.console.exits import run_until_stopped
    from fairlead.process.standalone import serve

    return run_until_stopped("serve", options.log_format, lambda: _settings(options), serve)


def _settings(options: argparse.Namespace) -> "Settings":
    from fairlead.cli.commands.certs import CLIENT_NAME
    from fairlead.cli.console.options import seconds
    from fairlead.cli.inputs.strategy_folder import custom_strategies
    from fairlead.process.settings import Address, Settings
    from fairlead.webhook.https.tls import Files

    if not 0 < options.max_body <= _BODY_MAX:
        raise ValueError(f"--max-body {options.max_body} is not between 1 and {_BODY_MAX}")
    callers: dict[str, dict[str, frozenset[Verb]]] = {}
    for text in options.allow:
        name, scheduler, verbs = _allowed(text)
        schedulers = callers.setdefault(name, {})
        schedulers[scheduler] = schedulers.get(scheduler, frozenset()) | verbs
    return Settings(
        policies=options.policies,
        settings=options.settings,
        listen=Address.read(options.listen),
        probes=Address.read(options.probes),
        decisions=Address.read_loopback("--decisions", options.decisions) if options.decisions else None,
        logged_decisions=options.log_decisions,
        tls=Files(options.tls_cert, options.tls_key, options.client_ca),
        callers=callers or {CLIENT_NAME: None},
        kubeconfig=options.kubeconfig,
        context=options.context,
        namespace=options.namespace,
        timeout_s=seconds("--timeout", options.timeout, least=_LEAST_S),
        max_body=options.max_body << 20,
        drain_s=seconds("--drain", options.drain),
        verify_s=seconds("--verify-every", options.verify_every),
        custom=custom_strategies(),
        prioritize_ahead=options.prioritize_ahead,
    )


def _allowed(text: str) -> "tuple[str, str, frozenset[Verb]]":
    from fairlead.process.settings import VERBS

    name, equals, rest = text.partition("=")
    scheduler, colon, listed = rest.partition(":")
    if not (name and equals and scheduler):
        raise ValueError(f"--allow {text!r} is not NAME=SCHEDULER or NAME=SCHEDULER:VERB,...")
    asked = {*listed.split(",")}
    if colon and not asked <= VERBS:
        unknown = ", ".join(sorted(map(repr, asked - VERBS)))
        raise ValueError(f"--allow {text!r}: {unknown} is not one of {', '.join(sorted(VERBS))}")
    return name, scheduler, frozenset(verb for verb in VERBS if verb in asked) if colon else VERBS
