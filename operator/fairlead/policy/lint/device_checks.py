"""Warnings about the device shares of a policy."""

from collections.abc import Iterator, Sequence

from fairlead.api.devices import DeviceShare
from fairlead.api.errors import FieldPath
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.symbolic.terms import term_outcomes
from fairlead.strategies.devices.choice import CARDS_MAX


def check_device_shares(entries: Sequence[DeviceShare]) -> Iterator[LintWarning]:
    """Yield a warning for each entry that records for containers, without saying so."""
    for at, entry in enumerate(entries):
        if "record" not in entry.model_fields_set:
            key = f"metadata.annotations['fairlead.dev/devices.{entry.name}']"
            message = "no device plugin reads what is granted: a container must be told which device to use"
            hint = f"write record: Fairlead if containers take it into a variable (valueFrom.fieldRef.fieldPath: {key})"
            # The field may be absent: what is written is the entry.
            yield LintWarning(LintCode.UNUSED_GRANT, ("spec", "binding", "deviceShare", at), message, hint)


def check_cards(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Yield a warning about a number of devices that no pod can have."""
    if outside := sorted(value for value in term_outcomes(expression) or () if not 1 <= value <= CARDS_MAX):
        listed = " and ".join(f"{value:g}" for value in outside)
        message = f"a pod gets 1 to {CARDS_MAX} devices, so with {listed} it is placed on no node"
        yield LintWarning(LintCode.NEVER_PASSES, path, message, f"give a number from 1 to {CARDS_MAX}")
