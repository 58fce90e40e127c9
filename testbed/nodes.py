"""Makes a cluster have exactly the kwok nodes that are wanted.

A node that is taken away goes as a machine does that burns down: its pods go with it, at once. What is left of it would
otherwise count on a later node of the same name.
"""

import contextlib
import datetime as dt
import hashlib
import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed import kwok, process
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.kwok import LABEL
from testbed.phases import say
from testbed.readiness import is_ready

MADE_FROM = "fairlead.dev/testbed-made-from"
_NODES = "/api/v1/nodes"
_MANY = 500
_AT_ONCE = 1000
_PARALLEL = 16
_WITHIN_S = 60.0
"""How long no further node may become Ready; some thousands take their time on a busy machine."""
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def ensure(folder: Path, kubeconfig: Path, wanted: list[Object]) -> None:
    """Have exactly those kwok nodes, all of them Ready. A node that was made from something else is made anew.

    What was changed on a node since it was made stays. Nodes that do not carry our label are never touched.
    """
    began = time.monotonic()
    bodies = {str(node["metadata"]["name"]): _marked(node) for node in wanted}
    with kwok.locked(folder), contextlib.closing(Api(kubeconfig)) as api:
        ours, others = _there(api)
        if strangers := sorted(others & bodies.keys()):
            raise ClusterError(
                f"{len(strangers)} nodes have names that are wanted for kwok nodes, such as {strangers[0]}",
                cure="give the template another `name`",
            )
        stale = [name for name, made_from in ours.items() if name in bodies and made_from != _made_from(bodies[name])]
        if stale or not bodies:
            kwok.end(folder)  # it would not notice in time that the lease of a new node is not the one it held
        _remove(api, [*stale, *(ours.keys() - bodies.keys())])
        if not bodies:
            kwok.stop(folder)
            return
        kwok.start(folder, kubeconfig)
        _create(api, [body for name, body in bodies.items() if name not in ours or name in stale])
        _wait_until_ready(api, folder, bodies)
    if len(bodies) >= _MANY:
        say(f"{len(bodies)} kwok nodes are Ready: {time.monotonic() - began:.1f} s")


def _marked(node: Object) -> Object:
    """The node with the mark of what it was made from, which tells later whether it is still the one that is wanted."""
    digest = hashlib.sha256(json.dumps(node, sort_keys=True).encode()).hexdigest()[:16]
    metadata = node["metadata"]
    return node | {
        "metadata": metadata
        | {
            "labels": metadata.get("labels", {}) | dict([LABEL]),
            "annotations": metadata.get("annotations", {}) | {MADE_FROM: digest},
        }
    }


def _made_from(node: Object) -> str:
    return str(node["metadata"].get("annotations", {}).get(MADE_FROM, ""))


def _there(api: Api) -> tuple[dict[str, str], set[str]]:
    """Our nodes with what they were made from, and the names of everybody else's."""
    ours, others = {}, set()
    for node in api.items(_NODES):
        name = str(node["metadata"]["name"])
        if node["metadata"].get("labels", {}).get(LABEL[0]) == LABEL[1]:
            ours[name] = _made_from(node)
        else:
            others.add(name)
    return ours, others


def _remove(api: Api, names: list[str]) -> None:
    if not names:
        return
    if len(names) >= _MANY:
        say(f"removing {len(names)} kwok nodes")
    _delete_all(api, (f"{_NODES}/{name}" for name in names))
    kwok.forget_leases(api, names)
    gone = {*names}
    pods = [
        pod["metadata"]
        for pod in api.items("/api/v1/pods", fieldSelector="spec.nodeName!=")
        if pod["spec"]["nodeName"] in gone
    ]
    _delete_all(api, (f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}" for pod in pods))


def _delete_all(api: Api, paths: Iterable[str]) -> None:
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(lambda path: api.delete(path, gracePeriodSeconds="0"), paths):
            pass


def _create(api: Api, missing: list[Object]) -> None:
    # The first is left for kwok to make Ready: by then it has read its stages of nodes. kwok 0.8.0 reads them, and
    # those of pods, when first needed, and dies of "concurrent map writes" when a node and a pod need them at once.
    api.create_all(_NODES, missing[:1])
    for start in range(0, len(missing), _AT_ONCE):
        api.create_all(_NODES, map(_well, missing[max(start, 1) : start + _AT_ONCE]))
        if len(missing) >= _MANY:
            say(f"  {min(start + _AT_ONCE, len(missing))} of {len(missing)} kwok nodes created")


def _well(node: Object) -> Object:
    """The node as one that is well from the start: waiting for kwok to say so would cost another write for each."""
    if kwok.NOT_READY in node["metadata"]["annotations"]:
        return node
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return node | {"status": node["status"] | {"phase": "Running", "conditions": [ready]}}


def _wait_until_ready(api: Api, folder: Path, bodies: dict[str, Object]) -> None:
    """Wait until kwok tends all, and they are Ready and free of the taints of new nodes, but those meant not to be."""
    waiting = {name for name, body in bodies.items() if kwok.NOT_READY not in body["metadata"]["annotations"]}
    reported = time.monotonic()

    def look() -> bool:
        nonlocal reported
        if process.is_gone(folder, "kwok"):
            raise ClusterError(
                "kwok ended", log=process.log_of(folder, "kwok"), cure="mend what its log says and call this again"
            )
        nodes = api.items(
            _NODES, labelSelector=kwok.SELECTOR, resourceVersion="0"
        )  # from memory, as there may be thousands
        waiting.difference_update(str(node["metadata"]["name"]) for node in nodes if _takes_pods(node))
        if waiting and time.monotonic() - reported > 2:
            say(f"  {len(bodies) - len(waiting)} of {len(bodies)} kwok nodes are Ready")
            reported = time.monotonic()
        return not waiting and kwok.tends_all(api)

    try:
        wait_for(
            "the kwok nodes", look, timeout_s=_WITHIN_S, every_s=0.1 + len(bodies) / 2000, progress=lambda: len(waiting)
        )
    except ClusterError as error:
        raise ClusterError(
            f"{len(waiting)} of {len(bodies)} kwok nodes are not Ready, such as {min(waiting)}: {error.what}"
            if waiting
            else f"kwok does not tend all of {len(bodies)} kwok nodes: {error.what}",
            log=process.log_of(folder, "kwok"),
            cure="see `kubectl describe node`, and call this again",
        ) from error


def _takes_pods(node: Object) -> bool:
    return is_ready(node) and not any(taint["key"] in _LOST for taint in node["spec"].get("taints", []))
