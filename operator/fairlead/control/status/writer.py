"""Writer of the statuses of policies, which writes only what changed.

A status that could not be written, or in which only counters changed since a moment ago, stays pending: its writer
tries again. There is one writer for each scheduler.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fairlead.api.names import API_VERSION, KIND
from fairlead.control.decide.desired import Obj, PolicyIndex, is_paused
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.reconcile.result import ReconcileResult
from fairlead.control.status.build import AGES_S, COUNTERS_S, StatusInputs, build_status, status_change
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.events import EventRecorder, ready_event
from fairlead.control.status.lint_cache import Warnings
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.resources import POLICIES, decode_object
from fairlead.logs import RateLimiter
from fairlead.render.object_names import STATUS_MANAGER

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, kw_only=True)
class StatusWriter:
    """Writer of the statuses of all policies."""

    policy_index: PolicyIndex
    replicas: ReplicaClient
    events: EventRecorder
    missing_permissions: MissingPermissions
    is_leader: Callable[[], bool]
    warnings: Callable[[Obj, Callable[[], None]], Warnings | None]
    """Returns the warnings of lint; None while it runs, and calls back at its end."""
    crd_fields: CrdFields
    unreviewed: UnreviewedGenerations
    admission_port: int
    not_installed: Callable[[], str | None]
    """Returns why published node affinity gets to no pod."""
    now: Callable[[], datetime]
    _counted: dict[str, float] = field(default_factory=dict)
    _rate_limiter: RateLimiter = field(default_factory=RateLimiter)

    async def write(self, scheduler: str, result: ReconcileResult, on_linted: Callable[[], None]) -> bool:
        """Write the statuses of a scheduler's policies that changed; return whether none is pending.

        `on_linted` is called when one that waits for lint can be written.
        """
        if not self.is_leader():
            return False
        names = [one["metadata"]["name"] for one in self.policy_index.policies_of(scheduler)]
        done = [await self._write_one(scheduler, name, result, on_linted) for name in names]
        return all(done)

    async def _write_one(
        self, scheduler: str, name: str, result: ReconcileResult, on_linted: Callable[[], None]
    ) -> bool:
        """Return whether the status of a policy is up to date."""
        policy = self.policy_index.policies.get(name)
        if policy is None:
            return True
        try:
            is_leaving = "deletionTimestamp" in policy["metadata"]
            return is_leaving or await self._write(scheduler, policy, result, on_linted)
        except NotFoundError:
            return True  # an event or a resync follows
        except ConflictError:
            return False  # the policy changed meanwhile
        except ClusterError as error:
            if (more := self._rate_limiter.allow(type(error).__name__)) is not None:
                LOG.warning("status.write_failed", extra={"policy": name, "error": str(error), **more})
            return False
        except Exception:  # retried with the next reconcile; the other policies get their statuses
            LOG.exception("status.fault", extra={"policy": name})
        return True

    async def _write(self, scheduler: str, policy: Obj, result: ReconcileResult, on_linted: Callable[[], None]) -> bool:
        now, warnings = self.now(), self.warnings(policy, on_linted)
        about = StatusInputs(
            policy=policy,
            states=self.replicas.states,
            result=result,
            missing_permissions=self.missing_permissions.messages,
            paused=is_paused(self.policy_index.policies_of(scheduler)),
            crd_outdated=self.crd_fields.describe_loss(policy),
            warnings=warnings or (),
            not_installed=self.not_installed(),
            unreviewed_by=self.admission_port if policy["metadata"]["name"] in self.unreviewed else None,
        )
        name, before, after = policy["metadata"]["name"], policy.get("status", {}), build_status(about, now)
        differs = status_change(before, after)
        if not differs:
            return warnings is not None
        least_s = {"ages": AGES_S, "counters": COUNTERS_S, "all": 0.0}[differs]
        if now.timestamp() - self._counted.get(name, 0.0) < least_s:
            return False
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": after}
        at = POLICIES.named("", name, "status")
        made = await self.events.client.apply(at, body, decode_object, manager=STATUS_MANAGER, force=True)
        self._counted[name] = now.timestamp()
        self.policy_index.record_status(policy, made)
        if (event := ready_event(before, after)) is not None:
            await self.events.record(policy, *event, "Reconcile", now)
        return warnings is not None
