"""`fairlead test FILE|DIR...`: unit tests of policies, written as YAML.

Exit code: 0 if all cases passed, 1 if one failed or, with --require-coverage, an outcome of a rule is not covered, 2
for a usage error or a suite or policy that cannot be read.
"""

import argparse
import time
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_files
from fairlead.cli.console.output import (
    TABLE,
    add_output,
    complain,
    errors,
    output,
    pluralize,
    serialize,
    wants_colour,
    with_progress,
)

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.suite_files import LoadedSuite, Suites
    from fairlead.cli.reports.suite_report import CaseRun, SuiteReport
    from fairlead.suites.coverage import Coverage

_LOOK_S: Final = 0.5


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "test",
        help="run unit tests of policies",
        description="Run suites of unit tests: each case has nodes, pods and a time, and the results that the policies "
        "must give. Needs no cluster. Exit code: 0 if all cases passed, 1 if a case failed, 2 if an input cannot be "
        "read.",
    )
    add_files(parser, "suites; in a directory, every file that ends in .test.yaml")
    add_output(parser)
    parser.add_argument("--junit", metavar="FILE", help="also write a JUnit report")
    parser.add_argument("--require-coverage", action="store_true", help="fail if no case covers an outcome of a rule")
    parser.add_argument("--watch", action="store_true", help="rerun when a file changes, until Ctrl-C")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run suites, again after each change with --watch."""
    from fairlead.cli.inputs.files import reads_once
    from fairlead.cli.inputs.strategy_folder import strategy_files
    from fairlead.cli.inputs.suite_files import Suites, stamp

    if options.watch and (once := next(filter(reads_once, options.files), "")):
        complain("fairlead test", f"--watch reads {once} again after each change, and it can be read once: name a file")
        return exits.USAGE
    while True:
        suites = Suites()
        suites.load(options.files)
        watched = [*suites.read, *map(str, strategy_files())]
        seen = stamp(watched) if options.watch else []
        code = _once(options, suites)
        if not options.watch:
            return code
        complain("fairlead test", f"waiting for changes in {pluralize(len(seen), 'file')}; Ctrl-C stops")
        while stamp(watched) == seen:
            time.sleep(_LOOK_S)


def _once(options: argparse.Namespace, suites: "Suites") -> int:
    # Imported here: the CEL engine takes longer to load than everything else.
    from fairlead.cli.reports.lint_text import finding_lines
    from fairlead.cli.reports.suite_report import SuiteReport, SuiteRun, suite_data, suite_text
    from fairlead.suites.coverage import Coverage

    coverage = Coverage()
    report = SuiteReport(findings=[*suites.findings])
    for loaded in suites.loaded:
        coverage.expect(loaded.policies)
        report.suites.append(SuiteRun(loaded.name, loaded.file, []))
    runs = [one for one in zip(suites.loaded, report.suites, strict=True) for _ in one[0].suite.cases]
    for loaded, run in with_progress("cases", runs):
        run.cases.append(_case(loaded, len(run.cases), coverage, report))
    report.coverage = coverage.rules()
    out = output()
    if options.output == TABLE:
        for finding in report.findings:
            print("\n".join(finding_lines(finding, colour=wants_colour(errors()))), file=errors())
        print("\n".join(suite_text(report, colour=wants_colour(out))), file=out, flush=True)
    else:
        out.write(serialize(suite_data(report), options.output))
    unwritten = options.junit and not _write_junit(options.junit, report)
    if report.findings or unwritten:
        return exits.USAGE
    seen, all_ = report.outcomes
    if report.count("failed") or (options.require_coverage and seen < all_):
        return exits.FAILED
    return exits.DONE


def _case(loaded: "LoadedSuite", at: int, coverage: "Coverage", report: "SuiteReport") -> "CaseRun":
    from fairlead.cli.reports.suite_report import CaseRun, lines_of, place_of
    from fairlead.suites.run import ask, run_case

    began = time.perf_counter()
    result = run_case(loaded.suite, at, loaded.policies, ask)
    took = time.perf_counter() - began
    coverage.see(loaded.policies, result.outcomes)
    line = place_of(loaded.place, at)
    if result.faults:
        report.findings += [loaded.finding(fault) for fault in result.faults]
        return CaseRun(result.case, line, "error", took, details=[str(fault) for fault in result.faults])
    said = [text for one in result.differences for text in lines_of(one)]
    return CaseRun(result.case, line, "passed" if result.passed else "failed", took, result.differences, said)


def _write_junit(file: str, report: "SuiteReport") -> bool:
    from pathlib import Path

    from fairlead.cli.console.whole_output import write_whole
    from fairlead.cli.reports.suite_report import as_junit

    try:
        write_whole(Path(file), as_junit(report))
    except OSError as error:
        complain("fairlead test", f"--junit {file}: cannot be written: {(error.strerror or str(error)).lower()}")
        return False
    return True
