"""The composition root of `fairlead serve`: policies and certificates from files, callers from the command line."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.kube.access.access import find_access
from fairlead.kube.http.client import Client
from fairlead.process.replica import AGAIN_S, Replica
from fairlead.process.settings import Settings
from fairlead.process.tasks import Work, every, told_to_stop
from fairlead.webhook.extender.call import Caller, Verb
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.serving.policy_files import PolicyFiles, Scan

LOG: Final = logging.getLogger(__name__)
_FILES_S: Final = 1.0


class StandaloneReplica(Replica):
    """One process."""

    def __init__(self, settings: Settings, client: Client) -> None:
        super().__init__(settings, client, Tls(settings.tls), "files")
        self.callers = settings.callers
        self.folder = settings.policies
        self.files = PolicyFiles(settings.policies)
        self.scan = Scan({}, {})
        self.lost: Mapping[str, Any] = {}

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Who has a certificate of this name; None if nothing of that is for him."""
        if name not in self.callers:
            return None
        allowed = self.callers[name]
        if allowed is None:
            # Also without a policy: pods of a scheduler that is wired to us must be bound when its last policy went.
            schedulers = self.current.schedulers | {DEFAULT_SCHEDULER_NAME}
        else:
            schedulers = frozenset(one for one, verbs in allowed.items() if verb in verbs)
        return Caller(schedulers=schedulers, wants_all_reasons=True) if schedulers else None

    async def prepare(self) -> None:
        """Read the policies. Raises OSError."""
        self.take(await asyncio.to_thread(self.files.scan))
        self.policies.warm()

    def works(self) -> Sequence[Work]:
        """Policies are served, and looked for."""
        return [self._serve_policies, every(_FILES_S, self.look_for_policies)]

    def take(self, scan: Scan) -> None:
        """Tell of policies that are others than before."""
        before, known, faults = self.scan.policies, self.parts.faults, scan.faults
        for name in before.keys() - scan.policies.keys():
            self.current.remove(name)
        for name, obj in scan.policies.items():
            if before.get(name) is not obj:
                self.current.put(obj)
        for file, fault in faults.items():
            if known.get(file) != fault:
                LOG.warning("policy_file.invalid", extra={"file": file, "error": fault})
        for file in known.keys() - faults.keys():
            LOG.info("policy_file.valid", extra={"file": file})
        self.scan, self.parts.faults = scan, faults

    async def look_for_policies(self) -> None:
        """Read the folder again."""
        try:
            scan = await asyncio.to_thread(self.files.scan)
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
            scan = Scan(self.scan.policies, {**self.scan.faults, str(self.folder): fault}, unknown=True)
        self.take(self._with_lost(scan))

    async def _serve_policies(self) -> None:
        """Those that were kept have to be known before one is met that does not compile."""
        while (kept := await self.revisions.load()) is None:
            await asyncio.sleep(AGAIN_S)
        self.policies.last_good = kept
        elsewhere = {name: one.obj for (name, _), one in kept.items() if name not in self.scan.policies}
        if not self.scan.unknown:  # they went while nobody was there
            for name in elsewhere:
                self.revisions.forget(name)
        elif elsewhere:  # nobody knows what those files held
            self.lost = elsewhere
            LOG.warning("last_good.serving", extra={"policies": sorted(elsewhere)})
        self.take(self._with_lost(self.scan))
        self.current.wake()
        await self.current.run()

    def _with_lost(self, scan: Scan) -> Scan:
        """With what serves in place of files that could never be used; until all can be."""
        if not scan.unknown:
            self.lost = {}
        return Scan({**self.lost, **scan.policies}, scan.faults, scan.unknown)


async def serve(settings: Settings) -> None:
    """Serve until a signal says to stop."""
    async with Client(find_access(settings.kubeconfig, settings.context)) as client:
        await StandaloneReplica(settings, client).run(told_to_stop())
