"""TLS contexts from certificates and keys in memory."""

import os
import ssl
import tempfile
from pathlib import Path


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate and its key. OpenSSL needs a file, so use one in memory, or a private temporary one."""
    pair = certificate.strip() + b"\n" + key.strip() + b"\n"
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(
                f"/proc/self/fd/{file.fileno()}", password=""
            )  # otherwise it prompts at the terminal
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        path = Path(folder, "pair.pem")
        path.write_bytes(pair)
        context.load_cert_chain(path, password="")


def client_context(trusted: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return the context of a client of the webhook's port, with TLS 1.3 only, as the port has it.

    Text between the certificates of a bundle is ignored, as at the port.
    """
    context = ssl.create_default_context(cadata=trusted.decode("ascii", "ignore"))
    # since Python 3.13 strict means that authorities need a key identifier, which given ones may not have
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    load_pair(context, certificate, key)
    return context
