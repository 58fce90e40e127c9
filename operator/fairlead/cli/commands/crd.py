"""`fairlead crd`: the CustomResourceDefinition of policies, to apply by hand, and schemas for editors."""

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.console.output import add_output, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "crd",
        help="print the CustomResourceDefinition of policies",
        description="Print the CustomResourceDefinition of policies, byte for byte as the chart applies it: "
        "`fairlead crd | kubectl apply --server-side -f -`. A chart with `crds.enabled: true` takes over one that was "
        "applied so only with helm's `--take-ownership`, of Helm 4 with `--force-conflicts` too. For editors that "
        "complete and check YAML, `-o jsonschema` prints a JSON Schema of policies, and `-o jsonschema-suites` one of "
        "suites.",
    )
    add_output(parser, "yaml", "json", "jsonschema", "jsonschema-suites")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the CustomResourceDefinition, or the schema that an editor reads."""
    if options.output.startswith("jsonschema"):
        from fairlead.cli.reports.editor_schemas import SCHEMAS

        output().write(serialize(SCHEMAS[options.output](), "json"))
        return 0
    from fairlead.api.crdgen import as_yaml, custom_resource_definition
    from fairlead.strategies.registry import installed_policy

    made = custom_resource_definition(installed_policy())
    output().write(as_yaml(made) if options.output == "yaml" else serialize(made, "json"))
    return 0
