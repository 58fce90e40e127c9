"""What is said of a policy that somebody applies."""

import json
from typing import Any, Final

import pytest

from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import RULES_MAX
from fairlead.cooperative import finish
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.admission import review as admission
from fairlead.webhook.admission.admission_server import MAX_BODY
from fairlead.webhook.admission.received import KEPT, ReceivedReviews
from fairlead.webhook.admission.review import MESSAGE_MAX, PIECE, PIECES, NoReviewError, review, review_steps
from policies.good import device_share, gang
from support.policy import obj
from support.policy.building import INSTALLED, MODEL

GOOD = {"f": "node.metadata.name == 'a'"}
BAD = {"f": "node.metadata.nam == 'a'"}
DOUBTFUL = {"f": "node.metadata.annotations['gpu'] != 'x'"}


def asked(new: Any, old: Any = None, operation: str = "CREATE", **more: Any) -> bytes:
    kind = {"group": "fairlead.dev", "version": "v1alpha1", "kind": "SchedulerExtenderPolicy"}
    request = {"uid": "r-1", "kind": kind, "operation": operation, "object": new, "oldObject": old, "dryRun": False}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | more}
    ).encode()


def answer(body: bytes) -> dict[str, Any]:
    reply = json.loads(review(body, MODEL, CompileOptions(INSTALLED)))
    assert {key: reply[key] for key in ("apiVersion", "kind")} == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
    }
    found: dict[str, Any] = reply["response"]
    assert found.pop("uid") == "r-1"
    return found


def test_a_good_one_is_let_through() -> None:
    assert answer(asked(obj(filters=GOOD, match={"namespaces": ["ml"]}))) == {"allowed": True}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize("dry", [True, False])
def test_a_bad_one_is_denied_with_field_column_and_cure(operation: str, dry: bool) -> None:
    said = answer(asked(obj(filters=BAD), obj(filters=GOOD), operation, dryRun=dry))
    assert (said["allowed"], said["status"]["code"], said["status"]["reason"]) == (False, 422, "Invalid")
    message = said["status"]["message"]
    assert message.startswith("spec.filters[0].expression: line 1, column 15: ")
    assert "did you mean `name`" in message


@pytest.mark.parametrize(("mode", "what"), [("Disabled", "disabled"), ("Shadow", "in shadow")])
def test_an_edit_that_stops_a_policy_is_let_through_whatever_else_it_breaks(mode: str, what: str) -> None:
    said = answer(asked(obj(filters=BAD, mode=mode), obj(filters=GOOD), "UPDATE"))
    assert said["allowed"]
    assert "status" not in said
    first, second, *_ = said["warnings"]
    assert first == f"the policy is {what} now, and does not compile:"
    assert second.startswith("spec.filters[0].expression: line 1, column 15: ")
    assert max(map(len, said["warnings"])) <= PIECE


OFF: dict[str, Any] = {"mode": "Disabled"}


@pytest.mark.parametrize(
    ("new", "old", "operation"),
    [
        pytest.param(obj(filters=BAD, **OFF), None, "CREATE", id="there is nothing to turn off"),
        pytest.param(obj(filters=BAD, **OFF), obj(filters=GOOD, **OFF), "UPDATE", id="it was off already"),
        pytest.param(obj(filters=BAD), obj(filters=GOOD, **OFF), "UPDATE", id="it is turned on"),
        pytest.param(
            obj(filters=BAD, mode="Shadow"), obj(filters=GOOD, mode="Shadow"), "UPDATE", id="it was in shadow already"
        ),
        pytest.param(
            obj(filters=BAD, mode="Shadow"), obj(filters=GOOD, **OFF), "UPDATE", id="it was off, not in force"
        ),
        pytest.param(obj(filters=BAD), obj(filters=GOOD, mode="Shadow"), "UPDATE", id="it is enforced"),
        pytest.param(
            obj(filters={"f": {"expression": BAD["f"], "mode": "Shadow"}}),
            obj(filters=GOOD),
            "UPDATE",
            id="only a rule is in shadow",
        ),
        pytest.param(obj(filters=BAD, mode="Off"), obj(filters=GOOD), "UPDATE", id="a mode that there is not"),
    ],
)
def test_others_that_do_not_compile_are_denied(new: Any, old: Any, operation: str) -> None:
    assert not answer(asked(new, old, operation))["allowed"]


