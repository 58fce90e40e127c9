"""Calls after a rest: real servers side by side, and a client that encodes, sends and decodes as kube-scheduler does.

A call after 50 ms of rest takes twice as long as one that follows another: what it reads has left the processor's
caches. So each server is called after a pause and after a watch event, about the names in another order, in turn with
the others; what differs between them is then not the machine. `python -m bench.cold --base CHECKOUT` compares with
another checkout, which has a `.venv` of its own. Takes about a minute for each case and pause.
"""

import argparse
import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import cluster, programs
from bench.apiserver import ApiServer
from bench.histogram import Totals, totals
from bench.programs import Extender
from bench.stage import CASES, OWN, RECORDED, Case, pod, policy_of, template_of_nodes, verbs_of
from bench.throughput_report import ratio
from testbed import node_template
from testbed.api import Object

BASE: Final = "base"
SWITCHES: Final[Mapping[str, Sequence[str]]] = {"not ahead": ("--no-prioritize-ahead",)}
"""Variants that do without something, by the options that turn it off."""
PEERS: Final = (RECORDED, "limit", "bare")
_NUMBER: Final = "@NUMBER@"
_DURATION: Final = "fairlead_webhook_request_duration_seconds"
_VERBS: Final = ("filter", "prioritize")
_PLACES: Final = 97


def main() -> int:
    """Measure and print."""
    given = _parser().parse_args()
    with tempfile.TemporaryDirectory() as text, _Cluster(given.nodes).serving() as around:
        for letter in given.cases.split(","):
            folder = Path(text, letter)
            folder.mkdir()
            with _extenders(given, CASES[letter], around, folder) as extenders:
                for pause_ms in given.pauses.split(","):
                    print(f"case {letter}, {pause_ms} ms apart, {given.calls} pods", flush=True)
                    url = "" if given.no_events else around.url
                    for line in _measured(extenders, CASES[letter], around, url, folder, given.calls, int(pause_ms)):
                        print(line, flush=True)
    return 0


@dataclass(eq=False)
class _Cluster:
    """An API server that is a part of the benchmark, and sends watch events when it is told to."""

    many: int
    api: ApiServer = field(default_factory=ApiServer)
    names: list[str] = field(default_factory=list)
    url: str = ""
    """URL that has it send an event: a pod came, and the one before it was placed."""
    _count: int = 0

    @contextmanager
    def serving(self) -> Iterator["_Cluster"]:
        """Serve meanwhile."""
        nodes = node_template.make(self.many, template_of_nodes(), seed=1)
        for at, node in enumerate(nodes):
            node["metadata"] |= {"uid": f"u{at}", "resourceVersion": "1"}
        self.names = [node["metadata"]["name"] for node in nodes]
        self.api.have("nodes", (json.dumps(node).encode() for node in nodes))
        namespace = {"metadata": {"name": cluster.SCHEDULER, "uid": "u", "resourceVersion": "1"}}
        self.api.have("namespaces", [json.dumps(namespace).encode()])
        with self.api.serving():
            server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            self.url = f"http://127.0.0.1:{server.server_port}/"
            try:
                yield self
            finally:
                server.shutdown()
                server.server_close()
                thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        around = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                around.send_event()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler

    def send_event(self) -> None:
        """Add a pod, and place the one before it."""
        self._count += 1
        before, this = (_pod_object(f"event-{self._count + at}", str(2 * self._count + at)) for at in (-1, 0))
        self.api.tell("unplaced", _event("ADDED", this))
        if self._count > 1:
            self.api.tell("unplaced", _event("DELETED", before))
            before["spec"]["nodeName"] = self.names[self._count * _PLACES % len(self.names)]
            self.api.tell("pods", _event("ADDED", before))


