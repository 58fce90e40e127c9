"""Page that shows a terminal in which one command ran."""

import io
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS: Final = 116
"""Longer lines are wrapped, as in a terminal of this width."""
_THEME: Final = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [
        (22, 27, 34),
        (255, 147, 138),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (230, 237, 243),
    ],
)
_ROW_PX, _MARGIN_PX, _WIDTH_PX = 18, 16, 960
_PAGE: Final = """<!doctype html>
<meta charset="utf-8">
<style>
body {{ margin: 0; padding: 16px; color: {foreground}; background: {background}; }}
pre {{ margin: 0; font: 13px/18px "DejaVu Sans Mono", monospace; }}
{stylesheet}
</style>
<pre>{code}</pre>
"""


def page(command: str, printed: str) -> str:
    """Return the page, as HTML, for what the command printed, with the colours of a terminal."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
    console.print(Text.from_ansi(printed.rstrip("\n")))
    return console.export_html(theme=_THEME, code_format=_PAGE, inline_styles=True)


def size(html: str) -> tuple[int, int]:
    """Return the width and the height of a page, in pixels."""
    code = html.partition("<pre>")[2].partition("</pre>")[0]
    return _WIDTH_PX, _ROW_PX * len(code.splitlines()) + 2 * _MARGIN_PX