def test_all_that_is_wrong_is_said() -> None:
    said = answer(asked(obj(filters={"a": "nod", "b": "tru"}, mode="Maybe")))["status"]["message"].splitlines()
    assert [line.partition(":")[0] for line in said] == [
        "spec.mode",
        "spec.filters[0].expression",
        "spec.filters[1].expression",
    ]


def test_an_answer_has_an_end() -> None:
    filters = {f"f{number}": "x" * 200 for number in range(32)}
    message = answer(asked(obj(filters=filters)))["status"]["message"]
    assert len(message) < MESSAGE_MAX + 100
    assert message.endswith("run fairlead lint for the rest")


def test_warnings_that_the_policy_accepts_are_not_shown() -> None:
    policy = obj(filters=DOUBTFUL)
    assert "warnings" in answer(asked(policy))
    accepts = {"fairlead.dev/accept": "AbsentRaises/f: all have it\nInvisibleToAutoscalers: meant", "other": "x" * 2000}
    policy["metadata"]["annotations"] = accepts
    [said] = answer(asked(policy))["warnings"][:1]
    assert said.startswith("metadata.annotations[fairlead.dev/accept]: InvisibleToAutoscalers is a note")
    policy["metadata"]["annotations"] = {"fairlead.dev/accept": "AbsentRaises/f: all have it"}
    assert answer(asked(policy)) == {"allowed": True}
    policy["metadata"]["annotations"] = None
    assert "warnings" in answer(asked(policy))


def test_a_scheduler_that_is_never_managed_is_warned_of() -> None:
    said = answer(asked(obj(filters=GOOD, schedulerName="default-scheduler")))
    assert said["allowed"]
    assert said["warnings"][0].startswith("spec.schedulerName: ")


def test_warnings_come_in_pieces_that_are_not_cut() -> None:
    said = answer(asked(obj(filters=DOUBTFUL)))
    assert said["allowed"]
    assert said["warnings"][0].startswith("spec.filters[0].expression: ")
    assert 0 < len(said["warnings"]) <= PIECES
    assert max(map(len, said["warnings"])) <= PIECE


def test_there_are_not_too_many_of_them() -> None:
    filters = {f"f{number}": f"node.metadata.annotations['l{number}'] != 'x'" for number in range(16)}
    warnings = answer(asked(obj(filters=filters)))["warnings"]
    assert len(warnings) == PIECES
    assert warnings[-1] == "there are more: run fairlead lint"


@pytest.mark.parametrize(
    "body",
    [
        asked(obj(filters=BAD) | {"status": {"x": 1}}, obj(filters=BAD), "UPDATE"),
        asked(None, obj(filters=BAD), "DELETE"),
        asked({"spec": 1}, kind={"group": "apps", "kind": "Deployment"}),
    ],
)
def test_what_is_none_of_our_business_is_let_through(body: bytes) -> None:
    assert answer(body) == {"allowed": True}


