"""Warnings about the device shares of a policy."""

from collections.abc import Iterator, Sequence

from fairlead.api.devices import DeviceShare
from fairlead.policy.lint.codes import LintCode, LintWarning


def check_device_shares(entries: Sequence[DeviceShare]) -> Iterator[LintWarning]:
    """Yield a warning for each entry whose grants bind no one who does not read them."""
    for at, entry in enumerate(entries):
        if entry.record == "Fairlead":
            key = f"metadata.annotations['fairlead.dev/devices.{entry.name}']"
            message = "no device plugin reads what is granted: a container uses the granted device only if it is told"
            hint = f"take it into a variable of the container, as valueFrom.fieldRef.fieldPath: {key}"
            # The field may be absent: what is written is the entry.
            yield LintWarning(LintCode.UNUSED_GRANT, ("spec", "binding", "deviceShare", at), message, hint)
