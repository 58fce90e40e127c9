"""Writes all golden files anew: `make crds`, and look at what it changes."""

from support.chart import chart
from support.cli import imported, rendered, status
from support.render import schedulers


def write_all() -> None:
    """Write the golden files of the chart, of schedulers, of what commands print, and of imports."""
    for one in (chart, schedulers, rendered, status, imported):
        one.write()


if __name__ == "__main__":
    write_all()
