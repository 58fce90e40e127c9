"""Arguments of `fairlead explain`, checked before anything is read."""

import argparse
from pathlib import Path
from typing import Final

from fairlead.cli.console.exits import CommandError
from fairlead.simulation.workloads import WorkloadKind, kind_spelt

POD_KINDS: Final = ("pod", "pods", "po")
_FORMS: Final = "write pod/NAME, deploy/NAME, sts/NAME, ds/NAME, rs/NAME or job/NAME, and its namespace as -n NAME"


def named_object(options: argparse.Namespace) -> tuple[WorkloadKind | None, str]:
    """Return the kind and the name of what is explained; None for pods, "" for all, or if a file says it.

    Raises CommandError, and SystemExit for options that contradict each other.
    """
    if options.pending:
        _check_pending(options)
        return None, ""
    if options.all_namespaces:
        options.parser.error("-A is for --pending: to explain a pod, give its namespace as -n NAME")
    if len(options.filename) > 1:
        options.parser.error("argument -f/--filename: give one file, explain is for one pod")
    words: list[str] = options.pod or _after_files(options)
    if not words:
        if not options.filename:
            options.parser.error("the following arguments are required: pod/NAME, or -f FILE, or --pending")
        return None, ""
    *kinds, last = words
    kind, slash, name = last.rpartition("/")
    kinds += [kind] if slash else []
    found = [kind_spelt(one) for one in kinds]
    is_known = all(one in POD_KINDS or workload for one, workload in zip(kinds, found, strict=True))
    if len(kinds) > 1 or not is_known or not name:
        raise CommandError(f"{' '.join(words)!r} is neither a pod nor a workload: {_FORMS}")
    return (found[0] if found else None), name


def _after_files(options: argparse.Namespace) -> list[str]:
    """Take pod/NAME from the end of an option's files: such an option takes each word up to the next option."""
    for files in (options.policies, options.snapshot):
        if len(files) > 1 and not Path(files[-1]).exists():
            kind, _, name = files[-1].partition("/")
            if name and (kind in POD_KINDS or kind_spelt(kind)):
                return [files.pop()]
    return []


def _check_pending(options: argparse.Namespace) -> None:
    if options.pod or options.filename:
        options.parser.error("--pending is for all pods that wait: leave out the pod")
    if options.node:
        options.parser.error("--node is for one pod: leave out --pending")
    if options.namespace and options.all_namespaces:
        options.parser.error("-n and -A contradict each other: leave out one of them")
