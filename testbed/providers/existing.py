"""A cluster that exists: whatever KUBECONFIG names.

Nothing in it is changed, but for the nodes that the testbed is asked to make.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import yaml

from testbed import cache, kwok, process
from testbed.api import Api, ApiError, Object
from testbed.errors import ClusterError
from testbed.kwok import LABEL
from testbed.layout import folder_of
from testbed.phases import say
from testbed.providers import context as contexts
from testbed.providers import folder as folders
from testbed.providers.context import Context
from testbed.providers.protocol import Part
from testbed.readiness import is_ready

_KWOK = "{}={}".format(*LABEL)


class Existing:
    """The provider `existing`."""

    NAME = "existing"

    def __init__(self, cluster: str, *, kubernetes: str | None = None, node: bool | None = None) -> None:
        """`kubernetes` and `node` are what the cluster has to be like already; None takes it as it is."""
        self.cluster = cluster
        self._wanted_version = kubernetes
        self._wanted_node = node
        self._folder = folder_of(cluster)
        self._copy = self._folder / "kubeconfig"

    def up(self) -> None:
        """See that the cluster can be reached, and keep a copy of what reaches it."""
        with folders.held(self.cluster, self.NAME):
            context = contexts.read_current(contexts.paths(os.environ))
            if self._copy.exists() and (there := contexts.read_current([self._copy]).server) != context.server:
                raise ClusterError(
                    f"{self.cluster} is the cluster at {there}, and {context.source} now names {context.server}",
                    cure="`python -m testbed down` first, or give this one another --name",
                )
            new = self._folder / "kubeconfig.new"
            cache.write(new, yaml.safe_dump(context.document, sort_keys=False), mode=0o600)
            try:
                version = self._examine(new, context)
                folders.claim(self.cluster, self.NAME)
                new.replace(self._copy)
            finally:
                new.unlink(missing_ok=True)
                if not self._copy.exists():
                    folders.remove(self._folder)
            kwok.heal(self._folder, self._copy)
            say(f"{self.cluster} is {context} with Kubernetes {version}")

    def down(self) -> None:
        """Remove what the testbed made: its processes, which would make it again, its nodes, its folder."""
        with folders.held(self.cluster, self.NAME):
            process.kill_all(self._folder)
            if self._copy.exists():
                self._remove_nodes()
            folders.remove(self._folder)

    def status(self) -> Sequence[Part]:
        """The API server, each node that is not ours, ours in one line, and our processes."""
        if not self._copy.exists():
            return []
        api = Api(self._copy)
        try:
            version = api.get("/version")["gitVersion"]
            nodes = api.items("/api/v1/nodes")
        except ClusterError as error:
            return [Part("kube-apiserver", "dead", f"{api.url}: {error.what}")]
        finally:
            api.close()
        server = Part("kube-apiserver", "running", f"{version} at {api.url}")
        return [server, *_nodes(nodes), *folders.processes(self._folder)]

    def kubeconfig(self) -> Path:
        """The file that lets kubectl and everything else reach it."""
        if not self._copy.exists():
            raise ClusterError(
                f"there is no cluster {self.cluster}", cure="`python -m testbed --provider existing up` first"
            )
        return self._copy

    def programs(self) -> Sequence[Path]:
        """The folders of kubectl and helm."""
        api = Api(self.kubeconfig())
        try:
            return folders.programs(folders.nearest(str(api.get("/version")["gitVersion"])))
        finally:
            api.close()

    def load(self, archive: Path) -> NoReturn:
        """There is no way to a strange cluster's nodes."""
        raise ClusterError(
            f"{archive} cannot be brought to the nodes of {self.cluster}, which the testbed did not make",
            cure="push the image to a registry that the cluster reaches, and name it as it is called there",
        )

    def logs(self) -> dict[str, str]:
        """Logs of the processes that the testbed started."""
        return folders.logs(self._folder)

    def _examine(self, kubeconfig: Path, context: Context) -> str:
        """The server's version, once it answers and is what was asked for."""
        where = str(context)
        try:
            api = Api(kubeconfig)
        except Exception as error:
            raise ClusterError(f"{where} cannot be used: {error}", cure="see that kubectl reaches it") from error
        try:
            version = str(api.get("/version")["gitVersion"])
            nodes = api.items("/api/v1/nodes")
        except ApiError as error:
            raise ClusterError(
                f"{where} refuses us: {error.message}", cure="log in to it anew, as an administrator"
            ) from error
        except ClusterError as error:
            raise ClusterError(f"{where} does not answer: {error.what}", cure="see that kubectl reaches it") from error
        finally:
            api.close()
        if self._wanted_version not in (None, version.removeprefix("v")):
            raise ClusterError(
                f"{where} runs Kubernetes {version}, not v{self._wanted_version}", cure="leave out --kubernetes"
            )
        has_node = any(not _is_ours(node) for node in nodes)
        if self._wanted_node not in (None, has_node):
            raise ClusterError(
                f"{where} has {'' if has_node else 'no '}real nodes", cure="leave out --node and --no-node"
            )
        return version

    def _remove_nodes(self) -> None:
        api = Api(self._copy)
        try:
            api.delete("/api/v1/nodes", labelSelector=_KWOK)
        except ClusterError as error:
            raise ClusterError(
                f"the nodes labelled {_KWOK} could not be removed: {error.what}",
                cure=f"see that the cluster is reached by {self._copy}; if it is gone for good: rm -r {self._folder}",
            ) from error
        finally:
            api.close()


def _nodes(nodes: Sequence[Object]) -> list[Part]:
    real = [
        Part(
            str(node["metadata"]["name"]),
            *(("running",) if is_ready(node) else ("unready", "see `kubectl describe node`")),
        )
        for node in nodes
        if not _is_ours(node)
    ]
    ours = [is_ready(node) for node in nodes if _is_ours(node)]
    if not ours:
        return real
    return [*real, Part("kwok nodes", "running" if all(ours) else "unready", f"{sum(ours)} of {len(ours)} ready")]


def _is_ours(node: Object) -> bool:
    name, value = LABEL
    return bool(node["metadata"].get("labels", {}).get(name) == value)
