"""Exec plugins, run by the official client: a plugin that fails is an error, and one that asks has the terminal."""

import base64
import os
import sys
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fairlead.kube.access.kubeconfig import Entry
from fairlead.kube.access.official_client import ConfigException, ConfigNode, ExecProvider
from fairlead.kube.errors import AccessError

_OUTPUT_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class PluginAnswer:
    """Credential that a plugin printed."""

    token: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)
    expires: datetime


def run_plugin(config: Mapping[str, Any], user: Entry, cluster: Entry, authority: bytes) -> PluginAnswer:
    """Run the plugin of a user, without a time limit: it may wait for a person. Raises AccessError."""
    command = str(config["command"])
    if os.sep in command:
        command = str(user.folder / command)
    streams = (sys.stdin, sys.stderr)  # None if they are closed
    at_terminal = all(one is not None and one.isatty() for one in streams)
    interactive = config.get("interactiveMode") != "Never" and at_terminal
    if config.get("interactiveMode") == "Always" and not interactive:
        raise user.wrong("exec.interactiveMode", "is Always, and there is no terminal", "log in at a terminal")
    provider = ExecProvider(
        ConfigNode("exec", {**config, "command": command}), None, ConfigNode("cluster", _described(cluster, authority))
    )
    try:
        # The library hands the terminal to a plugin if stdout is one. kubectl does if stdin is: a device code must be
        # seen in `fairlead status | grep gpu` too.
        with redirect_stdout(sys.stderr) if interactive else nullcontext():
            status = provider.run()
    except OSError as error:
        hint = str(config.get("installHint") or "").strip() or "install it, or name it with its folder"
        raise _wrong(user, f"{command}: {(error.strerror or str(error)).lower()}", hint) from error
    except ConfigException as error:
        text = str(error).removeprefix("exec: ").removeprefix("process ")
        raise _wrong(user, f"{command}: {text[:40] + text[40:][-_OUTPUT_MAX:]}", "run it by hand") from error
    except AttributeError as error:  # the library looks for text that has gone to the terminal
        raise _wrong(user, f"{command} failed", "see its own message above") from error
    except (TypeError, KeyError) as error:
        raise _wrong(user, f"{command} printed something else", _hint(config)) from error
    return _answer(status, user, command, _hint(config))


def _answer(status: object, user: Entry, command: str, hint: str) -> PluginAnswer:
    """Return the credential; it is a secret, so that no error repeats it."""
    fields = status if isinstance(status, dict) else {}
    names = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
    texts = [fields.get(name) or "" for name in names]
    if not all(isinstance(text, str) for text in texts):
        raise _wrong(user, f"{command} printed something else", hint)
    token, certificate, key, until = texts
    if bool(certificate) != bool(key):
        raise _wrong(user, f"{command} printed a certificate or a key without the other", hint)
    if not token.isprintable():
        raise _wrong(user, f"{command} printed a token with more than one line", hint)
    if not token and not key:
        raise _wrong(user, f"{command} printed neither a token nor a certificate", hint)
    try:
        expires = datetime.fromisoformat(until) if until else datetime.max.replace(tzinfo=UTC)
    except ValueError as error:
        raise _wrong(user, f"{command} printed an expirationTimestamp that is no time", hint) from error
    return PluginAnswer(token, certificate, key, expires if expires.tzinfo else expires.replace(tzinfo=UTC))


def _described(cluster: Entry, authority: bytes) -> dict[str, Any]:
    described = {name: value for name, value in cluster.fields.items() if name != "certificate-authority"}
    if authority:
        described["certificate-authority-data"] = base64.b64encode(authority).decode()
    return described


def _hint(config: Mapping[str, Any]) -> str:
    return f"it must print an ExecCredential of {config['apiVersion']}"


def _wrong(user: Entry, what: str, hint: str) -> AccessError:
    return user.wrong("exec", what, hint)
