"""`fairlead render FILE...`: the objects that the operator would create for policies, without a cluster."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.cli.console import exits
from fairlead.cli.console.options import add_files
from fairlead.cli.console.output import add_output, clean, complain, errors, output, pluralize, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands
    from fairlead.cli.inputs.checker import Checker
    from fairlead.control.preview import Preview, PreviewInputs
    from fairlead.render.operator_settings import ChartValues

_NAME = "fairlead render"
_LEFT_OUT = (
    "Not shown: what the operator stores for itself at run time (the Secret fairlead-ca, ConfigMaps that end in "
    ".state, ControllerRevisions), and the subjects of the chart's bindings of schedulers."
)


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "render",
        help="print the objects that the operator would create for policies",
        description="Print the objects that the operator would create for these policies, to review or commit. The "
        "same input gives the same bytes. Values that only the cluster knows are placeholders such as <ca.crt: ...>; "
        "the comment at the top lists them. Exit code: 0 if rendered, 1 if a policy has errors, 2 if an input cannot "
        "be read.",
    )
    add_files(parser, "policies in YAML or JSON; - is standard input")
    parser.add_argument(
        "--settings", metavar="VALUES", type=Path, help="values.yaml of the chart (default: the chart's defaults)"
    )
    parser.add_argument(
        "--kubernetes-version", metavar="V", default="", help="version of the API server, such as v1.37.1"
    )
    parser.add_argument("--ca", metavar="FILE", type=Path, help="CA of the operator's certificate, in PEM")
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        default="fairlead-system",
        help="namespace of the operator (default: %(default)s)",
    )
    add_output(parser, "yaml", "json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Render the objects."""
    from fairlead.api.errors import InvalidObjectError
    from fairlead.cli.inputs.chart_values import read_values
    from fairlead.control.preview import render_preview
    from fairlead.render.shipped_templates import templates
    from fairlead.render.templates import TemplateEngine
    from fairlead.strategies.registry import installed_policy

    values = read_values(options.settings)
    known = _known(options, values)
    checker, code = _checked(options.files, None if options.settings is None else values)
    if code != exits.DONE:
        return code
    policies = [data for _, data in checker.policies]
    if not policies:
        complain(_NAME, f"no SchedulerExtenderPolicy found in {', '.join(options.files)}")
    try:
        made = render_preview(TemplateEngine(templates()), installed_policy(), policies, values.settings, known)
    except InvalidObjectError as error:
        raise exits.CommandError("; ".join(str(error).splitlines()), exits.FAILED) from None
    _print(made, len(policies), options.output)
    return exits.DONE


def _known(options: argparse.Namespace, values: "ChartValues") -> "PreviewInputs":
    from fairlead.cli.inputs.chart_values import read_text
    from fairlead.control.preview import PreviewInputs
    from fairlead.pki import parsing
    from fairlead.render.cluster_facts import image_tag

    ca = b""
    if options.kubernetes_version:
        try:
            image_tag([options.kubernetes_version])
        except ValueError:
            said = f"--kubernetes-version {options.kubernetes_version}: write the full version, such as v1.37.1"
            raise exits.CommandError(said) from None
    if options.ca is not None:
        ca = read_text(options.ca).encode()
        try:
            parsing.digest(ca)
        except ValueError:
            raise exits.CommandError(f"{options.ca}: contains no PEM certificate") from None
        if values.settings.tls.mode == "SelfManaged":
            ca = parsing.bundle([ca])
    return PreviewInputs(
        namespace=options.namespace,
        service=values.fullname,
        port=values.port,
        version=options.kubernetes_version,
        ca=ca.decode(),
    )


def _checked(names: list[str], values: "ChartValues | None") -> "tuple[Checker, int]":
    """Return the policies and the exit code; prints their errors."""
    from fairlead.cli.inputs.checker import Checker
    from fairlead.cli.inputs.files import read_into
    from fairlead.cli.inputs.strategy_folder import custom_strategies
    from fairlead.cli.reports.lint_text import finding_lines

    checker = Checker(custom=custom_strategies(), settings=None if values is None else values.settings)
    notes, unreadable = read_into(checker, names)
    report = checker.finish()
    for note in notes:
        complain(_NAME, note)
    wrong = [one for one in report.findings if one.severity == "error" or one.reason == "SameName"]
    for finding in wrong:
        for line in finding_lines(finding, colour=False):
            print(line, file=errors())
    if unreadable:
        return checker, exits.USAGE
    return checker, exits.FAILED if wrong else exits.DONE


def _print(preview: "Preview", policies: int, form: str) -> None:
    from fairlead.render.templates import written

    head = list(_head(preview, policies))
    if form == "json":  # which has no comments
        for line in head:
            complain(_NAME, line)
        listed: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": list(preview.objects)}
        output().write(serialize(listed, form))
        return
    output().write("".join(f"# {clean(line)}\n" for line in head) + written(preview.objects))


def _head(preview: "Preview", policies: int) -> Iterator[str]:
    schedulers = f": {', '.join(preview.schedulers)}" if preview.schedulers else ""
    what = f"{pluralize(policies, 'policy', 'policies')}, {pluralize(len(preview.schedulers), 'scheduler')}{schedulers}"
    yield f"Objects that the Fairlead operator would create for {what}."
    yield _LEFT_OUT
    if preview.placeholders:
        yield "Placeholders for what only the cluster knows:"
    for mark, meaning in sorted(preview.placeholders.items()):
        yield f"  {mark}  {meaning}"
    yield from preview.notes
