"""Warnings about the node affinity that a policy publishes."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_policies import LeftOut, publication_steps
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings

_PATH: Final = ("spec", "publish")


def check_publication(compiled: CompiledPolicy) -> LintWarnings:
    """Yield a warning if a policy publishes nothing, and a note if it publishes more nodes than pass."""
    if not compiled.publishes or not compiled.enforced:
        return
    found = yield from publication_steps(compiled, Vocabulary())
    yield None
    if (part := found.unknown_match) is not None:
        message = f"nothing is published, because labels cannot say which pods match: {part.rule} reads {part.reason}"
        hint = "match by namespaces, selectors, or conditions on labels and annotations"
        yield LintWarning(LintCode.PUBLISHES_NOTHING, _PATH, message, hint)
    elif not compiled.filters:
        lacks, hint = "the policy has no filters", "add filters, or remove it"
        if compiled.shadow is not None and compiled.shadow.filters:
            lacks, hint = "all filters are in shadow", "enforce one, or remove it until then"
        yield LintWarning(LintCode.PUBLISHES_NOTHING, _PATH, f"nothing is published, because {lacks}", hint)
    elif found.policy is None and found.left_out:
        message = f"nothing is published, because labels cannot say it: {_listed(found.left_out)}"
        yield LintWarning(LintCode.PUBLISHES_NOTHING, _PATH, message, "remove it, or read labels of nodes")
    elif found.left_out:
        message = f"what is published also selects nodes that do not pass: {_listed(found.left_out)}"
        hint = "autoscalers may add such a node; the filters still reject it"
        yield LintWarning(LintCode.PUBLISHES_WIDER, _PATH, message, hint)


def _listed(left_out: Iterable[LeftOut]) -> str:
    """Return the filters with what they leave out."""
    reasons = defaultdict[str, list[str]](list)
    for one in left_out:
        reasons[one.rule].append(one.reason)
    return "; ".join(f"{rule} leaves out {', '.join(some)}" for rule, some in reasons.items())
