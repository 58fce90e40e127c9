"""Time that a user waits for a command."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Final

import yaml

from bench import cluster
from bench.apiserver import write_kubeconfig
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main


def help_(size: Size) -> list[float]:
    """`fairlead --help`, from the start of Python to its end."""
    return _taken(size, "--help")


def lint(size: Size) -> list[float]:
    """`fairlead lint` of one small policy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(yaml.safe_dump(cluster.plain([cluster.SIMPLE])))
        return _taken(size, "lint", str(file))


def lint_100(size: Size) -> list[float]:
    """`fairlead lint` of a folder with 100 policies, each with a variable, three filters and a score, no two alike."""
    with tempfile.TemporaryDirectory() as folder:
        for at in range(100):
            filters = [rule.replace("'z9'", f"'z{at}'").replace("2.0", f"{at}.0") for rule in cluster.FILTERS]
            policy = cluster.plain(filters, cluster.SCORES)
            policy["metadata"] = {"name": f"policy-{at}"}
            Path(folder, f"{at}.yaml").write_text(yaml.safe_dump(policy))
        return _taken(size, "lint", folder)


def explain(size: Size) -> list[float]:
    """`fairlead explain --pending -A` on a cluster with a policy, ten nodes and a waiting pod: processor time."""
    return _processor_time(size, "explain", "--pending", "-A")


def simulate(size: Size) -> list[float]:
    """`fairlead simulate --policies live` on the same cluster: processor time."""
    return _processor_time(size, "simulate", "--policies", "live")


def _processor_time(size: Size, *arguments: str) -> list[float]:
    command = [sys.executable, "-m", "fairlead", *arguments]
    with _api_server() as kubeconfig:
        return timed(
            lambda _: subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "KUBECONFIG": str(kubeconfig)}
            ),
            max(1, size.rounds // 10),
            lambda: None,
            _of_children,
        )


def _of_children() -> float:
    """Seconds of processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def _api_server() -> Iterator[Path]:
    """Serve a small cluster meanwhile; its kubeconfig."""
    policy = cluster.plain([cluster.SIMPLE]) | {"metadata": {"name": "bench", "uid": "bench", "generation": 1}}
    policy["status"] = {"observedGeneration": 1, "servingGeneration": 1, "conditions": []}
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    nodes = [{"metadata": {"name": f"n{at}"}, "status": {"allocatable": amounts}} for at in range(10)]
    pod = {
        "metadata": {"name": "waits", "namespace": "default"},
        "spec": {"schedulerName": "fairlead", "containers": [{"name": "c"}]},
        "status": {"phase": "Pending"},
    }
    answers: dict[str, dict[str, object]] = {
        "/version": {"gitVersion": "v1.37.1"},
        "/api/v1/nodes": {"metadata": {}, "items": nodes},
        "/api/v1/pods": {"metadata": {}, "items": [pod]},
        "/api/v1/namespaces": {"metadata": {}, "items": [{"metadata": {"name": "default"}}]},
        "/api/v1/configmaps": {"metadata": {}, "items": []},
        "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies": {"metadata": {}, "items": [policy]},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            data = json.dumps(answer or {"kind": "Status", "code": 404, "message": "not found"}).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield write_kubeconfig(Path(folder, "kubeconfig"), server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _taken(size: Size, *arguments: str) -> list[float]:
    command = [sys.executable, "-m", "fairlead", *arguments]
    return timed(
        lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
        max(1, size.rounds // 10),
        lambda: None,
        perf_counter,
    )


BENCHMARKS: Final[Benchmarks] = (
    {
        "help-start": Benchmark("ms", help_),
        "explain-processor": Benchmark("ms", explain),
        "simulate-processor": Benchmark("ms", simulate),
        "lint-start": Benchmark("ms", lint),
        "lint-100-policies": Benchmark("ms", lint_100),
    }
    if find_spec("fairlead.cli")
    else {}
)

if __name__ == "__main__":
    main(BENCHMARKS)
