"""Who may call, and what it takes for the scheduler to keep a connection."""

import http.client
import json
import re
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from extender import Answer, Recorder, Scene
from extender.replies import Form, passing
from testbed.certs import Authority

_PODS = 20


def test_a_caller_without_a_certificate_is_turned_away(recorder: Recorder) -> None:
    url = urlsplit(recorder.entry("gate")["urlPrefix"])
    tls = recorder.tls()
    for certificate in (False, True):
        context = ssl.create_default_context(cafile=tls["caFile"])
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the authority of the tests has no key identifier
        if certificate:
            context.load_cert_chain(tls["certFile"], tls["keyFile"])
        connection = http.client.HTTPSConnection(str(url.netloc), context=context, timeout=30)
        try:
            connection.request(
                "POST", "/gate/filter", json.dumps({"Pod": {"metadata": {"name": "web"}}, "NodeNames": []})
            )
            assert connection.getresponse().status == 200
            assert certificate
        except (ssl.SSLError, ConnectionError):
            assert not certificate
        finally:
            connection.close()
    assert [call.pod for call in recorder.calls] == ["web"]


def test_a_scheduler_without_a_certificate_is_turned_away(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.start(scene.recorder.entry("gate", "filter", tlsConfig=scene.recorder.tls(certificate=False)))
    scene.make_pod("web")
    # in TLS 1.3 the client is ready before it is refused: the end of the connection may overtake the alert
    # that says why, and even the request, if Go takes it for the end of an idle connection
    ends = "certificate required|EOF|reset|server closed idle connection"
    assert re.search(ends, scene.refusal("web", "SchedulerError"))
    assert scene.recorder.calls == []


def test_the_scheduler_trusts_only_the_authority_that_it_was_given(scene: Scene, tmp_path: Path) -> None:
    scene.make_nodes(1)
    strange = scene.recorder.tls() | {"caFile": str(Authority(tmp_path).certificate)}
    scene.start(scene.recorder.entry("gate", "filter", tlsConfig=strange))
    scene.make_pod("web")
    assert "certificate signed by unknown authority" in scene.refusal("web", "SchedulerError")


_FORMS = {
    "a reply with Content-Length keeps its connection": (Form.LENGTH, 1),
    "so does a chunked reply that is sent in one piece": (Form.CHUNKED_WHOLE, 1),
    "a chunked reply whose end is sent by itself costs it": (Form.CHUNKED_APART, _PODS),
    "a reply that says that it is the last costs it, and no call": (Form.LAST, _PODS),
}


@pytest.mark.parametrize("case", _FORMS)
def test_how_many_connections_the_calls_take(scene: Scene, case: str) -> None:
    form, want_connections = _FORMS[case]
    scene.make_nodes(1)
    scene.recorder.replies["gate/filter"] = lambda request: Answer(json.dumps(passing(request)).encode(), form=form)
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pods([f"web-{number}" for number in range(_PODS)])
    scene.all_placed()
    calls = scene.recorder.of("gate/filter")
    assert (len(calls), len({call.connection for call in calls})) == (_PODS, want_connections)


def test_the_entries_of_one_extender_share_no_connection(scene: Scene) -> None:
    scene.make_nodes(2)
    scene.start(scene.recorder.entry("gate", "filter"), scene.recorder.entry("scores", "prioritize"))
    scene.make_pods([f"web-{number}" for number in range(_PODS)])
    scene.all_placed()
    filters, scores = (
        {call.connection for call in scene.recorder.of(path)} for path in ("gate/filter", "scores/prioritize")
    )
    assert (len(filters), len(scores), filters & scores) == (1, 1, set())


def test_a_call_is_plain_http_with_a_length_and_no_name_of_its_own(scene: Scene) -> None:
    scene.make_nodes(1)
    scene.start(scene.recorder.entry("gate", "filter"))
    scene.make_pod("web")
    scene.placed("web")
    [call] = scene.recorder.calls
    assert dict(call.headers) == {
        "Host": urlsplit(scene.recorder.entry("gate")["urlPrefix"]).netloc,
        "User-Agent": "Go-http-client/1.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(call.body)),
        "Accept-Encoding": "gzip",
    }
