from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from fairlead.api.errors import InvalidObjectError
from fairlead.render.operator_settings import parse_settings
from fairlead.render.prometheus_settings import PrometheusServer

EVERYTHING: dict[str, Any] = {
    "name": "ops",
    "url": "https://prometheus.monitoring.svc:9091/tenant/a",
    "ca": {"configMap": "service-ca", "key": "service-ca.crt"},
    "serverName": "prometheus.example.com",
    "serviceAccount": {"audience": "prometheus"},
    "clientCertificate": {"secret": "prometheus-client"},
    "headers": [{"name": "X-Scope-OrgID", "value": "ops team"}],
    "timeout": "10s",
    "maxEntries": 100,
}
URL = "write http:// or https://, a host and, if there is one, a port and a path"
KEPT = "must not hold credentials; give bearerToken, serviceAccount or basicAuth"
BAD: Mapping[str, tuple[dict[str, Any], str]] = {
    "no URL": ({"url": "prometheus:9090"}, f"url: 'prometheus:9090' is not possible here; {URL}"),
    "another protocol": ({"url": "ftp://a"}, f"url: 'ftp://a' is not possible here; {URL}"),
    "nothing": ({"url": ""}, "url: must not be empty"),
    "no host": ({"url": "https:///metrics"}, "url: 'https:///metrics' is not possible here"),
    "a query": ({"url": "https://a/?dedup=true"}, "no query and no fragment"),
    "a fragment": ({"url": "https://a/#graph"}, "no query and no fragment"),
    "a space": ({"url": "https://a/b c"}, "url: 'https://a/b c' is not possible here"),
    "a second line": ({"url": "https://a/b\n"}, r"url: 'https://a/b\n' is not possible here"),
    "a password": ({"url": "https://me:hunter2@a"}, "url: must not have a user or a password; give basicAuth"),
    "a user": ({"url": "https://me@a/b"}, "url: must not have a user or a password; give basicAuth"),
    "a port that is none": ({"url": "https://a:99999"}, "url: has no valid host and port; write a URL such as"),
    "half an address": ({"url": "https://[::1"}, "url: has no valid host and port; write a URL such as"),
    "no authority": ({"ca": {"key": "ca.crt"}}, "ca: give exactly one of secret, configMap; found none"),
    "two authorities": (
        {"ca": {"secret": "a", "configMap": "b", "key": "ca.crt"}},
        "ca: give exactly one of secret, configMap; found secret configMap",
    ),
    "an authority without its key": ({"ca": {"secret": "a"}}, "ca.key: is missing; key that holds the certificates"),
    "an authority in itself": ({"ca": "-----BEGIN"}, "ca: must be a map of fields, not '-----BEGIN'; its fields are"),
    "an authority for nothing": (
        {"url": "http://a", "ca": {"secret": "a", "key": "b"}},
        "ca: is for https; write https:// in url, or leave this out",
    ),
    "a name for nothing": ({"url": "http://a", "serverName": "b"}, "serverName: is for https; write https:// in url"),
    "a certificate for nothing": (
        {"url": "http://a", "clientCertificate": {"secret": "b"}},
        "clientCertificate: is for https; write https:// in url",
    ),
    "no name of a server": ({"serverName": "a b"}, "serverName: 'a b' is not possible here; write a name such as"),
    "two logins": (
        {"bearerToken": {"secret": "a", "key": "b"}, "serviceAccount": {}},
        "bearerToken, serviceAccount and basicAuth exclude each other; give one of them",
    ),
    "two other logins": (
        {"serviceAccount": {}, "basicAuth": {"secret": "a"}},
        "bearerToken, serviceAccount and basicAuth exclude each other; give one of them",
    ),
    "a token in itself": ({"bearerToken": "abc"}, "bearerToken: must be a map of fields, not 'abc'; its fields are"),
    "no key": ({"bearerToken": {"secret": "a"}}, "bearerToken.key: is missing; key that holds the value"),
    "a path for a key": (
        {"bearerToken": {"secret": "a", "key": "../b"}},
        "bearerToken.key: '../b' is not possible here; write a key of the object, such as ca.crt",
    ),
    "no verification": ({"insecureSkipVerify": True}, "insecureSkipVerify: there is no such field; the fields here"),
    "no verification at all": ({"tlsConfig": {"insecure": True}}, "tlsConfig: there is no such field; the fields"),
    "a login": ({"headers": [{"name": "authorization", "value": "x"}]}, f"headers[0].name: {KEPT}"),
    "a login of a proxy": ({"headers": [{"name": "Proxy-Authorization", "value": "x"}]}, f"headers[0].name: {KEPT}"),
    "a session": ({"headers": [{"name": "Cookie", "value": "x"}]}, f"headers[0].name: {KEPT}"),
    "a header of ours": (
        {"headers": [{"name": "a", "value": "b"}, {"name": "HOST", "value": "x"}]},
        "headers[1].name: is set by the operator; leave it out",
    ),
    "a header twice": (
        {"headers": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]},
        "headers[1]: name 'a' is a duplicate; list each only once",
    ),
    "no header": ({"headers": [{"name": "a b", "value": "x"}]}, "headers[0].name: 'a b' is not possible here; write"),
    "two lines": ({"headers": [{"name": "a", "value": "b\r\nc: d"}]}, "write one line of ASCII, without spaces at its"),
    "no time": ({"timeout": "0s"}, "timeout: '0s' is not possible here; write a duration"),
    "a long time": ({"timeout": "31s"}, "from 1s to 30s"),
    "nothing to ask": ({"maxEntries": 0}, "maxEntries: must be at least 1, not 0"),
    "too much": ({"maxEntries": 513}, "maxEntries: must be at most 512, not 513"),
    "no name": ({"name": None}, "name: is missing; name that policies give as server"),
    "a name that is no folder": ({"name": "../a"}, "name: '../a' is not possible here; write a name such as"),
}


def read(*servers: object) -> tuple[PrometheusServer, ...]:
    return parse_settings(yaml.safe_dump({"prometheus": [*servers]})).prometheus


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_said_with_its_field_and_its_cure(case: str) -> None:
    given, want = BAD[case]
    with pytest.raises(InvalidObjectError) as refused:
        read({"name": "default", "url": "https://a"} | given)
    assert len(refused.value.errors) == 1
    assert str(refused.value).startswith("prometheus[0]")
    assert want in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_server_is_listed_once() -> None:
    with pytest.raises(InvalidObjectError, match=r"prometheus\[1\]: name 'a' is a duplicate; list each only once"):
        read({"name": "a", "url": "http://a"}, {"name": "a", "url": "http://b"})


def test_a_name_and_a_url_are_enough() -> None:
    (one,) = read({"name": "default", "url": "http://prometheus.monitoring:9090"})
    assert one.model_dump(exclude_defaults=True) == {"name": "default", "url": "http://prometheus.monitoring:9090"}
    assert (one.timeout.seconds, one.max_entries, one.headers, one.server_name) == (5, 64, (), "")


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "https://a/",
        "https://a:9091/b/c-d_e%20f",
        "http://10.0.0.1:80",
        "https://[fd00::1]:443/x",
        "http://A.b",
    ],
)
def test_what_a_url_may_be(url: str) -> None:
    assert read({"name": "a", "url": url})[0].url == url


def test_what_is_written_is_what_is_read() -> None:
    (one,) = read(EVERYTHING)
    assert one.model_dump(by_alias=True, exclude_unset=True, mode="json") == EVERYTHING
    other = {"name": "b", "url": "http://b", "basicAuth": {"secret": "login"}}
    assert read(EVERYTHING, other)[1].basic_auth is not None
