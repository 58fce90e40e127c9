"""Programs that say who we are: client.authentication.k8s.io, v1 and v1beta1."""

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
_SAID_MAX: Final = 500


class PluginCredential(msgspec.Struct, frozen=True, rename="camel"):
    """Who we are, until when."""

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
    """A program, and all that it is told."""

    command: str
    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    """What is added to ours."""
    api_version: str
    hint: str
    file: str
    field: str

    async def ask(self) -> PluginCredential:
        """Run it."""
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env={**os.environ, **self.environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # so that it can be ended with all that it has started
            )
        except OSError as error:
            cure = self.hint.strip() or "install it, or name it with its folder"
            raise self._wrong(f"{self.command}: {(error.strerror or str(error)).lower()}", cure) from error
        try:
            async with asyncio.timeout(_WITHIN_S):
                said, complaint = await process.communicate()
        except TimeoutError as error:
            raise self._wrong(f"{self.command} did not end within {_WITHIN_S:g} s", "run it by hand") from error
        finally:
            if process.returncode is None:
                await _end(process)
        if process.returncode:
            told = complaint[-_SAID_MAX:].decode(errors="replace").strip()
            raise self._wrong(f"{self.command} failed with {process.returncode}: {told}", "run it by hand")
        return self._read(said)

    def _read(self, said: bytes) -> PluginCredential:
        """Its answer is a secret: no error repeats it."""
        cure = f"it must print an ExecCredential of {self.api_version}"
        try:
            found = _decoder.decode(said[:_ANSWER_BYTES_MAX])
        except msgspec.ValidationError as error:
            raise self._wrong(f"{self.command} printed something else: {error}", cure) from error
        except msgspec.DecodeError:
            raise self._wrong(f"{self.command} printed what is not JSON", cure) from None
        if found.kind != "ExecCredential" or found.api_version != self.api_version:
            raise self._wrong(f"{self.command} printed a {found.kind or 'nothing'} of {found.api_version!r}", cure)
        answer = found.status or PluginCredential()
        if bool(answer.client_certificate_data) != bool(answer.client_key_data):
            raise self._wrong(f"{self.command} printed a certificate or a key without the other", cure)
        if not answer.token.isprintable():
            raise self._wrong(f"{self.command} printed a token of more than one line", cure)
        if not answer.token and not answer.client_key_data:
            raise self._wrong(f"{self.command} printed neither a token nor a certificate", cure)
        return answer

    def _wrong(self, what: str, cure: str) -> AccessError:
        return AccessError(self.file, self.field, what, cure)


async def _end(process: Process) -> None:
    """What it has started holds on to its output, for whose end we would wait."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_ENDED_S):
            await process.wait()


def plugin(wanted: Exec, at: ConfigLocation, cluster: Cluster, authority: SecretSource | None) -> Plugin:
    """The program of a user of a kubeconfig."""
    field = f"{at.field}.exec"
    if wanted.api_version not in (_V1, _V1BETA1):
        cure = f"it must be {_V1} or {_V1BETA1}; a newer version of the program has it"
        raise AccessError(at.file, f"{field}.apiVersion", f"{wanted.api_version!r} is not known", cure)
    mode = wanted.interactive_mode or ("IfAvailable" if wanted.api_version == _V1BETA1 else "")
    if mode not in ("Never", "IfAvailable"):
        what = "there is nobody to ask" if mode == "Always" else f"{mode!r} is not known"
        raise AccessError(at.file, f"{field}.interactiveMode", what, "it must be Never or IfAvailable")
    info: dict[str, Any] = {"interactive": False}
    if wanted.provide_cluster_info:
        info["cluster"] = _described(cluster, authority)
    told = {"kind": "ExecCredential", "apiVersion": wanted.api_version, "spec": info}
    environment = {one.name: one.value for one in wanted.env}
    environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(told).decode()
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