def _event(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", **item}}).encode() + b"\n"


def _pod_object(name: str, version: str) -> Object:
    """Return a pod as the API server completes it."""
    made = pod(0)
    metadata = {"name": name, "namespace": cluster.SCHEDULER, "uid": f"u-{name}", "resourceVersion": version}
    tolerated = [f"node.kubernetes.io/{state}" for state in ("not-ready", "unreachable")]
    spec = {
        "priority": 0,
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in tolerated
        ],
    }
    return {
        "metadata": {**made["metadata"], **metadata, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {**made["spec"], **spec},
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


@contextmanager
def _extenders(
    given: argparse.Namespace, case: Case, around: _Cluster, folder: Path
) -> Iterator[Mapping[str, Extender]]:
    """Run all that are compared; the first is the one that the others are compared with."""
    kubeconfig = around.api.kubeconfig(folder / "kubeconfig")
    pythons = {} if given.base is None else {BASE: str(given.base / ".venv/bin/python")}
    with ExitStack() as stack:

        def own(name: str, **options: Any) -> Extender:
            place = folder / name.replace(" ", "-")
            place.mkdir()
            return stack.enter_context(programs.fairlead_running(place, [policy_of(case)], kubeconfig, **options))

        found = {name: own(name, python=python) for name, python in pythons.items()}
        found[OWN] = own(OWN)
        found |= {name: own(name, options=options) for name, options in SWITCHES.items() if not given.no_switches}
        for name in PEERS:
            found[name] = stack.enter_context(_peer(name, found[OWN], case, around.names, folder / name.split()[0]))
        yield found


@contextmanager
def _peer(name: str, own: Extender, case: Case, names: list[str], folder: Path) -> Iterator[Extender]:
    if name != RECORDED:
        with programs.peer_running(name, *(["-keep"] if name == "limit" else [])) as peer:
            yield peer
        return
    folder.mkdir()
    programs.record(own, _pod_object("recorded", "1"), names, verbs_of(case), folder)
    with programs.peer_running_over_tls("limit", folder, f"-replies={folder}") as peer:
        yield peer


@dataclass(frozen=True, slots=True)
class _Look:
    """Counters of a server at a moment."""

    processor_s: float
    verbs: Mapping[str, Totals]

    @classmethod
    def at(cls, extender: Extender) -> "_Look":
        """Read them."""
        used = programs.processor_s(extender.pid)
        if not extender.probes:
            return cls(used, {})
        lines = extender.metrics().splitlines()
        verbs = {verb: "\n".join(line for line in lines if f'verb="{verb}"' in line) for verb in _VERBS}
        return cls(used, {verb: totals(text, _DURATION) for verb, text in verbs.items()})


def _measured(
    extenders: Mapping[str, Extender], case: Case, around: _Cluster, url: str, folder: Path, calls: int, pause_ms: int
) -> Iterator[str]:
    """Call all in turn; a line for each: medians in ms, and as a part of the first one's, with an interval (95 %).

    `url` has watch events sent before each call; none are if it is empty.
    """
    (folder / "pod").write_text(json.dumps(_pod_object(f"web-{_NUMBER}", "1")))
    (folder / "names").write_text(json.dumps(around.names))
    before = {name: _Look.at(one) for name, one in extenders.items()}
    targets = [
        json.dumps({"URL": one.url, "Certificates": str(one.certificates or ""), "Scores": bool(case.scores)})
        for one in extenders.values()
    ]
    command = [str(programs.peer("pacer")), f"-calls={calls}", f"-pause={pause_ms}ms", f"-event={url}"]
    command += [f"-pod={folder / 'pod'}", f"-names={folder / 'names'}", *targets]
    took = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    first = list[float]()
    for (name, one), pairs in zip(extenders.items(), took, strict=True):
        both = [sum(pair) / 1e6 for pair in pairs]
        parts = [median(pair[at] for pair in pairs) / 1e6 for at in range(2)]
        first = first or both
        part = ratio(both, first)
        after, was = _Look.at(one), before[name]
        means = {verb: after.verbs[verb].since(was.verbs[verb]).mean_ms for verb in after.verbs}
        server = ", ".join(f"{verb} {mean:.3f}" for verb, mean in means.items() if mean == mean)
        used = 1000 * (after.processor_s - was.processor_s) / len(pairs)
        yield (
            f"  {name:16} filter {parts[0]:6.3f}, prioritize {parts[1]:6.3f}, both {median(both):6.3f} ms "
            f"({part.value:.3f}, {part.low:.3f} to {part.high:.3f}; least {min(both):.3f}); processor {used:.2f} ms"
            f"{f'; server, mean: {server} ms' if server else ''}"
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, metavar="CHECKOUT", help="a checkout to compare with")
    parser.add_argument("--cases", default="a,b", help="letters of cases (default: %(default)s)")
    parser.add_argument("--pauses", default="0,5,50", metavar="MS,...", help="before each pod (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--calls", type=int, default=150, help="pods for each (default: %(default)s)")
    parser.add_argument("--no-events", action="store_true", help="send none: they are in the processor time of all")
    parser.add_argument("--no-switches", action="store_true", help="leave out the variants that do without something")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
