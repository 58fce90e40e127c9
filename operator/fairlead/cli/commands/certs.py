"""`fairlead certs`: a CA and the two certificates that `fairlead serve` and a scheduler need."""

import argparse
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.cli.console.exits import FAILED, CommandError
from fairlead.cli.console.output import output

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

AUTHORITY_LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=365)
CLIENT_NAME: Final = "fairlead-scheduler"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "certs",
        help="create certificates for `fairlead serve` and for the scheduler that calls it",
        description=(
            "Create a CA and two certificates. `fairlead serve` uses ca.crt, server.crt and server.key; the scheduler "
            "uses ca.crt, scheduler.crt and scheduler.key. Keep ca.key secret. If the CA exists already, only the two "
            "certificates are replaced; a running server picks them up within seconds."
        ),
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="directory to write to")
    parser.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help="host name or IP address of the server besides localhost; may be repeated",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Create the certificates and return the exit code."""
    from fairlead.pki.issuing import Pair, create_authority, is_host, issue_leaf

    folder: Path = options.out
    now = datetime.now(UTC)
    for host in options.host:
        if not is_host(host):
            raise CommandError(f"--host {host!r} is not a host name or an IP address")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / "ca.crt", folder / "ca.key"
        if certificate.exists() and key.exists():
            ca = Pair(certificate.read_bytes(), key.read_bytes())
        elif certificate.exists() or key.exists():
            there, missing = (certificate, key) if certificate.exists() else (key, certificate)
            raise CommandError(f"{there} exists but {missing.name} does not: restore it, or delete both", FAILED)
        else:
            ca = create_authority("fairlead-ca", now, AUTHORITY_LIFE)
            _write(folder, "ca", ca.certificate, ca.key)
        server = issue_leaf(ca, "fairlead", "server", now, LEAF_LIFE, [*_LOCAL, *options.host])
        _write(folder, "server", server.certificate, server.key)
        client = issue_leaf(ca, CLIENT_NAME, "client", now, LEAF_LIFE)
        _write(folder, "scheduler", client.certificate, client.key)
    except OSError as error:
        raise CommandError(f"{error.filename or folder}: {error.strerror}", FAILED) from None
    except (ValueError, TypeError) as error:
        raise CommandError(f"{folder / 'ca.crt'} and ca.key are not a CA: {error}", FAILED) from None
    made = "ca, server and scheduler, each .crt and .key"
    print(f"{folder}: {made}; the two certificates are valid for {LEAF_LIFE.days} days", file=output())
    return 0


def _write(folder: Path, name: str, certificate: bytes, key: bytes) -> None:
    """Write a certificate and its key by renaming, so that no reader sees half a file."""
    for suffix, content, mode in ((".key", key, 0o600), (".crt", certificate, 0o644)):
        new = folder / f".{name}{suffix}"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        os.fchmod(descriptor, mode)  # a file left behind by an earlier run keeps its mode
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        new.replace(folder / f"{name}{suffix}")
