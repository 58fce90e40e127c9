import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cooperative import Pauses, finish
from fairlead.policy.nodes.polls import PollError, Reading
from fairlead.webhook.data_sources import prometheus_reply
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.prometheus_reply import ReplyReader, node_samples, refusal_text, series_max
from fairlead.webhook.data_sources.samples import NodeSamples, reading
from support.webhook.polled import nodes, reply, series

SENT = 1_800_000_000_000_000_000
NODES = NodeNames(
    nodes({name: {"InternalIP": [f"10.0.0.{number}"]} for number, name in enumerate(["a", "b", "c"], start=1)})
)


def read(body: bytes, label: str = "instance", times: bytes | None = None) -> Reading:
    of_times = None if times is None else finish(node_samples(times, label, NODES))
    return reading(finish(node_samples(body, label, NODES)), of_times, SENT, NODES)


VALUES: Mapping[str, float | None] = {
    "0.5": 0.5,
    "-1e-7": -1e-7,
    "1.5e+300": 1.5e300,
    "17": 17.0,
    "NaN": None,
    "+Inf": None,
    "-Inf": None,
    "1e999": None,
    "": None,
    "0x10": None,
    "many": None,
}


@pytest.mark.parametrize("text", VALUES)
def test_a_value_is_a_finite_number_or_none(text: str) -> None:
    want = VALUES[text]
    found = read(reply(series(text, instance="a")))
    values = {} if want is None else {"a": want}
    assert found == Reading(values, SENT, frozenset(), frozenset() if values else frozenset({"a"}))


def test_a_histogram_is_no_number() -> None:
    body = reply({"metric": {"instance": "a"}, "histogram": [1, {"count": "3", "sum": "4"}]})
    assert read(body).no_number == {"a"}


def test_several_series_of_a_node_are_no_value() -> None:
    body = reply(
        series("1", instance="a"),
        series("2", instance="10.0.0.1:9100"),
        series("3", instance="a:80"),
        series("4", instance="b"),
        series("NaN", instance="c"),
        series("5", instance="c"),
    )
    found = read(body)
    assert found == Reading({"b": 4.0}, SENT, frozenset("ac"), frozenset(), found.note)
    assert found.note == (
        "2 nodes, such as a, have several series: aggregate them in the query, such as max by (instance) (...)"
    )


