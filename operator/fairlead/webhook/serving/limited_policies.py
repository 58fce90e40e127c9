"""Policies whose measured entries are within the limits, and what serves in place of the others."""

from collections.abc import Iterable, Iterator, Mapping

from fairlead.policy.compile.entry_limits import EntryLimits
from fairlead.policy.compile.model import CompiledPolicy, in_mode
from fairlead.policy.compile.placeholder import generation_of, placeholder_policy
from fairlead.webhook.serving.policy_status import Obj, PolicyStatus, Reason


class LimitedPolicies:
    """Selection of the policies that serve. It remembers the last generation of each that was within the limits."""

    def __init__(self) -> None:
        self.refused: Mapping[str, PolicyStatus] = {}
        """Status of each policy whose newest generation is beyond a limit, by name."""
        self._served: Mapping[str, CompiledPolicy] = {}

    def select(
        self, policies: Iterable[tuple[CompiledPolicy, Obj]], limits: Mapping[str, int] | None
    ) -> list[CompiledPolicy]:
        """Return what serves of policies with their objects; `limits` are the entries by server, None if not known."""
        taken, served, refused = EntryLimits(limits), dict[str, CompiledPolicy](), dict[str, PolicyStatus]()
        selected = list[CompiledPolicy]()
        # The oldest first, so that a new policy takes no room from another one.
        for policy, obj in sorted(policies, key=lambda one: (_created(one[1]), one[0].order)):
            if (fault := taken.take(policy)) is None:
                served[policy.name] = policy
                selected.append(policy)
                continue
            # The generation before it serves as for any policy that does not compile, if its own entries find room.
            before = next((one for one in self._before(policy) if taken.take(one) is None), None)
            if before is not None:
                served[policy.name] = before
            generation = None if before is None else before.generation
            reason: Reason = "NothingServes" if before is None else "LastGoodServes"
            status = PolicyStatus(policy.name, generation_of(obj), generation, reason, str(fault), policy.uid)
            refused[policy.name] = status
            selected.append(before or placeholder_policy(obj))
        self.refused, self._served = refused, served
        return selected

    def _before(self, policy: CompiledPolicy) -> Iterator[CompiledPolicy]:
        before = self._served.get(policy.name)
        if before is not None and before.uid == policy.uid and before is not policy and not before.placeholder:
            yield in_mode(before, "Enforce")  # nothing is beyond a limit that is not enforced


def _created(obj: Obj) -> str:
    """Return when a policy was created; policies of files do not say it."""
    metadata = obj.get("metadata")
    return str(metadata.get("creationTimestamp") or "") if isinstance(metadata, Mapping) else ""
