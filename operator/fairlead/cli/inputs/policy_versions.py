"""Versions of policies that a command simulates: what decides, and what is in shadow. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlead.cli.inputs.cluster_access import PolicyOption
from fairlead.cli.inputs.created_pods import published_by
from fairlead.cli.inputs.live_policies import LivePolicy, compiled_of, unknown_rules
from fairlead.cli.inputs.shadow_effects import RulesInShadow, shadow_rules
from fairlead.policy.affinity.published_parts import AffinityByScheduler
from fairlead.policy.compile.modes import as_enforced
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.nodes.polls import Poll, Reading
from fairlead.simulation.visibility import ObjectKind, SkippedRule, judgeable


@dataclass(frozen=True, slots=True)
class ShadowVersion:
    """A version of policies as if all that is in shadow in it were enforced."""

    judgeable: PolicySet
    rules: RulesInShadow = field(default_factory=dict)
    skipped: Sequence[SkippedRule] = ()
    """The rules that are not evaluated, also those that decide."""
    unevaluated: Sequence[SkippedRule] = ()
    """Those of them that are in shadow."""

    def concerns(self, scheduler: str) -> bool:
        """Report whether a policy of a scheduler has something in shadow."""
        every = (*self.judgeable.policies, *(one.policy for one in self.skipped))
        return any(one.scheduler_name == scheduler and one.name in self.rules for one in every)


@dataclass(frozen=True, slots=True)
class PolicySetVersion:
    """One version of policies on the cluster."""

    policies: PolicySet
    """All of them; a rule that reads what is not known is not evaluated."""
    judgeable: PolicySet
    skipped: Sequence[SkippedRule] = ()
    """The rules that decide and are not evaluated."""
    published: AffinityByScheduler = field(default_factory=dict)
    """Node affinity that they publish, by scheduler."""
    shadow: ShadowVersion | None = None
    """None if nothing of them is in shadow."""


def shadow_alone(version: PolicySetVersion, policy: str) -> ShadowVersion | None:
    """Return a version as if only what one policy has in shadow were enforced; None if it has nothing in shadow."""
    every = version.shadow
    if every is None or policy not in every.rules:
        return None
    found = [one for one in version.judgeable.policies if one.name != policy]
    found += [one for one in every.judgeable.policies if one.name == policy]
    skipped = [one for one in version.skipped if one.policy.name != policy]
    skipped += [one for one in every.skipped if one.policy.name == policy]
    unevaluated = [one for one in every.unevaluated if one.policy.name == policy]
    return ShadowVersion(policy_set(found), {policy: every.rules[policy]}, skipped, unevaluated)


@dataclass(frozen=True, slots=True)
class KnownInputs:
    """Inputs of rules, as far as they are known."""

    unread: Sequence[ObjectKind]
    readings: Mapping[Poll, Reading]
    learned: Collection[tuple[str, str]]
    """Policies and their rules of which files say what they have learned."""


def policies_of_option(option: PolicyOption, files: PolicySet | None, live: Sequence[LivePolicy]) -> PolicySet:
    """Return the policies that an option names: those of files, or of the cluster with the files applied to it."""
    edited = files or PolicySet()
    names = {one.name for one in edited.policies}
    is_whole = files is not None and not option.applied
    kept = [] if is_whole else [one for one in compiled_of(live) if one.name not in names]
    return policy_set([as_enforced(one) if option.is_enforced(one.name) else one for one in (*kept, *edited.policies)])


def version_of_option(
    policies: PolicySet,
    option: PolicyOption,
    files: PolicySet | None,
    live: Sequence[LivePolicy],
    known: KnownInputs,
) -> PolicySetVersion:
    """Return the policies of an option without the rules that read what is not known."""
    edited = {one.name for one in files.policies} if files is not None else set()
    unknown = unknown_rules(one for one in live if one.name not in edited) if option.is_live else []
    unknown = [
        replace(one, policy=as_enforced(one.policy)) if option.is_enforced(one.policy.name) else one for one in unknown
    ]
    published = published_by(policies.policies, live, knows_namespaces="namespace" not in known.unread)
    return version_of(policies, known, unknown, published)


def version_of(
    policies: PolicySet, known: KnownInputs, unknown: Sequence[SkippedRule], published: AffinityByScheduler
) -> PolicySetVersion:
    """Return policies without the rules that read what is not known.

    `unknown` are policies of which the generation that serves is not known. `published` is what all of them publish.
    """
    found, skipped = judgeable(policies.policies, known.unread, known.readings, known.learned)
    deciding = [one for one in (*skipped, *unknown) if one.policy.mode != "Shadow"]
    judged = policy_set(found) if skipped or unknown else policies
    return PolicySetVersion(policies, judged, deciding, published, shadow_version(policies, known, unknown))


def shadow_version(
    policies: PolicySet, known: KnownInputs, unknown: Sequence[SkippedRule] = ()
) -> ShadowVersion | None:
    """Return a version as if all that is in shadow were enforced; None if nothing is.

    `unknown` are policies of which the generation that serves is not known.
    """
    rules = shadow_rules(policies.policies)
    if not rules and not any(one.policy.mode == "Shadow" for one in unknown):
        return None
    found, skipped = judgeable(map(as_enforced, policies.policies), known.unread, known.readings, known.learned)
    whole = {one.name for one in policies.policies if one.mode == "Shadow"}
    names = {(policy, rule) for policy, some in rules.items() for _, rule in some}
    unevaluated = [one for one in skipped if one.policy.name in whole or (one.policy.name, one.rule) in names]
    unevaluated += [one for one in unknown if one.policy.mode == "Shadow"]
    all_skipped = [*skipped, *(replace(one, policy=as_enforced(one.policy)) for one in unknown)]
    return ShadowVersion(policy_set(found), rules, all_skipped, unevaluated)
