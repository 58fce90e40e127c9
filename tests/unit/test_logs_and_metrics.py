"""Lines that machines can read and callers cannot forge, and numbers as Prometheus wants them."""

import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import fairlead
from fairlead import logs
from fairlead.metrics import BUCKETS, Metrics


@pytest.fixture
def root() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "fairlead", "asyncio")]
    before = [(one, one.level, one.handlers[:]) for one in loggers]
    yield
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers


def said(form: logs.LogFormat, level: str = "INFO") -> list[str]:
    stream = io.StringIO()
    logs.set_up(level, form, stream)
    log = logging.getLogger("fairlead.test")
    log.log(logs.TRACE, "fine")
    log.info("it\nis so", extra={"name_of": "a b", "list": ["\ud800\x1b[0m"]})
    try:
        int("on purpose")
    except ValueError:
        log.exception("a fault")
    logging.getLogger("another").info("nobody asked")
    return stream.getvalue().splitlines()


@pytest.mark.usefixtures("root")
def test_json_is_one_object_a_line() -> None:
    lines = [json.loads(line) for line in said("json")]
    assert [(one["level"], one["message"]) for one in lines] == [("INFO", "it\nis so"), ("ERROR", "a fault")]
    assert (lines[0]["name_of"], lines[0]["logger"]) == ("a b", "fairlead.test")
    assert "ValueError: invalid literal" in lines[1]["exception"]


@pytest.mark.usefixtures("root")
def test_trace_is_below_debug() -> None:
    assert json.loads(said("json", "TRACE")[0])["level"] == "TRACE"
    assert "fine" not in " ".join(said("json", "DEBUG"))


@pytest.mark.usefixtures("root")
def test_console_lines_are_one_line_each() -> None:
    first = said("console")[0]
    assert "\x1b" not in first
    assert "it\\nis so" in first
    assert 'name_of="a b"' in first


def test_levels() -> None:
    assert [logs.level_of(given) for given in ({}, {"LOG_LEVEL": "trace"})] == ["INFO", "TRACE"]
    with pytest.raises(ValueError, match="must be one of TRACE, DEBUG"):
        logs.level_of({"LOG_LEVEL": "7"})


def test_what_happens_again_and_again_is_ten_lines_a_minute_and_a_count() -> None:
    time = [0.0]
    seldom = logs.RateLimiter(lambda: time[0])
    assert sum(seldom.allow("x") is not None for _ in range(100)) == 10
    assert seldom.allow("y") == {}
    time[0] = 61
    assert [seldom.allow("x"), seldom.allow("x")] == [{"suppressed": 90}, {}]


def test_the_exposition() -> None:
    metrics = Metrics()
    counter, histogram = metrics.counter("c", "C.", "l"), metrics.histogram("h", "H.", "verb")
    metrics.gauge("g", "G.", ask=lambda: {(): 1.5})
    metrics.gauge("t", "T.", ask=lambda: {(): 2}, grows=True)
    for at in range(1005):
        counter.add(f'odd "\n\\{at}')
    for seconds in (0.00005, 0.00015, 0.0015, 99.0):
        histogram.observe(seconds, "filter")
    found = {one.name: one for one in text_string_to_metric_families(metrics.exposition().decode())}
    assert {name: one.type for name, one in found.items()} == {
        "c": "counter",
        "h": "histogram",
        "g": "gauge",
        "t": "counter",
    }
    assert len(found["c"].samples) == 1001, "labels are bounded"
    assert {one.labels["l"]: one.value for one in found["c"].samples}["other"] == 5
    buckets = [one.value for one in found["h"].samples if one.name == "h_bucket"]
    assert (len(buckets), buckets[:2], buckets[-1]) == (len(BUCKETS) + 1, [1, 2], 4)
    assert buckets == sorted(buckets)
    assert next(one.value for one in found["h"].samples if one.name == "h_count") == 4


def _log_calls() -> Iterator[tuple[str, ast.Call]]:
    for file in sorted(Path(fairlead.__file__).parent.rglob("*.py")):
        for one in ast.walk(ast.parse(file.read_text())):
            if isinstance(one, ast.Call) and ast.unparse(one.func) in _LOGGED:
                yield f"{file.name}:{one.lineno}", one


_LOGGED = {f"{log}.{level}" for log in ("LOG", "_log") for level in (*map(str.lower, logs.LEVELS), "exception", "log")}
_ONE_WORD = ("decision",)
"""Events whose name is that of the thing."""
_EVENT = re.compile(r"[a-z_]+\.[a-z_]+")
_KEYS = {
    "annotation", "before", "caller", "capability", "consequence", "drain_s", "drift", "duration_s", "error", "file",
    "generation", "hash", "hint", "holder", "leaf", "lease", "loser", "namespace", "nodes", "object", "objects", "path",
    "peer", "phase", "pod", "pods", "policies", "policy", "poll", "polls", "port", "probes", "reason",
    "requeue_after_s", "resource", "result", "rule", "scheduler", "secret", "state", "strategies", "verb", "version",
    "winner",
}  # fmt: skip


def test_a_line_of_the_log_is_an_event_with_fields() -> None:
    """Whoever searches logs finds one name for one event, and one key for one thing."""
    found = [*_log_calls()]
    assert len(found) > 50
    for where, call in found:
        message = call.args[1 if ast.unparse(call.func).endswith(".log") else 0]
        if isinstance(message, ast.Constant):
            assert _EVENT.fullmatch(str(message.value)) or message.value in _ONE_WORD, where
        else:
            assert ast.unparse(message) == "event", where
        for keyword in call.keywords:
            if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
                keys = {key.value for key in keyword.value.keys if isinstance(key, ast.Constant)}
                assert keys <= _KEYS, (where, keys - _KEYS)
