"""Look that the charts of the guide have in common, as SVG. Pure."""

from typing import Final

WIDTH: Final = 720
STEPS: Final = range(0, 101, 20)
"""Steps of an axis from 0 to 100."""
TEXT: Final = "#808080"
"""Grey that can be read on white and on black: the page has both."""
LINE: Final = "#80808066"


def begin(title: str, height: int) -> list[str]:
    """Return the first lines of a chart."""
    return [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            ' font-family="sans-serif" font-size="13">'
        ),
        f"<title>{title}</title>",
    ]
