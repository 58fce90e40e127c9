"""What lint warns of, for the status of a policy; looked for once for each generation."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any, Final

from fairlead.api.errors import render_path
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.pausing import Share
from fairlead.policy.compile import Rules
from fairlead.policy.inspect import Inspected, inspect_steps
from fairlead.policy.reasons import PolicyWarning

LOG: Final = logging.getLogger(__name__)
_MOST: Final = 1000


@dataclass(slots=True, eq=False)
class Linted:
    """Reasons and sentences."""

    model: type[SchedulerExtenderPolicy]
    rules: Callable[[], Rules]
    share: Share = field(default_factory=lambda: Share(perf_counter))
    _known: dict[tuple[str, int, int], list[tuple[str, str]]] = field(default_factory=dict)

    def __call__(self, policy: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Of a policy as the API server has it."""
        metadata, rules = policy["metadata"], self.rules()
        key = (metadata["uid"], metadata["generation"], id(rules))
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = []  # of what fails nothing is said, and it is not tried again
            try:
                found = self._looked_at(policy, rules).warnings
            except Exception:
                LOG.exception("a policy cannot be looked at", extra={"policy": metadata.get("name", "")})
                return self._known[key]
            self._known[key] = [(one.reason.value, _said(one)) for one in found if one.severity == "warning"]
        return self._known[key]

    def _looked_at(self, policy: Mapping[str, Any], rules: Rules) -> Inspected:
        """In pieces: those who serve are other threads of the same process."""
        steps = inspect_steps(policy, self.model, rules)
        while True:
            began = self.share.clock()
            try:
                next(steps)
            except StopIteration as done:
                self.share.pause(began)
                found: Inspected = done.value
                return found
            sleep(self.share.pause(began))


def _said(one: PolicyWarning) -> str:
    return f"{render_path(one.path)}: {one.message}" + (f"; {one.hint}" if one.hint else "")
