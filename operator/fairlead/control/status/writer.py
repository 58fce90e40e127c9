"""Writer of the statuses of policies, which writes only what changed.

A status that could not be written, or in which only counters changed since a moment ago, stays pending: its writer
tries again. Each is written only in place of the version that it was decided from, as it may hold counters that are
added.
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
from fairlead.control.status.counter_turns import CounterTurns
from fairlead.control.status.crd_fields import CrdFields
from fairlead.control.status.events import EventRecorder, ready_event
from fairlead.control.status.lint_cache import Warnings
from fairlead.control.status.unreviewed import UnreviewedGenerations
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.resources import POLICIES, decode_object
from fairlead.logs import RateLimiter
from fairlead.render.object_names import STATUS_MANAGER

LOG: Final = logging.getLogger(__name__)
_AGAIN_S: Final = 1.0


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
    time: Callable[[], float]
    """Returns monotonic seconds."""
    later: Callable[[float, Callable[[], None]], object]
    """Calls a function after so many of them."""
    _written: dict[str, float] = field(default_factory=dict)
    """Time at which each status was last written."""
    _held: dict[str, tuple[StatusInputs, float]] = field(default_factory=dict)
    """Inputs of each status in which only counters changed, and until when it is not written for that alone."""
    _turns: CounterTurns = field(default_factory=CounterTurns)
    _rate_limiter: RateLimiter = field(default_factory=RateLimiter)

    async def write(self, scheduler: str, result: ReconcileResult, wake: Callable[[], None]) -> bool:
        """Write the statuses of a scheduler's policies that changed; return whether none is pending.

        `wake` is called when one that waits for lint, for its turn, or for news of its policy can be written.
        """
        if not self.is_leader():
            return False
        policies = self.policy_index.policies_of(scheduler)
        paused = is_paused(policies)
        done = [await self._write_one(one["metadata"]["name"], result, wake, paused=paused) for one in policies]
        return all(done)

    async def _write_one(self, name: str, result: ReconcileResult, wake: Callable[[], None], *, paused: bool) -> bool:
        """Return whether the status of a policy is up to date."""
        policy = self.policy_index.policies.get(name)
        if policy is None or "deletionTimestamp" in policy["metadata"]:
            self._forget(name)
            return True
        try:
            return await self._write(policy, result, wake, paused=paused)
        except NotFoundError:
            return True  # an event or a resync follows
        except ConflictError:
            self.later(_AGAIN_S, wake)  # the policy changed meanwhile, as the watch will tell
            return False
        except ClusterError as error:
            if (more := self._rate_limiter.allow(type(error).__name__)) is not None:
                LOG.warning("status.write_failed", extra={"policy": name, "error": str(error), **more})
            return False
        except Exception:  # retried with the next reconcile; the other policies get their statuses
            LOG.exception("status.fault", extra={"policy": name})
        return True

    async def _write(self, policy: Obj, result: ReconcileResult, wake: Callable[[], None], *, paused: bool) -> bool:
        now, warnings = self.now(), self.warnings(policy, wake)
        about = StatusInputs(
            policy=policy,
            states=self.replicas.states,
            result=result,
            missing_permissions=self.missing_permissions.messages,
            paused=paused,
            crd_outdated=self.crd_fields.describe_loss(policy),
            warnings=warnings or (),
            not_installed=self.not_installed(),
            unreviewed_by=self.admission_port if policy["metadata"]["name"] in self.unreviewed else None,
        )
        name, before = policy["metadata"]["name"], policy.get("status", {})
        held = self._held.get(name)
        if held is not None and self.time() < held[1] and held[0] == about:
            return False
        after = build_status(about, now)
        differs = status_change(before, after)
        if not differs:
            self._forget(name)
            return warnings is not None
        if differs != "all" and (wait_s := self._wait_s(name, differs, wake)):
            self._held[name] = about, self.time() + wait_s
            return False
        self._forget(name)
        metadata = {"name": name, "resourceVersion": policy["metadata"]["resourceVersion"]}
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": after}
        at = POLICIES.named("", name, "status")
        made = await self.events.client.apply(at, body, decode_object, manager=STATUS_MANAGER, force=True)
        self._written[name] = self.time()
        self.policy_index.record_status(policy, made)
        if (event := ready_event(before, after)) is not None:
            await self.events.record(policy, *event, "Reconcile", now)
        return warnings is not None

    def _wait_s(self, name: str, differs: str, wake: Callable[[], None]) -> float:
        """Return how long not to write a status in which only counters or ages changed."""
        last, least_s = self._written.get(name), AGES_S if differs == "ages" else COUNTERS_S
        if last is not None and (wait_s := last + least_s - self.time()) > 0:
            return wait_s
        if wait_s := self._turns.wait_s(name, self.time()):
            self.later(wait_s, wake)
        return wait_s

    def _forget(self, name: str) -> None:
        self._held.pop(name, None)
        self._turns.give_up(name)
