"""Compiler of policies: from the object of the API to rules that can be evaluated, or to all of its faults."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from fairlead.api import rules as written
from fairlead.api.data import DataEntry
from fairlead.api.devices import DeviceShare
from fairlead.api.errors import FieldPath
from fairlead.api.gangs import Gang
from fairlead.api.selectors import LabelSelector, compile_selector
from fairlead.api.topologies import TopologyFilter, TopologyScore
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cel.check import BOOL, NUMBER, STRING
from fairlead.cel.engine.environment import CONDITION, PROTECTION, RULE, Scope
from fairlead.cooperative import Clock, Steps, TooLongError, drop_references, finish, within
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_compiler import ExpressionCache, ExpressionCompiler
from fairlead.policy.compile.expression_rules import filter_of, score_of
from fairlead.policy.compile.gang_compiler import domain_rule, functions_of, gang_rules, group_texts
from fairlead.policy.compile.model import (
    AnnotationRule,
    CompiledMatch,
    CompiledPolicy,
    DeviceShareRule,
    DomainRule,
    ExpressionRule,
    FilterRule,
    GangRule,
    RuleKind,
    ScoreRule,
    Selector,
)
from fairlead.policy.compile.modes import divided
from fairlead.policy.compile.policy_errors import PolicyError, in_field, too_long
from fairlead.policy.compile.rule_reports import RuleReports
from fairlead.policy.compile.share_compiler import device_filters, device_shares
from fairlead.policy.compile.strategy_rules import StrategyRules, pod_texts_of, pod_type_of
from fairlead.strategies.contract import Filter, Score, Strategy


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of the compiler: what the operator's settings and installation allow."""

    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    """Built-in strategies."""
    annotation_prefixes: tuple[str, ...] = ("fairlead.dev/",)
    custom: Mapping[str, Strategy] = field(default_factory=dict)
    """Custom strategies, which rules name."""
    servers: Mapping[str, int] | None = None
    """Prometheus servers that policies may name, each with the number of different entries of all policies;
    None if that is not known."""
    expression_cache: ExpressionCache | None = field(default=None, compare=False)
    """Cache of compiled expressions, for commands that compile many policies and then exit."""
    clock: Clock = field(default=lambda: 0.0, compare=False)
    """Clock that limits the time of a policy; the default one does not."""
    keeps_written: bool = field(default=False, compare=False)
    """Whether a policy is also kept as it is written: 3.5 KB each, which only commands that compare versions need."""


def compile_policy(
    policy: SchedulerExtenderPolicy, rules: CompileOptions, *, unknown: Collection[str] = ()
) -> CompiledPolicy:
    """Compile without pauses; what uses an `unknown` variable gets no faults. Raises PolicyError."""
    return finish(compile_steps(policy, rules, unknown=unknown))


def compile_steps(
    policy: SchedulerExtenderPolicy,
    rules: CompileOptions,
    *,
    unknown: Collection[str] = (),
    expressions: list[CompiledExpression] | None = None,
) -> Steps[CompiledPolicy]:
    """Compile, pausing after each expression so that calls are served meanwhile. Raises PolicyError at the end.

    Compiled expressions are added to `expressions`, so that a caller that gives up can free them in pieces.
    """
    expressions = [] if expressions is None else expressions
    compiler = _Compiler(policy, rules, unknown, expressions)
    try:
        yield from within(compiler.run(), rules.clock)
        faults = tuple(compiler.faults)
    except TooLongError as error:
        faults = (too_long(error),)
    yield
    if not faults:
        return compiler.result()
    del compiler
    yield from drop_references(expressions)
    raise PolicyError(faults)


