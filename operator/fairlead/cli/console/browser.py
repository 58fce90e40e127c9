"""Opening of the page in a browser. The token is in no command line, which other users of the machine can see."""

import atexit
import html
import os
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Final

_PAGE: Final = """<!doctype html>
<meta charset="utf-8">
<title>Fairlead</title>
<meta http-equiv="refresh" content="0; url={address}">
<a href="{address}">Open the page</a>
"""
_KEPT_S: Final = 20.0


def open_browser(address: str) -> None:
    """Open a file that only its owner can read, which leads to the address; the file is removed after a while.

    Without a display nothing is opened: a browser in this terminal would take it away.
    """
    if not has_display():
        return
    with tempfile.NamedTemporaryFile("w", prefix="fairlead-ui-", suffix=".html", delete=False) as file:
        file.write(_PAGE.format(address=html.escape(address)))
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    remover = threading.Timer(_KEPT_S, path.unlink, [True])
    remover.daemon = True
    remover.start()
    threading.Thread(target=webbrowser.open, args=[path.as_uri()], daemon=True).start()


def has_display() -> bool:
    """Return whether there is a screen for a browser."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