NOTES: Mapping[str, tuple[bytes, str, str]] = {
    "all is well": (reply(series(instance="a"), series(instance="b")), "instance", ""),
    "nothing": (reply(), "node", "the query gives no series"),
    "null": (b'{"status":"success","data":{"resultType":"vector","result":null}}', "a", "the query gives no series"),
    "another label, which names one": (
        reply(*[series(__name__="x", job="j", instance="10.0.0.1:9100")] * 120),
        "node",
        (
            "of 120 series none names a node by label node; they have instance (10.0.0.1:9100), job:"
            " set nodeLabel to instance"
        ),
    ),
    "another label, which names none": (
        reply(*[series(job="j", instance="10.1.0.7:9100")] * 120),
        "node",
        "of 120 series none names a node by label node; they have instance (10.1.0.7:9100), job",
    ),
    "the right label, which names none": (
        reply(series(job="j", kubernetes_node="z")),
        "kubernetes_node",
        "of 1 series none names a node by label kubernetes_node; they have kubernetes_node (z), job",
    ),
    "a label that nobody would think of": (
        reply(series(job="j", rack="b")),
        "node",
        "of 1 series none names a node by label node; they have rack (b), job: set nodeLabel to rack",
    ),
    "no labels": (
        reply(series(__name__="up")),
        "node",
        (
            "of 1 series none names a node by label node; they have no labels: aggregate them in the query by node,"
            " such as max by (node) (...)"
        ),
    ),
    "many labels": (
        reply({"metric": {f"l{number:02}": "x" for number in range(20)}, "value": [1, "1"]}),
        "node",
        "of 1 series none names a node by label node; they have l00 (x), l01, l02, l03, l04, l05, l06, l07 and 12 more",
    ),
    "a long and ugly value": (
        reply(series(node="x\n\x1b[31m" + "y" * 100)),
        "node",
        f"of 1 series none names a node by label node; they have node (x ?[31m{'y' * 53}...)",
    ),
    "some": (
        reply(series(instance="a"), series(instance="z:9100"), series(instance="y")),
        "instance",
        "of 3 series 1 name a node by label instance; the others name none, such as z:9100",
    ),
    "some without the label": (
        reply(series(instance="a"), series(job="j")),
        "instance",
        "of 2 series 1 name a node by label instance; the others name none: they have no label instance",
    ),
    "warnings": (
        reply(series(instance="a"), warnings=["first", "second", "third", "fourth"], infos=["x"]),
        "instance",
        "the server warns: first; the server warns: second; the server warns: third",
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_the_owner_is_told_what_names_no_node(case: str) -> None:
    body, label, want = NOTES[case]
    assert read(body, label).note == want


FAILED: Mapping[str, tuple[bytes, str]] = {
    "a matrix": (
        reply(kind="matrix"),
        "the query gives a matrix, not a vector: write one that gives one value for each node at one moment",
    ),
    "a scalar": (
        b'{"status":"success","data":{"resultType":"scalar","result":[1700000000.1,"1"]}}',
        "the query gives a scalar, not a vector",
    ),
    "a string": (
        b'{"status":"success","data":{"resultType":"string","result":[1700000000.1,"x"]}}',
        "the query gives a string, not a vector",
    ),
    "an error": (
        b'{"status":"error","errorType":"bad_data","error":"invalid parameter \\"query\\":\\n1:5: parse error"}',
        'bad_data: invalid parameter "query": 1:5: parse error',
    ),
    "an error without a text": (b'{"status":"error","errorType":"timeout"}', "timeout"),
    "an error without anything": (b'{"status":"error"}', "the server answers with an error that it does not name"),
    "nothing": (b"", "the reply is not one of Prometheus: Input data was truncated"),
    "a page": (b"<html>Log in</html>", "the reply is not one of Prometheus: JSON is malformed"),
    "half": (reply(series(instance="a"))[:-9], "the reply is not one of Prometheus: Input data was truncated"),
    "a list": (b"[]", "the reply is not one of Prometheus: Expected `object`, got `array`"),
    "another object": (b"{}", "the reply is not one of Prometheus: it has no status and data"),
    "no data": (b'{"status":"success"}', "the reply is not one of Prometheus: it has no status and data"),
    "no type": (b'{"status":"success","data":{}}', "the query gives a result without a type, not a vector"),
    "no list": (b'{"status":"success","data":{"resultType":"vector","result":{}}}', "Expected `array | null`"),
    "labels that are numbers": (reply({"metric": {"instance": 1}, "value": [1, "1"]}), "Expected `str`, got `int`"),
    "no labels": (reply({"value": [1, "1"]}), "missing required field `metric`"),
    "a number that is none": (reply({"metric": {}, "value": [1, 2]}), "Expected `str`, got `int`"),
    "a label that is no text": (
        reply(series(instance="a")).replace(b'"a"', b'"\xff"'),
        "the reply is not one of Prometheus: 'utf-8' codec can't decode byte 0xff",
    ),
    "an error that is no text": (
        b'{"status":"error","error":"\xff"}',
        "the reply is not one of Prometheus: 'utf-8' codec can't decode byte 0xff",
    ),
    "a nest": (b'{"data":{"x":' + b"[" * 1_900_000, "the reply is not one of Prometheus: it is nested too deeply"),
    "a nest of series": (
        reply().replace(b"[]", b"[" * 1_000_000),
        "the reply is not one of Prometheus: it is nested too deeply",
    ),
}


@pytest.mark.parametrize("case", FAILED)
def test_what_is_no_vector_is_a_failed_poll(case: str) -> None:
    body, want = FAILED[case]
    with pytest.raises(PollError) as failed:
        read(body)
    assert want in str(failed.value)
    assert str(failed.value).isprintable()


def test_an_error_is_read_from_any_body() -> None:
    assert refusal_text(FAILED["an error"][0]) == FAILED["an error"][1]
    nothing = [b"", b"no", reply(), FAILED["an error that is no text"][0], FAILED["a nest"][0]]
    assert [refusal_text(body) for body in nothing] == [""] * 5
    long = json.dumps({"status": "error", "errorType": "execution", "error": "x" * 1000}).encode()
    assert refusal_text(long) == f"execution: {'x' * 300}..."


TIMES: Mapping[str, tuple[bytes, dict[str, int], set[str], str]] = {
    "all": (
        reply(series("1700000000.5", instance="10.0.0.1:9100"), series("1700000001", instance="b")),
        {"a": 1_700_000_000_500_000_000, "b": 1_700_000_001_000_000_000},
        set(),
        "",
    ),
    "one": (
        reply(series("1700000000", instance="a"), series("5", instance="c")),
        {"a": 1_700_000_000_000_000_000},
        set(),
        "node b has no time from timeQuery, so that the value does not count",
    ),
    "none that could be": (
        reply(series("-1", instance="a"), series("1e300", instance="b")),
        {},
        set(),
        "2 nodes, such as a, have no time from timeQuery, so that the value does not count",
    ),
    "nothing": (
        reply(),
        {},
        set(),
        (
            "timeQuery: the query gives no series; 2 nodes, such as a, have no time from timeQuery, so that the value"
            " does not count"
        ),
    ),
    "two": (
        reply(series("1", instance="a"), series("2", instance="a"), series("1", instance="b")),
        {"b": 1_000_000_000},
        {"a"},
        "timeQuery: node a has several series: aggregate them in the query, such as max by (instance) (...)",
    ),
}


@pytest.mark.parametrize("case", TIMES)
def test_a_time_query_gives_each_value_its_time(case: str) -> None:
    times, want, several, note = TIMES[case]
    found = read(reply(series("0.1", instance="a"), series("0.2", instance="b")), times=times)
    assert found.times == want
    assert found.values == {node: value for node, value in (("a", 0.1), ("b", 0.2)) if node in want}
    assert found.several == several
    assert found.note == note


_TEXTS = st.text(alphabet='{}[],:"\\metricsulaé01\n', max_size=30)
_SERIES = st.builds(
    lambda labels, value, at: {"metric": labels, "value": [at, value]},
    st.dictionaries(st.sampled_from(["instance", "metric", "result", "value", "job"]), _TEXTS | st.sampled_from("abc")),
    st.sampled_from(["1", "NaN", "2.5"]) | _TEXTS,
    st.floats(0, 2e9, allow_nan=False),
)


@given(
    st.lists(_SERIES, max_size=12),
    st.lists(_TEXTS, max_size=2),
    st.sampled_from([1, 40, 200]),
    st.sampled_from([1, 7, 100, 10_000]),
    st.sampled_from([None, 1, "\t"]),
)
def test_in_pieces_is_read_what_is_read_at_once(
    found: list[object], warnings: list[str], piece: int, chunk: int, indent: int | str | None
) -> None:
    body = reply(*found, warnings=warnings)
    if indent is not None:
        body = json.dumps(json.loads(body), indent=indent, separators=(" , ", " : ")).encode()
    with pytest.MonkeyPatch.context() as patched:
        whole = read(body)
        patched.setattr(prometheus_reply, "WHOLE_BYTES", 0)
        patched.setattr(prometheus_reply, "PIECE_BYTES", piece)
        reader = ReplyReader("instance", NODES)
        for start in range(0, len(body), chunk):
            if reader.add(body[start : start + chunk]):
                finish(reader.decode())
        assert reading(finish(reader.end()), None, SENT, NODES) == whole


LARGE = reply(*(series(str(number), instance=f"node-{number}", pad="x" * 300) for number in range(10_000)))


def large(body: bytes) -> tuple[int, NodeSamples]:
    """Return the number of pauses beside the result."""
    pauses = Pauses(node_samples(body, "instance", lambda label: label))
    return len([*pauses]), pauses.result


def test_a_large_reply_is_read_in_pieces() -> None:
    assert len(LARGE) > prometheus_reply.WHOLE_BYTES
    calls = list[int]()
    with pytest.MonkeyPatch.context() as patched:
        made = prometheus_reply._series_decoder("instance")

        class Counted:
            @staticmethod
            def decode(body: bytes) -> list[object] | None:
                calls.append(len(body))
                return made.decode(body)

        patched.setattr(prometheus_reply, "_series_decoder", lambda _: Counted)
        count, samples = large(LARGE)
    assert samples.values == {f"node-{number}": float(number) for number in range(10_000)}
    assert len(calls) > len(LARGE) / prometheus_reply.PIECE_BYTES - 1
    assert max(calls) < prometheus_reply.PIECE_BYTES + 1000
    assert count >= len(calls)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(json.loads(LARGE), indent=1).encode(),  # no places to cut
        LARGE.replace(b'{"metric":{"instance":"node-7",', b'{ "metric":{"instance":"node-7",'),
        LARGE.replace(b'"]}]}}', b'"]} ] } }'),
        json.dumps({"data": json.loads(LARGE)["data"], "status": "success"}, separators=(",", ":")).encode(),
        LARGE.replace(b'{"status"', b'{"stats":{"result":[{"metric":{},"value":[1,"1"]}]},"status"'),
    ],
    ids=["indented", "a space", "spaces at the end", "another order", "another result"],
)
def test_a_large_reply_may_be_written_in_another_way(body: bytes) -> None:
    pauses, samples = large(body)
    assert len(samples.values) == 10_000
    assert pauses > len(LARGE) / prometheus_reply.PIECE_BYTES  # and is not decoded at once


