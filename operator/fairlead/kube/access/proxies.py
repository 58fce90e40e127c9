"""Proxies of the environment, for the command line."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def environment_proxy(server: str, environment: Mapping[str, str]) -> str:
    """Return the proxy for a server from HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as kubectl reads them; may be empty."""
    address = urlsplit(server)
    host = (address.hostname or "").rstrip(".")
    name = f"{address.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name) or ""
    excluded = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _is_local(host) or any(_covers(one.strip(), host, address.port) for one in excluded.split(",")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _covers(pattern: str, host: str, port: int | None) -> bool:
    if pattern == "*":
        return True
    name, colon, only_port = pattern.rpartition(":")
    if colon and only_port.isdecimal() and ":" not in name:
        if port != int(only_port):
            return False
        pattern = name
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        pattern = pattern.lower().removeprefix("*")
        suffix = pattern if pattern.startswith(".") else f".{pattern}"
        return bool(pattern) and (host == pattern or host.endswith(suffix))
