"""What is counted of a stream of pods, and what is read of a log that moves on."""

import json
import queue
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from support.stream import Follow, Stream, StreamedPod, stream, table, tally, wrong
from testbed.api import Api, Object, wait_for


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
        ([pod("p", 201, created=70.0, took=1.1)], [], ["slow for 60 s"]),
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
