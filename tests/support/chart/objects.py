"""Objects of the chart's templates, and what the command makes of their arguments."""

import argparse

from fairlead.cli.commands import operate, uninstall
from testbed.api import Object


def the_one(objects: list[Object], kind: str, name: str = "") -> Object:
    """Return the object of a kind, which is the only one, or has this name."""
    (found,) = [one for one in objects if one["kind"] == kind and name in ("", one["metadata"]["name"])]
    return found


def options_of(workload: Object) -> argparse.Namespace:
    """Return the options that the command reads from its arguments."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    for command in (operate, uninstall):
        command.add_to(commands)
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return parser.parse_args(container["args"])


def labels_of(selector: str) -> dict[str, str]:
    """Return the labels of a selector such as `a=b,c=d`."""
    return {key: value for key, _, value in (one.partition("=") for one in selector.split(","))}


def service_of(objects: list[Object]) -> Object:
    """Return the Service that has an address."""
    (found,) = [one for one in objects if one["kind"] == "Service" and one["spec"].get("clusterIP") != "None"]
    return found
