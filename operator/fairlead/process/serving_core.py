"""Core of a serving process: the mirror, the serving policies, and their metrics."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter_ns, thread_time
from typing import Final

from fairlead.kube.http.client import Client
from fairlead.metrics import PROCESS, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.process.settings import ServingSettings
from fairlead.render.operator_settings import OperatorSettings
from fairlead.strategies.registry import load_strategies
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.capability import Capability
from fairlead.webhook.decisions.decision_log import DecisionLog
from fairlead.webhook.domains.group_domains import GroupDomains
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.holding.group_holding import GroupHolding
from fairlead.webhook.https.refusals import Refusals
from fairlead.webhook.https.wall_clock import TimeOfDay
from fairlead.webhook.learning.learning import Learning
from fairlead.webhook.measured_data.measured_data import MeasuredData
from fairlead.webhook.publication.affinity_watch import AffinityWatch
from fairlead.webhook.publication.publications import Publications
from fairlead.webhook.serving.last_good import LastGoodStore, RevisionClient
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals
from fairlead.webhook.shadow.shadow import Shadow

LOG: Final = logging.getLogger(__name__)


class ServingCore:
    """Components that `fairlead serve` and `fairlead operate` share."""

    def __init__(self, settings: ServingSettings, client: Client, source: str, *, is_alone: bool = False) -> None:
        """`source`: where the policies come from; it labels their last good generations.

        `is_alone`: no other replica leads or follows, so that what rules learn is not published.
        """
        self.settings = settings
        self.client = client
        self.metrics = Metrics(collectors=PROCESS)
        self.now = TimeOfDay()
        self.strategies: Final = load_strategies(settings.custom)
        if settings.custom:
            LOG.info("strategies.loaded", extra={"strategies": sorted(settings.custom)})
        self.mirror = Mirror(self.now)
        self.mirror_feed = MirrorFeed(client, self.mirror)
        self.last_good = LastGoodStore(RevisionClient(client, settings.namespace), source)
        self.policies = PolicyStore(
            self.strategies.model,
            CompileOptions(self.strategies.built_in, custom=self.strategies.custom, clock=thread_time),
            on_good=self.last_good.keep,
            on_removed=self.last_good.forget,
        )
        self.capabilities: Final[list[Capability]] = []
        self.reloader = PolicyReloader(self.policies, self.mirror, self.mirror_feed.set_interest, self.capabilities)
        self.now.went_back = self.reloader.rebuild
        self.api_requests = self.metrics.counter(
            "fairlead_api_requests",
            "Requests to the API server, by the verb and the status of the answer, or unreachable.",
            "verb",
            "code",
        )
        client.on_response = self.api_requests.add
        self.refusals: Final = Refusals(self.metrics)
        errors = self.metrics.counter(
            "fairlead_rule_errors",
            "Evaluations of a rule that ended with an error; its onError decides then.",
            "policy",
            "rule",
        )
        faults = self.metrics.counter(
            "fairlead_rule_internal_errors",
            "Evaluations of a rule that ended with an internal error of Fairlead; the log has the traceback once.",
            "policy",
            "rule",
        )
        self.rule_errors = RuleErrorTotals(
            lambda policy, rule, count: errors.add(policy, rule, amount=count),
            lambda policy, rule, count: faults.add(policy, rule, amount=count),
        )
        settings_folder = Path() if settings.settings is None else settings.settings.parent
        data = MeasuredData(
            client,
            self.mirror,
            settings.namespace,
            settings_folder,
            serving=self._serving,
            now=self.now,
            is_synced=self._is_synced,
        )
        grants = DeviceGrants(client, self.mirror, settings.namespace, self._serving)
        self.binder: Final = grants.binder
        published_in = None if is_alone else settings.namespace
        self.groups: Final = GroupHolding(client, self.mirror, published_in, self.now, perf_counter_ns, grants)
        self.binder.groups = self.groups.binds
        self.reloader.groups = self.groups
        domains = GroupDomains(client, settings.namespace, grants)
        self.groups.domains = domains.views
        learning = Learning(client, self.mirror, published_in, self.now, self._is_synced)
        self.affinity_watch: Final = AffinityWatch(client, self.mirror, published_in, self.state, self.now)
        self.listeners: Final = Listeners()
        self.decisions: Final = self._decision_log() if settings.keeps_decisions else None
        listed = self.mirror_feed.has_annotations
        noted = {} if self.decisions is None else {"note_effects": self.decisions.note_effects}
        self.shadow: Final = Shadow(
            self.mirror,
            self.listeners,
            self.state,
            self.now,
            settings.timeout_s,
            listed,
            **noted,
            has_values=lambda: learning.is_listed and not data.feed.awaits_values,
        )
        watch = self.affinity_watch
        for capability in (data, grants, domains, learning, self.groups, Publications(), watch, self.shadow):
            self.add(capability)

    def _decision_log(self) -> DecisionLog:
        settings = self.settings
        made = DecisionLog(self.mirror, self.now, settings.replica, settings.logged_decisions)
        self.listeners.add(made.record)
        self.add(made)
        return made

    def add(self, capability: Capability) -> None:
        """Add a capability, before the process runs."""
        self.capabilities.append(capability)
        capability.register(self.metrics)

    def use_settings(self, settings: OperatorSettings) -> None:
        """Use these settings of the operator from now on, as far as every serving process does."""
        self.policies.set_max_policies(settings.max_policies)
        for capability in self.capabilities:
            capability.use_settings(settings)

    def _serving(self) -> Sequence[CompiledPolicy]:
        return () if self.reloader.state is None else self.reloader.state.policies.policies

    def _is_synced(self, kind: str) -> bool:
        """Return whether a kind is listed, or with "" all of them."""
        return self.mirror_feed.reflectors[kind].state.synced if kind else self.mirror_feed.synced

    def state(self) -> ServingState | None:
        """Return the serving state; None until everything was listed once."""
        return self.reloader.state if self.mirror_feed.synced else None

    def add_rule_errors(self) -> None:
        """Add the rule errors counted since the last call to the totals."""
        serving = {name: state.serving for name, state in self.policies.states.items()}
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.rule_errors.add(self.reloader.tally.drain(), serving, now)
