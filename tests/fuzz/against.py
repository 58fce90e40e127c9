"""The verbs, asked one broken request after another, and what must hold of every answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import msgspec

from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.webhook.extender import bind
from fairlead.webhook.extender import requests as protocol
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import CallClock, FailurePolicy, VerbReply
from fairlead.webhook.extender.requests import BindArgs
from fuzz.mutate import mutated
from fuzz.seeds import VERBS, Seed, Verb, seeds
from support.policy import NOW, SECOND, node, ns, obj, placed, policy
from support.webhook import Asking, GoError, go
from support.webhook.go import strictly

SCHEDULERS: Final = ("fairlead", "wire-names", "wire-nodes")
NEXT_SET: Final = 5_000
BAD_EACH, BAD_TIME = 800, 100
"""Of so many requests so many meet policies that nearly always miss the deadline."""
"""A new policy set comes after so many requests."""


class Broken(Exception):  # noqa: N818 - it is what was found
    """What must hold does not."""


def _policies(scheduler: str) -> list[CompiledPolicy]:
    def made(name: str, **spec: Any) -> CompiledPolicy:
        return policy(f"{scheduler}-{name}", schedulerName=scheduler, **spec)

    keep = {"keep": "victim.metadata.labels[?'never-evict'].orValue('') == 'true'"}
    return [
        made(
            "all",
            priority=3,
            filters={
                "gpu": {"expression": "node.metadata.labels[?'gpu'].orValue('x') == 'x'", "reason": "no GPU"},
                "room": {"expression": "free['cpu'] >= request['cpu']", "resolvable": True},
                "load": {"expression": "data.load < 5.0", "onError": "Pass"},
            },
            data=[{"name": "load", "nodeLabel": {"key": "load"}}],
            scores={
                "cpu": "100.0 * free['cpu'] / 64.0",
                "pods": {"expression": "-1.0 * double(pods.size())", "normalize": "Rank"},
            },
            protect=keep,
            annotations={"fairlead.dev/node": "node.metadata.name + pod.metadata.labels[?'app'].orValue('')"},
        ),
        made(
            "one",
            match={"podSelector": {"matchLabels": {"app": "web"}}, "conditions": {"low": "pod.spec.priority < 100"}},
            filters={"not-n3": "node.metadata.name != 'n3'", "name": "pod.metadata.name != node.metadata.name"},
            scores={"now": "now.getFullYear() > 2000 ? 10.0 : 0.0"},
        ),
        made("raises", match={"conditions": {"c": "pod.metadata.labels['raise'] == 'no'"}}, filters={"f": "true"}),
        made(
            "soft",
            failurePolicy="Ignore",
            match={"namespaceSelector": {"matchLabels": {"team": "ml"}}},
            filters={"now": "now.getFullYear() > 2000", "tolerates": "!pod.spec.tolerations.exists(t, t.key == 'no')"},
            protect=keep,
        ),
        made(
            "groups",
            match={"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            binding={
                "gang": [
                    {
                        "name": "job",
                        "group": "pod.metadata.labels[?'app'].orValue('')",
                        "size": "int(pod.metadata.annotations[?'size'].orValue('2'))",
                    }
                ]
            },
        ),
        placeholder_policy(obj(f"{scheduler}-broken", schedulerName=scheduler, match={"namespaces": ["other"]})),
    ]


def _waiting(namespace: str, name: str, uid: str) -> Any:
    """A pod without a node; of one namespace also its quantities are no good."""
    requests = {"cpu": "lots" if namespace == "another" else "1"}
    spec = {
        "schedulerName": namespace if namespace != "ml" else "fairlead",
        "containers": [{"resources": {"requests": requests}}],
    }
    return from_json("Pod", {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": spec})


@dataclass(slots=True)
class Fuzz:
    """A webhook that is asked, and the time that passes for it."""

    random: Random
    seeds: tuple[Seed, ...] = field(default_factory=seeds)
    asked: int = 0
    answers: dict[tuple[str, int], int] = field(default_factory=dict)  # by verb and status
    time: int = 0
    step: int = 0
    asking: Asking = field(init=False)
    policies: list[CompiledPolicy] = field(init=False)

    def __post_init__(self) -> None:
        self.policies = [one for scheduler in SCHEDULERS for one in _policies(scheduler)]
        told = [json.loads(seed.body) for seed in self.seeds if seed.verb == "bind" and b'"PodUID"' in seed.body]
        pods = [_waiting(one["PodNamespace"], one["PodName"], one["PodUID"]) for one in told]
        victims = [placed("keep", labels={"never-evict": "true"}), placed("p")]
        held = [
            node(f"n{at}", labels={"gpu": "xy"[at % 2]} if at else {}, pods=victims[:at], used=at) for at in range(4)
        ]
        self.asking = Asking(
            self.policies,
            held,
            namespaces={"ml": ns("ml", {"team": "ml"}), "wire-names": ns("wire-names")},
            unplaced=pods,
            schedulers=SCHEDULERS,
            ignore_entry=True,
            resolvable=True,
        )

    def clock(self) -> int:
        """Mostly fast."""
        self.time += self.step
        return self.time

    def one(self) -> None:
        """One request, and what must hold of its answer."""
        seed = self.random.choice(self.seeds)
        verb = seed.verb if self.random.random() < 0.95 else self.random.choice(VERBS)
        self.ask(verb, mutated(self.random, seed.body))

    def ask(self, verb: Verb, body: bytes) -> None:
        """Ask it, and see."""
        self._pass_time()
        try:
            answer = self._answer(verb, body)
            self.answers[verb, answer.status] = self.answers.get((verb, answer.status), 0) + 1
            check(verb, body, answer)
        except Exception as error:
            raise Broken(f"{verb}, request {self.asked}: {error!r}\n{body!r}") from error

    def _answer(self, verb: Verb, body: bytes) -> VerbReply:
        """What bind would post is looked at here."""
        when = CallClock(NOW + self.time, self.clock, self.time + SECOND)
        entry: FailurePolicy = "Fail" if self.random.random() < 0.6 else "Ignore"
        if verb == "bind":
            bound = self.asking.bind(body, when)
            if isinstance(bound, BindArgs):  # what the API server would say
                pod = _waiting(
                    self.random.choice((*SCHEDULERS, "another")), bound.name, self.random.choice((bound.uid, ""))
                )
                bound = bind.decide_bind(bound, pod, self.asking.serving, self.asking.caller, when)
            if isinstance(bound, BindDecision):
                msgspec.json.encode(bound.binding)
                return bound.bound
            return bound
        if verb == "prioritize":
            return self.asking.prioritize(body, when)
        return self.asking.filter(body, entry, when) if verb == "filter" else self.asking.preempt(body, entry, when)

    def _pass_time(self) -> None:
        self.asked += 1
        self.time += self.random.choice((0, SECOND // 1000, SECOND))
        is_bad_time = self.asked % BAD_EACH < BAD_TIME  # for a policy, until it is asked no more
        self.step = 2 * SECOND if self.random.random() < (0.7 if is_bad_time else 0.03) else 0
        if self.asked % NEXT_SET == 0:
            self.asking.serve(self.policies)
        elif self.random.random() < 0.01:
            _ = [f"{one}: {one.pods}" for one in self.asking.pace.open_circuits(self.time)]
            name = f"n{self.random.randrange(4)}"
            self.asking.nodes.put(node(name, labels={"gpu": self.random.choice("xy")}, used=self.random.randrange(8)))


STATUS: Final = {"filter": {200}, "prioritize": {200, 400, 503}, "preempt": {200, 400, 503}, "bind": {200}}


def check(verb: str, body: bytes, answer: VerbReply) -> None:
    """Raises Broken."""
    if answer.status not in STATUS[verb]:
        raise Broken(f"status {answer.status}")
    if (answer.outcome.result == "error") is not bool(answer.outcome.error):
        raise Broken(f"outcome {answer.outcome}")
    if answer.status != 200:
        _holds(json.loads(answer.body) == {"Error": answer.outcome.error}, answer)
        return
    try:
        reply = go.decode(verb, answer.body)
    except GoError:
        if _is_sound(verb, body):
            raise
        return  # what nobody looked at goes back as it came
    if verb in ("filter", "bind"):
        _holds(reply["Error"] == answer.outcome.error, answer)
    _CHECKS[verb](body, reply, answer)


def _check_filter(body: bytes, reply: Any, answer: VerbReply) -> None:
    if answer.outcome.result == "error":
        _holds(reply["NodeNames"] is None and reply["Nodes"] is None, answer)
        return
    asked = protocol.decode_filter_args(body)
    if asked.names is not None:
        names = protocol.decode_names(asked.names)
        _holds({*reply["NodeNames"]} <= {*names} and reply["Nodes"] is None, answer)
        refused = {*(reply["FailedNodes"] or ()), *(reply["FailedAndUnresolvableNodes"] or ())}
        _holds(refused <= {*names} and refused.isdisjoint(reply["NodeNames"]), answer)
        _holds((answer.outcome.result == "passed") is (len(names) == len(reply["NodeNames"])), answer)
    elif asked.nodes is not None:
        _holds(reply["NodeNames"] is None, answer)
        given = [bytes(one) for one in asked.items or []]
        _holds(
            all(json.loads(one) in reply["Nodes"]["items"] for one in given) or answer.outcome.result != "passed",
            answer,
        )


def _check_prioritize(body: bytes, reply: Any, answer: VerbReply) -> None:
    if reply:
        asked = protocol.decode_filter_args(body)
        if asked.names is not None:
            _holds({each["Host"] for each in reply} <= {*protocol.decode_names(asked.names)}, answer)
        _holds(all(each["Score"] > 0 for each in reply), answer)


def _check_preempt(body: bytes, reply: Any, answer: VerbReply) -> None:
    proposed = protocol.decode_preempt_args(body).victims
    for name, victims in reply["NodeNameToMetaVictims"].items():
        _holds([pod["UID"] for pod in victims["Pods"]] == [pod.UID for pod in proposed[name].Pods], answer)


def _holds(condition: bool, answer: VerbReply) -> None:
    if not condition:
        raise Broken(f"{answer}")


_CHECKS: Final[dict[str, Callable[[bytes, Any, VerbReply], None]]] = {
    "filter": _check_filter,
    "prioritize": _check_prioritize,
    "preempt": _check_preempt,
    "bind": lambda *_: None,
}


def _is_sound(verb: str, body: bytes) -> bool:
    """Whether a request is one that Go could have written, as far as it is sent back unread."""
    if verb != "filter":
        return True
    try:
        request = strictly(body)
        if not all(isinstance(name, str) and name.encode() for name in request.get("NodeNames") or ()):
            return False
        nodes: Any = next((one for key, one in request.items() if key.lower() == "nodes" and one), {})
        return all(isinstance(one, dict) for one in nodes.get("items") or ())
    except (AttributeError, GoError, TypeError, UnicodeEncodeError):
        return False