UNCUT: Mapping[str, bytes] = {
    "values before labels": LARGE.replace(b'"metric"', b'"value":[1,"1"],"metric"'),
    "a label of megabytes": LARGE.replace(b'"node-7"', b'"node-7%b"' % (b"x" * prometheus_reply.UNCUT_BYTES)),
    "many other results": LARGE.replace(b'{"status"', b'{"x":[%b0],"status"' % (b'{"result":[]},' * 200_000)),
}


@pytest.mark.parametrize("case", UNCUT)
def test_a_large_reply_that_cannot_be_cut_is_a_failed_poll(case: str) -> None:
    with pytest.raises(PollError, match="is larger than 2 MiB and is not written as Prometheus writes it"):
        large(UNCUT[case])


def test_what_is_kept_of_a_reply_is_short() -> None:
    body = reply(series("1", instance="x" * 10_000), series(instance="a"), warnings=["y" * 10_000] * 10)
    samples = finish(node_samples(body, "instance", NODES))
    assert (len(samples.stranger), [len(one) for one in samples.warnings]) == (300, [301] * 3)


def test_the_limit_of_series_grows_with_the_nodes() -> None:
    assert [series_max(nodes) for nodes in (0, 3, 5000)] == [10_000, 10_060, 110_000]


def test_a_large_reply_with_what_is_no_text_is_a_failed_poll() -> None:
    with pytest.raises(PollError, match="the reply is not one of Prometheus: 'utf-8' codec"):
        large(LARGE.replace(b'"node-7"', b'"\xff"'))


def test_a_large_reply_that_is_cut_off_is_a_failed_poll() -> None:
    with pytest.raises(PollError, match="the reply is not one of Prometheus: Input data was truncated"):
        large(LARGE[:-100])
