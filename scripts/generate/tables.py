"""Tables of Markdown."""

_BAR = "\\|"
"""A bar within a cell: it ends the cell elsewhere, in code too."""


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"
