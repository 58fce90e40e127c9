"""Diagrams, drawn when the site is built: a reader's browser loads no script for them."""

import re
from typing import Final

import mmdr

_DIAGRAM: Final = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COLOURS: Final = {
    "primaryColor": ("#010201", "var(--md-code-bg-color)"),
    "mainBkg": ("#010201", "var(--md-code-bg-color)"),
    "primaryTextColor": ("#010202", "var(--md-default-fg-color)"),
    "textColor": ("#010202", "var(--md-default-fg-color)"),
    "titleColor": ("#010202", "var(--md-default-fg-color)"),
    "primaryBorderColor": ("#010203", "var(--md-primary-fg-color)"),
    "clusterBorder": ("#010203", "var(--md-primary-fg-color)"),
    "lineColor": ("#010204", "var(--md-default-fg-color--light)"),
    "edgeLabelBackground": ("#010205", "var(--md-default-bg-color)"),
    "clusterBkg": ("#010206", "var(--md-default-bg-color)"),
}
"""For each colour of the theme one that the renderer can compute with, and the site's own, which is light or dark."""
_HALF_BACKGROUND: Final = "rgba(1, 2, 5, 0.5)"


def drawn(markdown: str) -> str:
    """Return the text of a page with its diagrams as SVG, in the site's colours."""
    return _DIAGRAM.sub(lambda found: _svg(found[1]), markdown)


def _svg(source: str) -> str:
    theme = ", ".join(f'"{name}": "{computed}"' for name, (computed, _) in _COLOURS.items())
    settings = f'%%{{init: {{"theme": "base", "themeVariables": {{"fontFamily": "inherit", {theme}}}}}}}%%\n'
    svg = mmdr.render(settings + source, backend="merman").svg()
    for computed, own in _COLOURS.values():
        svg = svg.replace(computed, own)
    svg = svg.replace(_HALF_BACKGROUND, "var(--md-default-bg-color)")
    svg = re.sub("#000000|#0b0b0b", "var(--md-primary-fg-color)", svg)  # ends of gradients
    alternative = " ".join(re.findall(r"\[+\(?([^\[\]()]+)\)?\]+", source)).replace("<br>", " ")
    svg = re.sub(r"<svg ", f'<svg role="img" aria-label="Diagram: {alternative}" ', svg, count=1)
    return "".join(line.strip() for line in svg.splitlines())  # a blank line would end the block in Markdown
