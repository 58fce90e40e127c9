"""What the verbs answer from: the policies by what the scheduler calls them for, and what is known of the cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol

from fairlead.policy.binding import Conflict
from fairlead.policy.classes import Classes
from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.deadline import Clock
from fairlead.policy.evaluate import Evaluator
from fairlead.policy.facts import Amounts, NodeView, PodView
from fairlead.policy.filtered import Rule
from fairlead.policy.nodes import Nodes
from fairlead.policy.select import PolicySet
from fairlead.policy.tally import Tally
from fairlead.strategies.reads import overlap
from fairlead.webhook.brought import Brought
from fairlead.webhook.pace import Pace, Part, Scope
from fairlead.webhook.protocol import UNREADABLE, Bytes, MalformedError, unreadable
from fairlead.webhook.remembered import Remembered

Gate = Literal["Fail", "Ignore"]
"""An entry of the scheduler's configuration that filters, by the failure policy of those whom it asks."""
Verb = Literal["filter", "prioritize", "preempt", "bind"]
GUARD: Final[Rule] = "", "guard"
"""What refuses pods of namespaces that are guarded: no policy does."""
Result = Literal["passed", "refused", "empty", "error"]
"""Nobody was refused; somebody was; nobody is left; the call was answered with an error."""
_IMAGES: Final = ("status", "images")


class Mirror(Protocol):
    """What is known of the cluster beside the nodes."""

    def namespace(self, name: str, /) -> Any | None:
        """The namespace, if it is known."""

    def request_of(self, pod: Any, /) -> Amounts:
        """What a pod to be placed asks for. Raises ValueError for a quantity that cannot be read."""

    def counted(self, placed: Any, /) -> Amounts:
        """What a pod on a node counts for in the node's `requested`."""

    def unplaced(self, namespace: str, name: str, /) -> Any | None:
        """A pod of our schedulers that has no node yet, if it is known."""

    def given(self, node: bytes, /, *, images: bool) -> Any:
        """A node from a request, JSON; without its images where nobody reads them.

        Depends on nothing else. Raises what `protocol.UNREADABLE` names if that is no node.
        """

    def view_for(self, given: Any, /) -> NodeView:
        """Such a node, with the pods that are on the node of its name; the mirror stays as it is."""


class Moment(NamedTuple):
    """When something is asked: the time of day, and until when the answer must be there, by a clock of its own.

    Neither goes back from one call of a world to the next.
    """

    now: int
    clock: Clock
    deadline: int
    fair: bool = True
    """Whether there was time enough to call slow who misses the deadline: much of it may go before anybody is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and what it was told to do."""

    schedulers: frozenset[str]
    """The names whose pods it may place. It may ask about others: no policy is for them."""
    guarded: frozenset[str] = frozenset()
    """Namespaces that a scheduler of ours must not have: what they hold has to run before we can answer."""
    ignore_gate: bool = False
    """Whether it asks the gate Ignore, too: the reasons of the gate Fail are then read even where nodes are left."""
    always_reasons: bool = False
    """ConfigOnly: others write its configuration, and may let more extenders come after ours."""
    resolvable: bool = False
    """Whether its version can evict pods for a node that only an extender refuses: none up to 1.37 can."""
    timeout_s: float | None = None
    """How long it waits for an answer, where that is known of it."""


def guarded(caller: Caller, namespace: str) -> str | None:
    """Why the caller places no pods of a namespace; None if it may."""
    if namespace not in caller.guarded:
        return None
    return f"pods of namespace {namespace} must not depend on Fairlead: give them another scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a call, for metrics and the status."""

    verb: Verb
    result: Result = "passed"
    gate: Gate | None = None
    pod: str = ""
    """Its UID."""
    candidates: int | None = None
    """Nodes that were asked about; None where nobody counted them, because no policy had a say."""
    refusals: Mapping[Rule, int] = field(default_factory=dict)
    """Nodes by the rule that is given as the reason."""
    waits: tuple[str, str] | None = None
    """Namespace and name of the pod, where none of the nodes that it could have gone to is left to it."""
    unknown: tuple[str, ...] = ()
    """Nodes that were refused because the mirror does not know them yet."""
    missed_sample: bool = False
    """The scheduler asked about a part of the nodes, all were refused, and another one would pass."""
    simulated: bool = False
    """The request brought its own nodes."""
    too_slow: str = ""
    """The policy that missed the deadline."""
    switched: Scope | None = None
    """For whom it is switched to its failure policy from now on."""
    conflicts: tuple[Conflict, ...] = ()
    """Annotations that the pod did not get from a policy, because it has them from another one."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply."""

    body: bytes
    outcome: Outcome
    status: int = 200


@dataclass(frozen=True, slots=True)
class World:
    """One policy set, and what it is asked about. A new set gets a new one; pace and names live on."""

    policies: PolicySet
    mirror: Mirror
    gates: Mapping[Gate, Evaluator]
    scores: Evaluator
    pace: Pace
    names: Remembered
    brought: Brought[Any]
    conflicts: Counter[Conflict] = field(default_factory=Counter)
    """The pods to which each happened."""

    def view(self, pod: Any) -> PodView:
        """The pod of a request, as far as it takes to find its policies."""
        return PodView(pod, self.mirror.namespace(str(pod.metadata.namespace) or "default"))

    def whole(self, view: PodView) -> PodView:
        """The same for rules. Raises MalformedError."""
        try:
            request = self.mirror.request_of(view.pod)
        except ValueError as error:
            raise MalformedError(f"the pod cannot be read: {unreadable(error)}") from None
        return PodView(view.pod, view.namespaceObject if view.knows_namespace else None, request)

    def node(self, written: Bytes) -> NodeView:
        """A node of a request. Raises MalformedError."""
        try:
            return self.mirror.view_for(self.brought.node(written))
        except UNREADABLE as error:
            raise MalformedError(f"a node cannot be read: {unreadable(error)}") from None

    def missed(self, policy: str, part: Part, pod: Any, at: int) -> Scope | None:
        """A policy was too slow about a pod of a request; for whom it is switched now, if it is."""
        asked = (self.scores,) if part == "scores" else self.gates.values()
        for one in (one for evaluator in asked for one in evaluator.policies.policies):
            if one.name == policy:
                return self.pace.missed(one, part, self.view(pod), at)
        return None

    def catch_up(self, when: Moment) -> bool:
        """Compute in idle time what waits; whether all of it was done."""
        now, clock, deadline, _ = when
        return all(one.catch_up(now=now, clock=clock, deadline=deadline) for one in (*self.gates.values(), self.scores))


def world(policies: PolicySet, nodes: Nodes, mirror: Mirror, pace: Pace, names: Remembered, tally: Tally) -> World:
    """Each policy where it is asked, with the rules that are asked there: what is kept depends on nothing else."""
    classes = Classes()

    def asked(chosen: list[CompiledPolicy]) -> Evaluator:
        return Evaluator(PolicySet(tuple(chosen), policies.generation), nodes, tally=tally, classes=classes)

    gating = [replace(one, scores=()) for one in policies.policies if one.filters or one.protections or one.annotations]
    rating = [replace(one, filters=(), protections=(), annotations=()) for one in policies.policies if one.scores]
    gates: Mapping[Gate, Evaluator] = {
        "Fail": asked([one for one in gating if one.rejects_on_failure]),
        "Ignore": asked([one for one in gating if not one.rejects_on_failure]),
    }
    images = any(overlap(_IMAGES, path) for policy in policies.policies for path in policy.reads.node)
    brought = Brought(lambda node: mirror.given(node, images=images))
    return World(policies, mirror, gates, asked(rating), pace, names, brought)