class _Compiler:
    def __init__(
        self,
        policy: SchedulerExtenderPolicy,
        rules: CompileOptions,
        unknown: Collection[str],
        expressions: list[CompiledExpression],
    ) -> None:
        self.policy = policy
        self.rules = rules
        data = [entry.name for entry in policy.spec.data]
        self.expressions = ExpressionCompiler(
            data, rules.expression_cache, broken=set(unknown), expressions=expressions
        )
        self.faults = self.expressions.faults
        self.by_strategies = StrategyRules(
            rules.strategies, rules.custom, policy.spec.data, self.faults, [one.name for one in _device_shares(policy)]
        )
        self.reports = RuleReports({entry.name: entry.source for entry in policy.spec.data})
        self.conditions: list[ExpressionRule] = []
        self.filters: list[FilterRule] = []
        self.scores: list[ScoreRule] = []
        self.protections: list[ExpressionRule] = []
        self.annotations: list[AnnotationRule] = []
        self.device_shares: list[DeviceShareRule] = []
        self.gangs: list[GangRule] = []
        self.domain_rules: list[DomainRule] = []

    def run(self) -> Steps[None]:
        spec = self.policy.spec
        for at, entry in enumerate(spec.data):
            self._server(("spec", "data", at, "prometheus", "server"), entry)
        yield from self.expressions.declare(spec.variables)
        for at, condition in enumerate(spec.match.conditions):
            made = yield from self._bool(("spec", "match", "conditions", at), condition, CONDITION, "Condition")
            self.conditions += made
        self.device_shares = yield from device_shares(_device_shares(self.policy), self.expressions)
        self.by_strategies.shares.update({one.name: one.share for one in self.device_shares})
        for at, rule in enumerate(spec.filters):
            yield from self._filter(("spec", "filters", at), rule)
        for by_device in device_filters(self.device_shares, spec.filters):
            self.filters.append(by_device)
            self.reports.add(by_device.name, "Filter", by_device.filter)
        self.gangs = yield from gang_rules(_gangs(self.policy), self.expressions)
        for gang in self.gangs:
            self.reports.add(gang.rule, "Filter", gang.expression, gang.group.paths | gang.size.paths)
        for at, score in enumerate(spec.scores):
            yield from self._score(("spec", "scores", at), score)
        for at, protection in enumerate(spec.preemption.protect):
            made = yield from self._bool(("spec", "preemption", "protect", at), protection, PROTECTION, "Protection")
            self.protections += [replace(one, in_shadow=protection.mode == "Shadow") for one in made]
        for at, annotation in enumerate(spec.binding.annotations if spec.binding else ()):
            yield from self._annotation(("spec", "binding", "annotations", at), annotation)

    def result(self) -> CompiledPolicy:
        spec, metadata = self.policy.spec, self.policy.metadata
        whole = CompiledPolicy(
            name=metadata.name,
            uid=metadata.uid,
            generation=str(metadata.generation) if metadata.generation else spec_hash(self.policy),
            scheduler_name=spec.scheduler_name,
            mode=spec.mode,
            priority=spec.priority,
            match=CompiledMatch(
                None if spec.match.namespaces is None else frozenset(spec.match.namespaces),
                _selector(spec.match.namespace_selector),
                _selector(spec.match.pod_selector),
                tuple(self.conditions),
                spec.match,
            ),
            data=spec.data,
            filters=tuple(self.filters),
            scores=tuple(self.scores),
            protections=tuple(self.protections),
            annotations=tuple(self.annotations),
            device_shares=tuple(self.device_shares),
            gangs=tuple(self.gangs),
            domain_rules=tuple(self.domain_rules),
            publishes=spec.publish == "NodeAffinity",
            rejects_on_failure=spec.failure_policy == "Fail",
            reports=tuple(self.reports.listed),
            written=spec if self.rules.keeps_written else None,
        )
        return divided(whole)

    def _bool(
        self, path: FieldPath, rule: written.MatchCondition | written.Protection, scope: Scope, kind: RuleKind
    ) -> Steps[list[ExpressionRule]]:
        made = yield from self.expressions.compile((*path, "expression"), rule.expression, scope, BOOL)
        if made is None:
            return []
        self.reports.add(rule.name, kind, made)
        return [ExpressionRule(rule.name, made)]

    def _filter(self, path: FieldPath, rule: written.FilterSpec) -> Steps[None]:
        yield path
        expression: CompiledExpression | None = None
        if rule.expression is None:
            by_strategy = self.by_strategies.filter(path, rule)
            if by_strategy is None:
                return
            made: Filter = by_strategy
            if rule.strategy is not None and isinstance(params := rule.strategy[1], TopologyFilter):
                at = (*path, rule.strategy[0])
                domain = yield from domain_rule(at, rule, params, _gangs(self.policy), self.expressions)
                if domain is None:
                    return
                self.domain_rules.append(domain)
        else:
            compiled = yield from self.expressions.compile((*path, "expression"), rule.expression, RULE, BOOL)
            if compiled is None:
                return
            expression = compiled
            reason, resolvable = rule.reason or rule.name, bool(rule.resolvable)
            made = filter_of(compiled, rule.name, reason, resolvable=resolvable)  # type: ignore[assignment]
        self.filters.append(
            FilterRule(
                rule.name,
                made,
                rule.on_error == "Reject",
                made.resolvable if rule.resolvable is None else rule.resolvable,
                expression,
                reason=rule.reason,
                # What no eviction changes is not resolvable whatever the policy says of the rest.
                resolvable_per_verdict=rule.resolvable is None or (rule.resolvable and bool(made.reads.devices)),
                in_shadow=rule.mode == "Shadow",
            )
        )
        self.reports.add(rule.name, "Filter", expression or made)

    def _score(self, path: FieldPath, rule: written.ScoreSpec) -> Steps[None]:
        yield path
        expression: CompiledExpression | None = None
        texts: dict[str, CompiledExpression] = {}
        if rule.expression is None:
            texts, are_sound = yield from pod_texts_of(path, rule, self.expressions)
            functions = {name: pod_type_of(rule.name, one) for name, one in texts.items()}
            if rule.strategy is not None and isinstance(params := rule.strategy[1], TopologyScore):
                at = (*path, rule.strategy[0])
                group = yield from group_texts(at, params, _gangs(self.policy), self.expressions)
                if group is None:
                    return
                functions = functions_of(rule.name, group)
                texts = {name: one for name, one in group._asdict().items() if one is not None}
            by_strategy = self.by_strategies.score(path, rule, functions) if are_sound else None
            if by_strategy is None:
                return
            made: Score = by_strategy
        else:
            compiled = yield from self.expressions.compile((*path, "expression"), rule.expression, RULE, NUMBER)
            if compiled is None:
                return
            expression = compiled
            made = score_of(compiled, rule.name)  # type: ignore[assignment]
        normalize = rule.normalize or made.normalize
        in_shadow = rule.mode == "Shadow"
        self.scores.append(
            ScoreRule(rule.name, made, rule.weight, normalize, expression, (*texts.values(),), in_shadow=in_shadow)
        )
        self.reports.add(rule.name, "Score", expression or made)

    def _server(self, path: FieldPath, entry: DataEntry) -> None:
        """Add a fault for a Prometheus server that the settings do not have."""
        servers = self.rules.servers
        if entry.prometheus is None or servers is None or entry.prometheus.server in servers:
            return
        there = f"there are {', '.join(sorted(servers))}" if servers else "the operator's settings have none"
        self.faults.append(in_field(path, f'there is no server "{entry.prometheus.server}"', there))

    def _annotation(self, path: FieldPath, rule: written.Annotation) -> Steps[None]:
        if not rule.key.startswith(self.rules.annotation_prefixes):
            allowed = " or ".join(self.rules.annotation_prefixes)
            hint = f"it must begin with {allowed}" if allowed else "the operator's settings allow no annotations"
            self.faults.append(in_field((*path, "key"), f"{rule.key!r} is not allowed", hint))
        made = yield from self.expressions.compile((*path, "expression"), rule.expression, RULE, STRING)
        if made is not None:
            in_shadow = rule.mode == "Shadow"
            self.annotations.append(AnnotationRule(rule.key, made, rule.on_error == "Reject", in_shadow=in_shadow))
            self.reports.add(rule.key, "Annotation", made)


def _gangs(policy: SchedulerExtenderPolicy) -> tuple[Gang, ...]:
    return policy.spec.binding.gang if policy.spec.binding else ()


def _device_shares(policy: SchedulerExtenderPolicy) -> tuple[DeviceShare, ...]:
    return policy.spec.binding.device_share if policy.spec.binding else ()


def _selector(written_selector: LabelSelector | None) -> Selector | None:
    return None if written_selector is None else compile_selector(written_selector)


def spec_hash(policy: SchedulerExtenderPolicy) -> str:
    """Return a hash that serves as the generation of a policy from a file."""
    text = json.dumps(policy.spec.model_dump(mode="json", by_alias=True), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
