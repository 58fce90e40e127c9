"""Issuer of schedulers' certificates: carries out the plan of `pki.rotation`, step by step; only on the leader."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fairlead.control.decide.drift import Drift, DriftLog
from fairlead.kube.watch.secrets import Secret, Secrets
from fairlead.pki import authority as authorities
from fairlead.pki.authority import Authority, AuthorityError, Phase, scheduler_data
from fairlead.pki.rotation import ROTATE, Advance, Issue, ReplicaTrust, SchedulerTrust, WaitFor, plan

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateStep:
    """Result of one step."""

    authority: Authority
    """Schedulers are rendered with its `server_ca_bundle`."""
    pending_reason: WaitFor | None


@dataclass(frozen=True, slots=True)
class SchedulerCertificates:
    """Certificates of one operator's schedulers."""

    secrets: Secrets
    name: str
    """Name of the authority's Secret."""
    secret_of: Callable[[str], str]
    """Returns the name of a scheduler's Secret."""
    labels_of: Callable[[str], Mapping[str, str]]
    """Returns the labels of a scheduler's Secret."""
    now: Callable[[], datetime]
    drifts: DriftLog = field(default_factory=DriftLog)

    async def ensure(self, authority: Authority | None = None) -> Secret:
        """Return the authority's Secret. The first replica creates it if it is missing, from `authority` if it can."""
        return await self.secrets.ensure(
            self.name, lambda: (authority or Authority(authorities.new(self.now()))).data()
        )

    async def step(
        self,
        rolled: Mapping[str, str],
        replicas: Mapping[str, ReplicaTrust | None],
        current: Authority | None = None,
        paused: Collection[str] = (),
    ) -> CertificateStep:
        """Do what can be done now. `rolled` has the authorities that the pods of each scheduler were started with.

        Paused schedulers do not get their first certificate; an existing one is renewed. Raises AuthorityError if the
        Secret has no usable authority, and ConflictError if others wrote it meanwhile; the next reconcile sees that.
        """
        kept = await self.ensure(current)
        try:
            authority = authorities.read(kept.data)
        except AuthorityError as error:
            raise AuthorityError(f"Secret {kept.metadata.namespace}/{self.name}, {error}") from None
        secrets = {name: await self.secrets.get(self.secret_of(name)) for name in rolled}
        while True:
            schedulers = {
                name: SchedulerTrust.read(one.data if one else None, authority, rolled[name])
                for name, one in secrets.items()
            }
            requested = ROTATE in kept.metadata.annotations
            actions = plan(authority, schedulers, replicas, self.now(), requested=requested)
            advance = next((one for one in actions if isinstance(one, Advance)), None)
            if advance is None:
                break
            authority = authority.becomes(advance.phase, lambda: authorities.new(self.now()))
            drop = ROTATE if advance.phase is Phase.INTRODUCED else ""
            kept = await self.secrets.replace(kept, authority.data(), drop=drop)
            LOG.info("authority.rotated", extra={"phase": advance.phase.value, "reason": advance.why})
        for action in actions:
            if isinstance(action, Issue) and (secrets[action.scheduler] or action.scheduler not in paused):
                await self._issue(action.scheduler, secrets[action.scheduler], authority)
                if rolled[action.scheduler] and not schedulers[action.scheduler].is_ours:
                    state = "missing" if secrets[action.scheduler] is None else "edited"
                    text = f"Secret {self.secret_of(action.scheduler)} was {state}"
                    self.drifts.record(Drift(action.scheduler, "Secret", text))
                LOG.info("certificate.issued", extra={"scheduler": action.scheduler, "reason": action.why})
        waits = next((one for one in actions if isinstance(one, WaitFor)), None)
        return CertificateStep(authority, waits)

    async def _issue(self, scheduler: str, seen: Secret | None, authority: Authority) -> None:
        data = scheduler_data(authority, scheduler, self.now())
        if seen is None:
            name, labels = self.secret_of(scheduler), self.labels_of(scheduler)
            await self.secrets.ensure(name, lambda: data, labels=labels)
        else:
            await self.secrets.replace(seen, data)