@pytest.mark.parametrize("new", [None, 1, [], {}, {"spec": None}, {"spec": {"filters": {"a": 1}}}])
def test_an_object_that_is_none_is_denied(new: Any) -> None:
    assert answer(asked(new))["allowed"] is False


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[" * 10_000, b'{"request": {"uid": 1}}', b"\xff"])
def test_what_is_no_review_is_no_answer(body: bytes) -> None:
    with pytest.raises(NoReviewError):
        review(body, MODEL, CompileOptions(INSTALLED))


@pytest.mark.parametrize("body", [b"[" * (3 << 20), b"]" * (3 << 20), asked({}, uid="u" * 300)])
def test_what_is_long_and_no_review_is_no_answer(body: bytes) -> None:
    with pytest.raises(NoReviewError):
        review(body, MODEL, CompileOptions(INSTALLED))


@pytest.mark.parametrize("text", ["[" * 10_000, "{,}" * 10_000, '"[' * 10_000, '\\"[,' * 10_000, '\\\\"[' * 9_000])
def test_what_stands_in_a_text_is_not_counted(text: str) -> None:
    said = answer(asked(obj(filters={"f": text})))
    assert said["status"]["message"].startswith("spec.filters[0].expression")


def test_the_largest_policy_is_looked_at() -> None:
    """With as many rules as there may be, each as long and with as many conditions and lists as it may have."""
    listed = [
        {"key": f"k{number}", "operator": "In", "values": [f"v{one}" for one in range(16)]} for number in range(6)
    ]
    match = {"namespaces": [f"n{number}" for number in range(64)], "podSelector": {"matchExpressions": listed}}
    one = {"expression": f"node.metadata.name in [{','.join(['0'] * 2000)}]"}
    rules = [{"name": f"r{number}", **one} for number in range(RULES_MAX)]
    whole = {"match": match, "filters": rules, "scores": rules, "variables": rules}
    managed: Any = {"managedFields": [{"fieldsV1": {f"f:{number}": {} for number in range(500)}} for _ in range(3)]}
    body = asked({"metadata": managed, "spec": whole}, {"metadata": managed, "spec": whole}, "UPDATE")
    assert len(body) < MAX_BODY
    found = admission._read(admission._decode(body).request.object)
    assert found is not None
    assert not admission._is_excessive(found.spec)


def test_it_pauses_after_each_rule() -> None:
    filters = {f"f{number}": "node.metadata.name == 'a'" for number in range(10)}
    assert sum(1 for _ in review_steps(asked(obj(filters=filters)), MODEL, CompileOptions(INSTALLED))) > 20


@pytest.mark.parametrize(
    "spec",
    [
        {"a": [[1]] * 600_000},
        {f"k{at}": 1 for at in range(250_000)},
        {"a": [""] * 250_000},
        {"a": '"' * 1_400_000},
        {"a": [1] * 10_000},
    ],
    ids=["lists", "fields", "texts", "a text", "numbers"],
)
def test_of_what_is_far_beyond_any_policy_nothing_is_made(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.webhook.admission.review.inspect_steps", None)
    reply = answer(asked(obj() | {"spec": spec}))
    assert reply["status"]["message"] == (
        "spec: is too large: 1 MiB and 10,000 values are allowed; split it into several policies"
    )


def test_what_nobody_reads_may_be_as_long_as_it_likes() -> None:
    whole = obj(filters={"f": "node.metadata.name == pod.metadata.name"})
    whole["status"] = {"conditions": [[1]] * 100_000}
    whole["metadata"]["annotations"] = {f"k{at}": "x" for at in range(50_000)}
    assert answer(asked(whole))["allowed"] is True


def test_what_is_nested_without_end_is_denied() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    assert answer(asked(obj() | {"spec": {"filters": deep}}))["allowed"] is False


def test_what_takes_too_long_is_denied() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    reply = json.loads(review(asked(obj(filters={"f": "true"})), MODEL, CompileOptions(INSTALLED, clock=clock)))
    assert "takes too long to compile" in reply["response"]["status"]["message"]


# Other policies.

KEY = "fairlead.dev/a"


def writing(name: str, *, priority: int = 0, namespaces: tuple[str, ...] = (), accept: str = "") -> dict[str, Any]:
    """A policy that writes an annotation."""
    match = {"namespaces": [*namespaces]} if namespaces else {}
    binding = {"annotations": [{"key": KEY, "expression": "node.metadata.name"}]}
    made = obj(name, binding=binding, match=match, priority=priority)
    if accept:
        made["metadata"]["annotations"] = {"fairlead.dev/accept": accept}
    return made


def compiled(one: dict[str, Any]) -> CompiledPolicy:
    return compile_policy(parse_policy(one, MODEL), CompileOptions(INSTALLED))


def warned(new: dict[str, Any], *serving: dict[str, Any]) -> str:
    """Warnings of the answer about a policy beside those that serve, as one text."""
    others = [compiled(one) for one in serving]
    reply = json.loads(review(asked(new), MODEL, CompileOptions(INSTALLED), others))["response"]
    assert reply["allowed"]
    return " ".join(reply.get("warnings", ()))


LOSES: Final = (
    "spec.binding.annotations[0].key: 'first' also writes fairlead.dev/a and wins where both match a pod: "
    "its name comes first; write another key, or let no pod match both"
)
BESIDE: Final[dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]]] = {
    "nothing else": (writing("new"), [], ""),
    "it loses": (writing("new"), [writing("first")], LOSES),
    "the other one loses": (
        writing("new", priority=1),
        [writing("first")],
        (
            "policy 'first': spec.binding.annotations[0].key: 'new' also writes fairlead.dev/a and wins where both "
            "match a pod: its priority is higher; write another key, or let no pod match both"
        ),
    ),
    "its own earlier generation": (writing("first"), [writing("first")], ""),
    "no pod matches both": (writing("new", namespaces=("a",)), [writing("first", namespaces=("b",))], ""),
    "it is accepted": (writing("new", accept=f"Conflict/{KEY}: meant so"), [writing("first")], ""),
    "another rule is accepted": (writing("new", accept="Conflict/x: meant so"), [writing("first")], LOSES),
}


