"""Composition root of `fairlead serve`: policies and certificates from files, callers from the command line."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.control.loop.waker import PAUSE_S, REQUESTED_S, wake
from fairlead.kube.access.login import log_in
from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.http.client import Client
from fairlead.logs import RateLimiter
from fairlead.process.replica import Replica, Runnable
from fairlead.process.replica_certificates import CertificateFiles
from fairlead.process.serving_core import ServingCore
from fairlead.process.settings import AllowedCallers, Settings
from fairlead.process.settings_file import SETTINGS_S, SettingsFile, SettingsReloader, load_settings
from fairlead.process.tasks import LeaderTasks, every, told_to_stop
from fairlead.webhook.extender.call import Caller, Verb
from fairlead.webhook.extender.callers import longest_bind_s
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.serving.policy_files import PolicyFolder
from fairlead.webhook.serving.reloader import PolicyReloader

LOG: Final = logging.getLogger(__name__)


class ListedCallers:
    """Callers that the command line lists."""

    identity_error = None

    def __init__(self, listed: Mapping[str, AllowedCallers | None], reloader: PolicyReloader) -> None:
        self._listed, self._reloader = listed, reloader

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Return the caller with this certificate name; None if it may not call that verb."""
        if name not in self._listed:
            return None
        allowed = self._listed[name]
        if allowed is None:
            # Also without a policy: a scheduler that is wired to us binds its pods even after its last policy is gone.
            schedulers = self._reloader.schedulers | {DEFAULT_SCHEDULER_NAME}
        else:
            schedulers = frozenset(one for one, verbs in allowed.items() if verb in verbs)
        if not schedulers:
            return None
        state = self._reloader.state
        if state is None:
            return Caller(schedulers=schedulers, wants_all_reasons=True)
        hold_s, ignoring = state.policies.hold_s, state.policies.with_ignore_entry
        return Caller(
            schedulers=schedulers,
            # If the scheduler has no such entry, the policies that it is for decide nothing, and no call is compared.
            ignore_entry=not ignoring.isdisjoint(schedulers),
            wants_all_reasons=True,
            bind_timeout_s=longest_bind_s(schedulers, hold_s) if hold_s else None,
        )


class _Wakes:
    """Wake-ups of members of groups: no leader does it for a process that is alone."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._requested = asyncio.Event()
        self._rate_limiter = RateLimiter()

    def request(self) -> None:
        """Wake rejected pods soon."""
        self._requested.set()

    async def run(self) -> None:
        """Wake pods when it is requested, until cancelled. Without the right to, they wait for another event."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            pause_s = REQUESTED_S
            try:
                await wake(self._client, self._namespace, datetime.now(UTC))
            except ClusterError as error:
                if (more := self._rate_limiter.allow("wake")) is not None:
                    LOG.warning("pods.not_woken", extra={"error": str(error), **more})
                if not isinstance(error, ForbiddenError):
                    self.request()
                    pause_s = PAUSE_S
            await asyncio.sleep(pause_s)


class StandaloneReplica:
    """Components of `fairlead serve`."""

    def __init__(self, settings: Settings, client: Client, file: SettingsFile | None = None) -> None:
        """`file`: the settings, of which `prometheus` and `maxPolicies` apply; None for none."""
        self.file = file or SettingsFile(None)
        self.core = ServingCore(settings, client, "files", is_alone=True)
        self._use_servers()
        self._wakes = _Wakes(client, settings.namespace)
        self.core.groups.wake = self._wakes.request
        self.settings_reloader = SettingsReloader(self.file, self._use_servers)
        tasks = LeaderTasks(self.core.capabilities, lambda: True)
        self.policies = policies = PolicyFolder(settings.policies, self.core.reloader, self.core.last_good)
        self.replica = Replica(
            self.core,
            ListedCallers(settings.callers, self.core.reloader),
            CertificateFiles(Tls(settings.tls)),
            policies,
            [
                Runnable(every(SETTINGS_S, self.settings_reloader.reload)),
                Runnable(tasks.run, stop=tasks.stop),
                Runnable(self._wakes.run),
            ],
            faults=lambda: {**policies.faults, **self.settings_reloader.faults},
        )

    def _use_servers(self) -> None:
        """Ask the servers of the settings, and compile as many policies as they allow against their names."""
        servers, policies = self.file.settings.prometheus, self.core.policies
        self.core.use_settings(self.file.settings)
        options = replace(policies.options, servers={one.name: one.max_entries for one in servers})
        if options != policies.options:
            policies.set_compile_options(options)


async def serve(settings: Settings) -> None:
    """Serve until a signal. Raises SettingsError if the settings cannot be used."""
    file = load_settings(settings.settings)
    async with Client(log_in(settings.kubeconfig, settings.context)) as client:
        await StandaloneReplica(settings, client, file).replica.run(told_to_stop())
