"""How OpenSSL is given a certificate and its key that are in memory, and what is shown to the webhook's port."""

import os
import ssl
import tempfile
from pathlib import Path


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """OpenSSL reads keys from files only: from one that is in memory, or that nobody else may read."""
    pair = certificate.strip() + b"\n" + key.strip() + b"\n"
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")  # or it asks at the terminal
        return
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        path = Path(folder, "pair.pem")
        path.write_bytes(pair)
        context.load_cert_chain(path, password="")


def client_context(trusted: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """What a caller of the webhook's port shows, and whom it believes: as that port, it knows nothing older than 1.3.

    What stands between certificates of a bundle is nobody's business, as with the port.
    """
    context = ssl.create_default_context(cadata=trusted.decode("ascii", "ignore"))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    load_pair(context, certificate, key)
    return context
