"""What is asked of a component that runs on this machine."""

import pytest

from testbed.layout import free_ports
from testbed.supervisor import answers


def test_a_component_that_is_not_there_does_not_answer() -> None:
    (port,) = free_ports(1)
    assert not answers("127.0.0.1", port)


def test_the_users_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be asked for an address on this machine, which it cannot know; the page is served without it."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid:9")
    asked: list[object] = []
    monkeypatch.setattr("urllib.request.ProxyHandler.proxy_open", lambda *arguments: asked.append(arguments))
    (port,) = free_ports(1)
    assert not answers("127.0.0.1", port)
    assert asked == []
