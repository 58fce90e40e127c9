"""What is counted of a stream of pods, and what is read of a log that moves on."""

import json
import queue
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from urllib3.exceptions import ProtocolError

from support.kube.lasting_watch import LastingWatch
from support.stream import Follow, Stream, StreamedPod, stream, table, tally, wrong
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError


def pod(name: str = "p", *codes: int, created: float = 10.0, took: float | None = 0.1, failed: int = 0) -> StreamedPod:
    bound = None if took is None else created + took
    made = StreamedPod(name=name, pool="a", created=created, bound=bound, node_pool="" if bound is None else "a")
    made.codes, made.failed = [*codes], failed
    made.refusals = [str(code) for code in codes if code not in (201, 504)]
    return made


WELL = pod("well", 201)
LOST = pod("lost", took=None)
ELSEWHERE = pod("elsewhere", 201)
ELSEWHERE.node_pool = "b"


@pytest.mark.parametrize(
    ("pods", "unprovoked", "provoked"),
    [
        ([WELL], [], []),
        ([WELL, LOST], ["1 lost, such as lost"], None),
        ([pod("late", took=None, created=30.0)], [], []),
        ([pod("p", 201, 201)], ["1 bound twice, such as p"], None),
        ([pod("p")], ["1 bound by nobody, such as p"], None),
        ([pod("p", 504), pod("q", 504, 201)], [], []),
        ([pod("p", 504, took=None)], ["1 lost, such as p"], None),
        ([ELSEWHERE], ["1 not where the policy says, such as elsewhere"], None),
        ([pod("p", 409, 201)], ["1 bindings were refused: 409"], []),
        ([pod("p", 201, failed=2), WELL], ["2 attempts failed"], []),
        (
            [pod("p", 201, failed=3)],
            ["3 attempts failed", "3 attempts of one pod failed"],
            ["3 attempts of one pod failed"],
        ),
        ([pod("p", 201, created=70.0, took=0.9)], [], []),
        ([pod("p", 201, created=70.0, took=1.1)], [], None),
        ([pod("p", 201, created=80.0, took=1.1)], ["slow for 70 s"], None),
    ],
)
def test_what_is_wrong(pods: Sequence[StreamedPod], unprovoked: list[str], provoked: list[str] | None) -> None:
    row = tally("a fault", pods, 10.0, 20.0, due=20.0)
    assert wrong(row, provoked=False) == unprovoked
    assert wrong(row, provoked=True) == (unprovoked if provoked is None else provoked)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([WELL, LOST], ["1 lost, such as lost"]),
        ([pod("p", 201, 201)], ["1 bound twice, such as p"]),
        ([pod("p", 201, 409, failed=7)], []),
        ([pod("p", 201, created=78.0, took=1.1)], []),
        ([pod("p", 201, created=80.0, took=1.1)], ["slow for 70 s"]),
    ],
)
def test_what_is_wrong_in_a_fault_that_lasts(pods: Sequence[StreamedPod], expected: list[str]) -> None:
    assert wrong(tally("a fault", pods, 10.0, 20.0, due=20.0), provoked=False, lasts=True) == expected


def test_the_times_of_a_row_and_how_it_is_printed() -> None:
    pods = [pod(f"p{at}", 201, created=10.0 + at, took=0.25) for at in range(98)]
    pods += [pod("slow", 201, created=15.0, took=2.0), pod("slower", 201, created=12.0, took=4.0), LOST]
    row = tally("a fault", pods, 10.0, 20.0)
    assert (row.p50_s, row.p99_s, row.worst_s, row.normal_s) == (0.25, 4.0, 4.0, 5.0)
    head, line = table([row]).splitlines()
    assert len(head) == len(line)
    assert " ".join(line.split()) == "a fault 10 101 100 1 0 0 0 0 0 0 0 250 4000 4000 5.0"


