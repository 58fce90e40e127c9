"""Names are decoded once while their bytes come again, and no more is kept than was said."""

import pytest

from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.requests import MalformedError


def test_the_same_bytes_are_the_same_names() -> None:
    remembered = NodeNameCache()
    first = remembered.names(b'["a","b"]')
    assert first == ["a", "b"]
    assert remembered.names(bytes(bytearray(b'["a","b"]'))) is first
    assert remembered.names(b'["a","c"]') == ["a", "c"]


def test_the_oldest_go_first() -> None:
    remembered = NodeNameCache(entries=2)
    first = remembered.names(b'["a"]')
    second = remembered.names(b'["b"]')
    remembered.names(b'["c"]')
    assert remembered.names(b'["b"]') is second
    assert remembered.names(b'["a"]') is not first


def test_no_more_bytes_than_the_limit() -> None:
    remembered = NodeNameCache(limit=250)
    for raw in (b'["aaa"]', b'["bbb"]', b'["ccc"]'):
        remembered.names(raw)
        assert 0 < remembered.size <= 250
    assert remembered.names(b'["' + b"x" * 60 + b'"]') == ["x" * 60]
    assert remembered.size == 198, "what is longer than all that may be kept is not kept"


def test_where_two_are_too_many_bytes_the_older_one_goes() -> None:
    remembered = NodeNameCache(limit=150)
    first = remembered.names(b'["aaa"]')
    second = remembered.names(b'["bbb"]')
    assert remembered.size == 99
    assert remembered.names(b'["bbb"]') is second
    assert remembered.names(b'["aaa"]') is not first


def test_what_cannot_be_read_is_not_kept() -> None:
    remembered = NodeNameCache()
    for _ in range(2):
        with pytest.raises(MalformedError):
            remembered.names(b"[1]")
    assert remembered.size == 0
