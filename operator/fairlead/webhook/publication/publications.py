"""Publications: node affinity that the policies which serve imply, reported to the leader, which writes it."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from fairlead.cooperative import Pauses, Steps
from fairlead.logs import FaultError
from fairlead.metrics import Labels, Metrics
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.published_policies import publication_steps
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import PublicationState, ReplicaState
from fairlead.webhook.capability import Capability

LOG: Final = logging.getLogger(__name__)
_Generation: TypeAlias = tuple[str, str]
"""UID and generation of a policy."""


class _Published(NamedTuple):
    policy: CompiledPolicy
    vocabulary: Vocabulary
    """Vocabulary that it was computed with."""
    publication: PublicationState


class Publications(Capability):
    """Publications of a replica."""

    def __init__(self) -> None:
        self._vocabulary = Vocabulary()
        self._policies: Mapping[_Generation, CompiledPolicy] = {}
        self._published: dict[_Generation, _Published] = {}
        self._requested = asyncio.Event()

    def use_settings(self, settings: OperatorSettings) -> None:
        """Leave out labels that nodes get after they have joined; until that is computed, what was said stays."""
        self._vocabulary = Vocabulary(late_labels=tuple(settings.published_affinity.late_labels))
        self._requested.set()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Compute what these policies publish; those that served before are known."""
        published = [one for one in policies if one.publishes and one.enforced and not one.placeholder]
        self._policies = {(one.uid, one.generation): one for one in published}
        self._published = {key: self._published[key] for key in self._policies.keys() & self._published.keys()}
        try:
            await self._compute()
        except asyncio.CancelledError:
            self._requested.set()  # they serve without, and it goes on
            raise

    async def run(self) -> None:
        """Compute what new settings ask for, and what policies did not wait for, until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self._compute()

    async def _compute(self) -> None:
        """Compute what is not known, in stretches between which calls are answered."""
        for key, policy in self._policies.items():
            while (known := self._published.get(key)) is None or known.vocabulary != self._vocabulary:
                vocabulary = self._vocabulary
                pauses = Pauses(self._publication(policy, vocabulary))
                for _ in pauses:
                    await asyncio.sleep(0)
                if key not in self._policies:  # it serves no more
                    break
                self._published[key] = _Published(policy, vocabulary, pauses.result)

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with what each policy publishes."""
        if not self._published:
            return state
        policies = {
            name: replace(one, publication=found.publication)
            if (found := self._published.get((one.uid, one.serving))) is not None
            else one
            for name, one in state.policies.items()
        }
        return replace(state, policies=policies)

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.gauge(
            "fairlead_published_terms",
            "Alternatives of the node affinity that a policy publishes.",
            "policy",
            ask=self._terms,
        )

    def _terms(self) -> Mapping[Labels, float]:
        return {
            (policy.name,): len((publication.policy or {}).get("terms", ()))
            for policy, _, publication in self._published.values()
        }

    def _publication(self, policy: CompiledPolicy, vocabulary: Vocabulary) -> Steps[PublicationState]:
        try:
            found = yield from publication_steps(policy, vocabulary)
        except Exception as error:  # the policy serves all the same; nothing published is always sound
            LOG.exception("publication.fault", exc_info=FaultError(error), extra={"policy": policy.name})
            return PublicationState(left_out=((policy.name, "what it publishes could not be computed"),))
        unknown = found.unknown_match
        return PublicationState(
            policy=None if found.policy is None else dict(found.policy),
            left_out=tuple((one.rule, one.reason) for one in found.left_out),
            unknown_match="" if unknown is None else f"{unknown.rule} reads {unknown.reason}",
        )