@pytest.mark.parametrize(("new", "serving", "want"), BESIDE.values(), ids=BESIDE)
def test_conflicts_with_policies_that_serve_are_warned_of_as_lint_warns(
    new: dict[str, Any], serving: list[dict[str, Any]], want: str
) -> None:
    assert warned(new, *serving) == want


def test_of_many_conflicts_the_first_are_shown_and_others_are_served_between() -> None:
    others = [compiled(writing(f"a{at}")) for at in range(40)]
    body, options = asked(writing("new", priority=1)), CompileOptions(INSTALLED)
    reply = json.loads(review(body, MODEL, options, others))["response"]
    assert (len(reply["warnings"]), reply["warnings"][-1]) == (PIECES, "there are more: run fairlead lint")
    alone = sum(1 for _ in review_steps(body, MODEL, options))
    assert sum(1 for _ in review_steps(body, MODEL, options, others)) > alone


def test_layouts_of_devices_that_differ_are_warned_of() -> None:
    grants = {"deviceShare": [device_share()]}
    other = {"deviceShare": [device_share(layout={"count": "example.com/n"})]}
    said = warned(obj("new", binding=grants), obj("first", binding=other))
    assert "'first' gives aliyun.com/gpu-mem another layout of devices; both grant from the same devices" in said


def test_another_policy_that_may_give_the_same_pods_a_group_is_warned_of() -> None:
    said = warned(obj("new", binding={"gang": [gang()]}), obj("first", binding={"gang": [gang()]}))
    assert "spec.binding.gang[0]: 'first' may give the same pods a group before it: its name comes first" in said


def _stored(generation: int) -> Any:
    return obj(generation=generation, filters=GOOD)


@pytest.mark.parametrize(
    ("body", "reviewed"),
    [
        pytest.param(asked(_stored(1)), 1, id="created"),
        pytest.param(asked(obj(generation=1, filters=BAD)), 1, id="denied"),
        pytest.param(asked(_stored(3), _stored(2), "UPDATE"), 3, id="edited"),
        pytest.param(asked(_stored(3), _stored(3), "UPDATE"), 3, id="applied again"),
        pytest.param(asked(_stored(1), dryRun=True), 0, id="dry run of what is not stored"),
        pytest.param(asked(_stored(3), _stored(2), "UPDATE", dryRun=True), 0, id="dry run of an edit"),
        pytest.param(asked(_stored(3), _stored(3), "UPDATE", dryRun=True), 3, id="dry run of what is stored"),
        pytest.param(asked({"metadata": {"uid": 7, "generation": "x"}}), 0, id="nonsense"),
    ],
)
def test_generations_that_are_stored_are_known_to_be_reviewed(body: bytes, reviewed: int) -> None:
    received = ReceivedReviews()
    finish(review_steps(body, MODEL, CompileOptions(INSTALLED), received=received))
    assert received.generation(_stored(1)["metadata"]["uid"]) == reviewed


def test_the_newest_generation_that_was_reviewed_is_remembered_and_of_others_only_so_many() -> None:
    received = ReceivedReviews()
    for generation in (2, 1):
        received.record("a", generation)
    assert received.generation("a") == 2
    for at in range(KEPT):
        received.record(f"u-{at}", 1)
    assert (received.generation("a"), received.generation("u-0")) == (0, 1)
