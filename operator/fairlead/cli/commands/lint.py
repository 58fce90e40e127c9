"""`fairlead lint FILE|DIR|-...`: errors and surprises in policies before they are applied.

Exit code: 0 without errors (warnings and notes do not count), 1 with errors, 2 for a usage error or unreadable input.

`-o json` and `-o yaml` print one object: `findings`, each with file, line, column, severity (error, warning, accepted
or note), field, message, hint, reason, policy, rule and accepted; `rules`, each with file, line, policy, name, kind,
evaluation, why, uses and expression; `summary` with policies, ignored, errors, warnings, accepted, notes, expressions
and onEngine. Fields may be added but are never removed. `-o github` prints a workflow command for each
finding, which GitHub Actions shows beside its line, and `-o sarif` a SARIF 2.1.0 log for code scanning.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_files
from fairlead.cli.console.output import TABLE, add_output, complain, output, serialize, wants_colour

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "lint",
        help="find errors and surprises in policies before they are applied",
        description="Find errors and surprises in policies before they are applied. "
        "Exit code: 0 without errors, 1 with errors, 2 if an input cannot be read.",
    )
    add_files(parser, "policies in YAML or JSON; - is standard input")
    parser.add_argument(
        "--settings",
        metavar="VALUES",
        type=Path,
        help="values.yaml of the chart: which Prometheus servers and which annotations policies may name",
    )
    add_output(parser, TABLE, "json", "yaml", "github", "sarif")
    parser.add_argument(
        "--require-policies", action="store_true", help="fail if there is no policy, as in a directory that was renamed"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="also show what each rule uses")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Lint policies."""
    # Imported here: the CEL engine takes longer to load than everything else.
    from time import thread_time

    from fairlead.api.names import KIND
    from fairlead.cli.inputs.chart_values import read_values
    from fairlead.cli.inputs.checker import Checker
    from fairlead.cli.inputs.files import read_into
    from fairlead.cli.inputs.strategy_folder import custom_strategies
    from fairlead.cli.reports.lint_ci import annotations, sarif
    from fairlead.cli.reports.lint_text import report_data, report_text

    settings = None if options.settings is None else read_values(options.settings).settings
    checker = Checker(clock=thread_time, custom=custom_strategies(), settings=settings)
    notes, unreadable = read_into(checker, options.files)
    report = checker.finish()
    if not report.policies and not report.findings:
        notes = [f"no {KIND} found in {', '.join(options.files)}"]
    for note in notes:
        complain("fairlead lint", note)
    out = output()
    if options.output == TABLE:
        for line in report_text(report, colour=wants_colour(out), verbose=options.verbose):
            print(line, file=out)
    elif options.output == "github":
        for line in annotations(report):
            print(line, file=out)
    elif options.output == "sarif":
        out.write(serialize(sarif(report), "json"))
    else:
        out.write(serialize(report_data(report), options.output))
    if unreadable:
        return exits.USAGE
    is_empty = options.require_policies and not report.policies
    return exits.FAILED if report.count("error") or is_empty else exits.DONE
