"""`fairlead ui`: a page on this machine that shows what waits, why, and what an edit of a policy would change."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.options import add_cluster, add_learned, add_policies
from fairlead.cli.console.output import output

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.ui.page_guard import PageGuard

PORT: Final = 8090
_PORT_MAX: Final = 65_535


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "ui",
        help="show pods, nodes and policies on a page, and try an edit of a policy",
        description="Serve a page on 127.0.0.1 until Ctrl-C: which pods wait and why, pods by nodes, what rules in "
        "shadow would do, nodes, and what an edit of a policy would change. Reads the cluster with your own "
        "permissions each time the page is opened, names what you may not read, evaluates on this machine and changes "
        "nothing anywhere: it shows commands to copy. The printed address has a token; keep it to yourself. "
        "Exit code: 1 if a policy in a file has errors, 2 if an input cannot be read.",
        epilog="Example without a cluster: `kubectl get nodes,pods,namespaces -A -o json > now.json`, then "
        "`fairlead ui --policies gpu.yaml --snapshot now.json`.",
    )
    parser.add_argument(
        "--port", metavar="PORT", type=_port, default=PORT, help="port on 127.0.0.1; 0: any (default: %(default)s)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    add_policies(parser)
    add_cluster(parser)
    add_learned(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Read the cluster once, so that an error is said here, then serve the page."""
    import asyncio

    from fairlead.cli.inputs.cluster_access import PolicyOption, cluster_access
    from fairlead.cli.inputs.files import reads_once

    for option in ("policies", "snapshot", "data", "learned"):
        if once := next(filter(reads_once, getattr(options, option)), ""):
            raise CommandError(f"--{option} {once}: each opening of the page reads it again: write it to a file")
    cluster_access(options, [PolicyOption("--policies", options.policies)])
    from fairlead.cli.inputs.strategy_folder import custom_strategies
    from fairlead.cli.ui.page_guard import new_token
    from fairlead.cli.ui.page_reader import PageReader
    from fairlead.cli.ui.page_server import serve

    def ready(guard: "PageGuard") -> None:
        output().write(f"{guard.address}\n")
        output().flush()
        if not options.no_browser:
            from fairlead.cli.console.browser import open_browser

            open_browser(guard.address)

    asyncio.run(serve(PageReader(options).read, options.port, new_token(), custom_strategies(), ready))
    return exits.DONE


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > _PORT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_PORT_MAX}")
    return int(text)
