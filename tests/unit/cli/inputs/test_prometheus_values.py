"""Measured values that `fairlead explain` asks a server for, with the caller's own token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest
import yaml

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.prometheus_values import servers_of
from fairlead.cli.main import main
from support.simulation.snapshot import listed, node, pod
from support.webhook.polled import reply, series

TOKEN: Final = "of-mine"
POLICY: Final = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "SchedulerExtenderPolicy",
    "metadata": {"name": "p"},
    "spec": {
        "data": [{"name": "load", "prometheus": {"query": "load"}}],
        "filters": [{"name": "idle", "expression": "data.load < 0.5", "reason": "busy"}],
    },
}


@contextmanager
def server(*, moved: bool = False) -> Iterator[str]:
    """A server that wants the token, and knows the load of two nodes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            has_token = self.headers.get("Authorization") == f"Bearer {TOKEN}"
            body = reply(series("0.9", instance="a:9100"), series("0.1", instance="b:9100")) if has_token else b"{}"
            self.send_response(302 if moved else 200 if has_token else 401)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{served.server_port}"
    finally:
        served.shutdown()
        served.server_close()
        thread.join()


def files(folder: Path) -> list[str]:
    """The arguments that name a policy, a snapshot and a token."""
    (folder / "p.yaml").write_text(yaml.safe_dump(POLICY))
    (folder / "now.json").write_text(json.dumps(listed(node("a"), node("b"), pod("x"))))
    (folder / "token").write_text(TOKEN)
    return [
        "explain",
        "pod/x",
        "-n",
        "ml",
        "--policies",
        str(folder / "p.yaml"),
        "--snapshot",
        f"{folder}/now.json",
    ]


def test_rules_are_judged_by_what_the_server_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = files(tmp_path)
    with server() as url:
        given = ["--prometheus", f"default={url}", "--prometheus-token", str(tmp_path / "token"), "-o", "json"]
        assert main([*asked, *given]) == 0
    said = capsys.readouterr().out
    assert '"busy"' in said
    assert "not evaluated" not in said


@pytest.mark.parametrize(("moved", "want"), [(False, "401"), (True, "302")])
def test_without_an_answer_the_rule_is_left_out_and_the_error_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    moved: bool,
    want: str,
) -> None:
    asked = files(tmp_path)
    with server(moved=moved) as url:
        assert main([*asked, "--prometheus", f"default={url}"]) == 1
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert "UNKNOWN: " in said
    assert "possible" not in said.partition("\n\n")[0].partition("UNKNOWN")[0]
    assert "not evaluated: p/idle: it reads data.load" in said
    assert "prometheus default: load" in said
    assert want in said


WRONG: Final = {
    ("default",): "--prometheus: write NAME=URL",
    ("default=ftp://host",): "--prometheus default: url",
    ("default=http://me:secret@host",): "--prometheus default: url",
    ("a=http://host", "a=http://other"): "--prometheus a: is given twice",
}


@pytest.mark.parametrize(("written", "want"), WRONG.items())
def test_what_names_no_server_is_refused(written: tuple[str, ...], want: str) -> None:
    with pytest.raises(CommandError, match=want) as raised:
        servers_of(written)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (["--prometheus", "other=http://127.0.0.1:1"], "--prometheus other: the policies ask no server of that name"),
        (["--prometheus-token", "token"], "--prometheus-token: is for servers"),
    ],
)
def test_what_does_not_fit_the_policies_is_refused(
    given: list[str], want: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files(tmp_path), *given]) == 2
    assert want in capsys.readouterr().err
