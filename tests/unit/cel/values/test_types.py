"""The types of the language are those of the installed client, and both evaluators hold the same objects."""

from generate import language_types

from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.engine.environment import EXTENSIONS, PROTECTION, ROOTS, RULE
from fairlead.cel.engine.evaluate import engine_inputs, evaluate
from fairlead.cel.hints.unknown_names import FUNCTION_NAMES, MACRO_NAMES
from fairlead.cel.syntax.ast import Type
from fairlead.cel.values.schema import element, messages
from fairlead.cel.values.structs import NO_INT, NO_TEXT, empty, from_json, is_present, struct

POD = {
    "metadata": {
        "name": "a",
        "labels": {"x": "y"},
        "creationTimestamp": "2026-01-02T03:04:05.678901Z",
        "managedFields": [{}],
    },
    "spec": {
        "priority": 0,
        "hostNetwork": False,
        "nodeName": "",
        "tolerations": [{"key": "k", "tolerationSeconds": 3}],
        "containers": [{"name": "c", "livenessProbe": {"httpGet": {"port": 80}}, "ports": [{"containerPort": 1}]}],
        "unknownToUs": {"a": [1]},
    },
    "status": None,
}


def test_the_types_are_those_of_the_client() -> None:
    assert language_types.as_text() == language_types.TARGET.read_text(), "run make crds"


def test_every_type_is_known() -> None:
    known = {*messages(), "string", "bool", "int", "double", "timestamp", "dyn"}
    for name, fields in messages().items():
        for field, type_ in fields.items():
            assert (element(type_) or type_) in known, f"{name}.{field}: {type_}"


def test_what_is_absent_reads_as_zero_and_is_known_to_be_absent() -> None:
    pod = from_json("Pod", POD)
    spec = pod.spec  # type: ignore[attr-defined]
    assert (spec.priority, spec.nodeName, spec.hostNetwork) == (0, "", False)
    assert spec.priority is not NO_INT
    assert spec.nodeName is not NO_TEXT
    assert spec.schedulerName is NO_TEXT
    assert spec.schedulerName == ""
    assert not is_present(spec.affinity, "Affinity")
    assert spec.affinity.nodeAffinity is empty("NodeAffinity")
    assert pod.status is empty("PodStatus")  # type: ignore[attr-defined]


def test_nothing_of_the_api_is_too_much_for_a_struct() -> None:
    for name in messages():
        assert struct(name)() is not None


SAID_OF_THE_POD = {
    "pod.metadata.creationTimestamp == timestamp('2026-01-02T03:04:05.678901Z')",
    "has(pod.spec.priority) && pod.spec.priority == 0",
    "has(pod.spec.nodeName) && !has(pod.spec.schedulerName) && pod.spec.schedulerName == ''",
    "has(pod.spec.hostNetwork) && !pod.spec.hostNetwork && !has(pod.spec.hostPID) && !pod.spec.hostPID",
    "!has(pod.status) && pod.status.phase == ''",
    "pod.spec.containers[0].livenessProbe.httpGet.port == 80",
    "pod.spec.tolerations[0].tolerationSeconds == 3 && pod.metadata.labels == {'x': 'y'}",
}


def test_the_engine_reads_what_was_given() -> None:
    rules = Environment(RULE)
    given = engine_inputs({"pod": from_json("Pod", POD)})
    for text in SAID_OF_THE_POD:
        assert evaluate(check(text, rules, BOOL).compiled, given).value() is True, text


def test_every_scope_names_variables_that_exist() -> None:
    assert set(PROTECTION.roots) == set(ROOTS)


def test_the_vocabulary_is_what_the_engine_knows() -> None:
    """Each name is declared: called wrongly, it is not the name that is wrong."""
    rules = Environment(PROTECTION, {"o": Type("int")})
    for name in sorted({*FUNCTION_NAMES, *MACRO_NAMES}):
        text = f"{name}()" if "." in name else f"{name}(1, 2, 3, 4, 5, 6)"
        error = ""
        for attempt in (
            text,
            f"pods.{name}(1, 2, 3, 4, 5, 6)",
            f"pods.{name}()",
            f"{name}()",
            f"{name}('a')",
            f"'a'.{name}('a')",
        ):
            try:
                rules.engine.compile(attempt)
                break
            except RuntimeError as raised:
                error = str(raised)
            if "no matching overload" in error or "argument" in error:
                break
    assert len(EXTENSIONS) == 9
