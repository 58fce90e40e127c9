"""Exec plugins: programs that provide credentials (client.authentication.k8s.io, v1 and v1beta1)."""

import asyncio
import base64
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.kube.access.kubeconfig import EXEC_EXTENSION, Cluster, ConfigLocation, Exec
from fairlead.kube.access.secret_files import SecretSource
from fairlead.kube.errors import AccessError

_V1: Final = "client.authentication.k8s.io/v1"
_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"
_WITHIN_S: Final = 60.0
_ENDED_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 1 << 20
_OUTPUT_MAX: Final = 500


class PluginCredential(msgspec.Struct, frozen=True, rename="camel"):
    """Credential that a plugin printed."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: PluginCredential | None = None


_decoder: Final = msgspec.json.Decoder(_Credential)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An exec plugin with its arguments and environment."""

    command: str
    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    """Variables added to those of this process."""
    api_version: str
    hint: str
    file: str
    field: str

    async def ask(self) -> PluginCredential:
        """Run the plugin. Raises AccessError."""
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # so that it can be killed with all processes that it started
            )
        except OSError as error:
            hint = self.hint.strip() or "install it, or name it with its folder"
            raise self._wrong(f"{self.command}: {(error.strerror or str(error)).lower()}", hint) from error
        try:
            async with asyncio.timeout(_WITHIN_S):
                stdout, stderr = await process.communicate()
        except TimeoutError as error:
            raise self._wrong(f"{self.command} did not end within {_WITHIN_S:g} s", "run it by hand") from error
        finally:
            if process.returncode is None:
                await _end(process)
        if process.returncode:
            output = stderr[-_OUTPUT_MAX:].decode(errors="replace").strip()
            raise self._wrong(f"{self.command} failed with {process.returncode}: {output}", "run it by hand")
        return self._read(stdout)

    def _read(self, stdout: bytes) -> PluginCredential:
        """Return the credential in the output; it is a secret, so that no error repeats it."""
        hint = f"it must print an ExecCredential of {self.api_version}"
        try:
            found = _decoder.decode(stdout[:_ANSWER_BYTES_MAX])
        except msgspec.ValidationError as error:
            raise self._wrong(f"{self.command} printed something else: {error}", hint) from error
        except msgspec.DecodeError:
            raise self._wrong(f"{self.command} did not print JSON", hint) from None
        if found.kind != "ExecCredential" or found.api_version != self.api_version:
            raise self._wrong(f"{self.command} printed a {found.kind or 'nothing'} of {found.api_version!r}", hint)
        answer = found.status or PluginCredential()
        if bool(answer.client_certificate_data) != bool(answer.client_key_data):
            raise self._wrong(f"{self.command} printed a certificate or a key without the other", hint)
        if not answer.token.isprintable():
            raise self._wrong(f"{self.command} printed a token with more than one line", hint)
        if not answer.token and not answer.client_key_data:
            raise self._wrong(f"{self.command} printed neither a token nor a certificate", hint)
        return answer

    def _wrong(self, what: str, hint: str) -> AccessError:
        return AccessError(self.file, self.field, what, hint)


async def _end(process: Process) -> None:
    """Kill the plugin with all processes that it started: they keep its output open, and we would wait for them."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDED_S):
            await process.wait()


def plugin(wanted: Exec, at: ConfigLocation, cluster: Cluster, authority: SecretSource | None) -> Plugin:
    """Return the exec plugin of a kubeconfig's user. Raises AccessError."""
    field = f"{at.field}.exec"
    if wanted.api_version not in (_V1, _V1BETA1):
        hint = f"it must be {_V1} or {_V1BETA1}; a newer version of the program has it"
        raise AccessError(at.file, f"{field}.apiVersion", f"{wanted.api_version!r} is not known", hint)
    mode = wanted.interactive_mode or ("IfAvailable" if wanted.api_version == _V1BETA1 else "")
    if mode not in ("Never", "IfAvailable"):
        what = "there is no terminal" if mode == "Always" else f"{mode!r} is not known"
        raise AccessError(at.file, f"{field}.interactiveMode", what, "it must be Never or IfAvailable")
    info: dict[str, Any] = {"interactive": False}
    if wanted.provide_cluster_info:
        info["cluster"] = _described(cluster, authority)
    exec_info = {"kind": "ExecCredential", "apiVersion": wanted.api_version, "spec": info}
    environment = {one.name: one.value for one in wanted.env}
    environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(exec_info).decode()
    command = str(at.folder / wanted.command) if os.sep in wanted.command else wanted.command
    return Plugin(command, tuple(wanted.args), environment, wanted.api_version, wanted.install_hint, at.file, field)


def _described(cluster: Cluster, authority: SecretSource | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority.read()).decode() if authority else "",
        "proxy-url": cluster.proxy_url,
        "config": next((one.extension for one in cluster.extensions if one.name == EXEC_EXTENSION), None),
    }
    return {name: value for name, value in described.items() if value}
