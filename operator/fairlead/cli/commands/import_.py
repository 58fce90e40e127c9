"""`fairlead import FILE...`: policies from TASPolicies, Trimaran's and crane's configuration."""

import argparse
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_files
from fairlead.cli.console.output import complain, errors, output

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

_NAME: Final = "fairlead import"


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "import",
        help="write policies for the configuration of other load-aware schedulers",
        description="Write policies to standard output that do what other load-aware schedulers are configured to do: "
        "a TASPolicy of Intel's Telemetry Aware Scheduling, a KubeSchedulerConfiguration with plugins of Trimaran "
        "(TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment), a DynamicSchedulerPolicy of "
        "crane-scheduler. Comments say what to check, and what a policy cannot express. The same input gives the same "
        "bytes. Exit code: 0 if imported, 1 if an object has errors or there is none, 2 if an input cannot be read.",
        epilog="Example: `fairlead import scheduler-config.yaml policy.yaml > load.yaml`, then "
        "`fairlead lint load.yaml`.",
    )
    add_files(parser, "objects in YAML or JSON; - is standard input")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import the objects."""
    from fairlead.cli.imports.commented_yaml import write_drafts
    from fairlead.cli.imports.foreign_documents import VERSIONS, ForeignDocuments
    from fairlead.cli.inputs.files import files
    from fairlead.cli.reports.lint_text import finding_lines

    found = ForeignDocuments()
    are_read = [found.read(file) for file in files(options.files)]
    drafts = found.import_all()
    for note in found.skipped:
        complain(_NAME, note)
    for finding in found.findings:
        for line in finding_lines(finding, colour=False):
            print(line, file=errors())
    if not all(are_read):
        return exits.USAGE
    if found.findings:
        return exits.FAILED
    if found.is_empty:
        complain(_NAME, f"no {', '.join(sorted(VERSIONS))} found in {', '.join(options.files)}")
        return exits.FAILED
    output().write(write_drafts(drafts))
    return exits.DONE