def test_a_log_is_read_from_where_it_was_and_goes_on_in_a_new_file(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text("old\n")
    with closing(Follow(log)) as follow:
        with log.open("a") as file:
            file.write("one\ntw")
            file.flush()
            assert [*follow.lines()] == ["one\n"]
            file.write("o\n")
        log.rename(tmp_path / "audit-1.log")
        assert [*follow.lines()] == ["two\n"]
        log.write_text("three\nfo")
        assert [*follow.lines()] == ["three\n"]
        with log.open("a") as file:
            file.write("ur\n")
        assert [*follow.lines()] == ["four\n"]


class _Server(Api):
    """Binds each pod at once, but the first of each second's."""

    def __init__(self) -> None:
        self.left: dict[str, str] = {}
        self._bound = queue.SimpleQueue[str]()

    def get(self, path: str, **query: str) -> Object:
        return {"metadata": {"resourceVersion": "1"}}

    def create(self, path: str, obj: Object) -> Object:
        name = obj["metadata"]["name"]
        self.left[name] = obj["metadata"]["labels"]["batch"]
        if int(name.removeprefix("s-")) % stream.RATE:
            self._bound.put(name)
        return obj

    def delete(self, path: str, **query: str) -> None:
        assert query.pop("fieldSelector") == "spec.nodeName!="
        for name, batch in list(self.left.items()):
            if query == {"labelSelector": f"batch={batch}"} and int(name.removeprefix("s-")) % stream.RATE:
                del self.left[name]

    def lines(self, path: str, **query: str) -> Generator[bytes, None, None]:
        try:
            name = self._bound.get(timeout=0.5)
        except queue.Empty:
            return
        pod = {"metadata": {"name": name, "resourceVersion": "1"}, "spec": {"nodeName": "n"}}
        yield json.dumps({"type": "MODIFIED", "object": pod}).encode()


def test_a_pod_that_waits_keeps_no_other_on_its_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_KEPT", 0.1)
    (log := tmp_path / "log").touch()
    server = _Server()
    with closing(Follow(log)) as follow:
        made = Stream(api=server, namespace="x", log=follow, nodes={"n": "a"}, schedulers={"s": {"a": "a", "b": "a"}})
        made.begin()
        try:
            wait_for("all of a second to be made", lambda: len(made.pods) > stream.RATE)
            wait_for("those on nodes to be gone", lambda: [*server.left.values()].count("0") == 1, timeout_s=30)
        finally:
            made.end()
    assert "s-000000" in server.left


@dataclass
class ScriptedApi:
    """Watches in turn, each a list of events that ends with an error or without, and lists for those that break."""

    watches: list[list[Object | Exception]]
    lists: list[Object | Exception]
    asked: list[str] = field(default_factory=list)

    def lines(self, path: str, **query: str) -> Iterator[bytes]:
        self.asked.append(query["resourceVersion"])
        for event in self.watches.pop(0):
            if isinstance(event, Exception):
                raise event
            yield json.dumps(event).encode()

    def get(self, path: str) -> Object:
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _object(name: str, version: str) -> Object:
    return {"metadata": {"name": name, "resourceVersion": version}}


def _added(name: str, version: str) -> Object:
    return {"type": "ADDED", "object": _object(name, version)}


_LISTED: Object = {"metadata": {"resourceVersion": "7"}, "items": [_object("b", "6")]}
_TOO_OLD: Object = {"type": "ERROR", "object": {"code": 410}}
_NOT_READY: Object = {"kind": "Status", "code": 503}


@pytest.mark.parametrize("end", [ProtocolError("reset"), ClusterError("refused"), _TOO_OLD, _NOT_READY])
def test_a_watch_outlives_its_api_server(end: Object | Exception) -> None:
    api = ScriptedApi([[_added("a", "5"), end], [_added("c", "8")]], [ClusterError("not there yet"), _LISTED])
    watch = LastingWatch(cast("Api", api), "/pods", "4", lambda: not api.watches)
    seen = [(event["type"], event["object"]["metadata"].get("name")) for event in watch.events()]
    assert seen == [("ADDED", "a"), ("RELISTED", None), ("ADDED", "b"), ("ADDED", "c")]
    assert (api.asked, watch.version) == (["4", "7"], "8")


def test_a_watch_that_ends_goes_on_where_it_was() -> None:
    api = ScriptedApi([[_added("a", "5")], [_added("c", "8")]], [])
    watch = LastingWatch(cast("Api", api), "/pods", "4", lambda: not api.watches)
    assert [event["object"]["metadata"]["name"] for event in watch.events()] == ["a", "c"]
    assert api.asked == ["4", "5"]


def test_pods_are_settled_once_and_forgotten_when_they_are_taken_away(tmp_path: Path) -> None:
    """A stream that lasts keeps only those that live, or may still be placed."""
    file = tmp_path / "audit.log"
    file.touch()
    now = time.monotonic()
    with closing(Follow(file)) as log:
        made = Stream(api=cast("Api", None), namespace="x", log=log, nodes={}, schedulers={})
        waits, placed, lost = (pod(name, created=now) for name in ("waits", "placed", "lost"))
        waits.bound = lost.bound = None
        lost.created = now - 2 * stream.LOST_S - 1
        made.pods = {one.name: one for one in (waits, placed, lost)}
        assert made.settled() == [lost], "of the placed one the log does not tell yet"
        placed.codes.append(201)
        assert made.settled() == [placed]
        assert made.settled() == []
        assert [*made.pods] == ["waits", "placed", "lost"]
        made._swept.update(["placed", "waits"])
        assert made.settled() == []
        assert [*made.pods] == ["waits", "lost"], "it was not counted yet"


def test_fewer_are_made_while_many_are_there(tmp_path: Path) -> None:
    (file := tmp_path / "audit.log").touch()
    with closing(Follow(file)) as log:
        made = Stream(api=cast("Api", None), namespace="x", log=log, nodes={}, schedulers={})
        made.pods = {name: pod(name) for name in map(str, range(stream._LIVING))}
        made._bound = len(made.pods)
        assert made._is_full(), "nodes fill while none are taken away"
        made._swept.add("0")
        made._bound -= stream._WAITING - 1
        assert not made._is_full()
        made._bound -= 1
        assert made._is_full(), "too many wait for a node"
