"""Time of the page of `fairlead ui`: from a snapshot in memory to HTML, and from an edit to what it would change."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main
from fairlead.cli.main import parser
from fairlead.cli.reports.explained_pods import ExplainedPods
from fairlead.cli.ui.page_reader import PageReader
from fairlead.cli.ui.page_templates import page_templates
from fairlead.cli.ui.page_view import PageInput, page_view
from fairlead.cli.ui.what_if import compare, lint_text
from support.cli import gpu_cluster

_FEWEST: Final = 4
_ROUNDS: Final = 10  # of those that others make


def first_page(size: Size) -> list[float]:
    """5,000 nodes and 200 pods of the policies, with a rule in shadow: views and HTML."""
    read = _read(size.nodes, size.nodes // 25)[0]
    template = page_templates().get_template("page.html")

    def fresh() -> PageInput:
        """The same, of which nothing was simulated yet."""
        return replace(read, explained=ExplainedPods(read.explained.cluster, read.explained.schedulers))

    def make(given: PageInput) -> None:
        template.render(view=page_view(given)[0])

    return timed(make, max(1, size.rounds // _ROUNDS), fresh)


def what_if(size: Size) -> list[float]:
    """400 nodes and 800 pods of the policies: lint, then the difference for each pod."""
    nodes = max(_FEWEST, size.nodes * 2 // 25)
    found, text = _read(nodes, nodes * 2)
    _, shown = page_view(found)
    edited = text.replace(b"variables.wanted == 'any'", b"variables.wanted in ['any', 'b300']")

    def answer(_: None) -> None:
        policies = lint_text(edited, {}).policies
        compare(shown, policies or ())

    return timed(answer, max(1, size.rounds // _ROUNDS), lambda: None)


def _read(nodes: int, ours: int) -> tuple[PageInput, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        snapshot, policies = gpu_cluster.write(Path(folder), nodes, ours)
        options = ["ui", "--snapshot", str(snapshot), "--policies", *map(str, policies)]
        found = asyncio.run(PageReader(parser().parse_args(options)).read())
        return found, policies[0].read_bytes()


BENCHMARKS: Final[Benchmarks] = {
    "ui-first-page": Benchmark("ms", first_page),
    "ui-what-if": Benchmark("ms", what_if),
}

if __name__ == "__main__":
    main(BENCHMARKS)
